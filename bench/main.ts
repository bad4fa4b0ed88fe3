// npm run bench -- NAME [--data DIR]: runs one benchmark.
const names = [
  'context',
  'recall',
  'prefix',
  'future',
  'store',
  'upkeep',
  'redundancy',
  'secrets',
  'proxy',
  'handoff',
  'mcp',
]
const name = process.argv[2]
if (name === undefined || !names.includes(name)) {
  console.error(`Which benchmark? npm run bench -- ${names.join(' | ')} [--data DIR]`)
  process.exit(2)
}
await import(`./${name}.ts`)
