import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect } from 'vitest'
import { readEntryPoints } from '../../scripts/docs/library.ts'
import { startCommand, startProgram } from '../cli/command.ts'
import { verifies } from '../requirements/verifies.ts'
import { root } from '../shape/source.ts'
import { blocksOf, nameOf } from './pages.ts'

const execute = promisify(execFile)
const folder = mkdtempSync(join(tmpdir(), 'threadkeep-snippets-'))
afterAll(() => rmSync(folder, { recursive: true }))

const snippets = blocksOf('ts').map((block) => ({
  ...block,
  file: `${nameOf(block).replaceAll(/[/.:]/g, '-')}.ts`,
  expected: [...block.text.matchAll(/\/\/ → (.+)$/gm)].map(([, text = '']) => text),
}))

/** Creates a project in which `threadkeep` is the source of this repository, and all its packages are installed. */
function createProject(): void {
  const modules = join(folder, 'node_modules')
  mkdirSync(join(modules, 'threadkeep'), { recursive: true })
  for (const name of readdirSync(`${root}node_modules`))
    if (!name.startsWith('.') && name !== 'threadkeep') symlinkSync(`${root}node_modules/${name}`, join(modules, name))
  symlinkSync(`${root}src`, join(modules, 'threadkeep/src'))
  const entries = readEntryPoints().map(({ specifier, file }) => [specifier.replace('threadkeep', '.'), `./${file}`])
  const manifest = { name: 'threadkeep', type: 'module', exports: Object.fromEntries(entries) }
  writeFileSync(join(modules, 'threadkeep/package.json'), JSON.stringify(manifest))
  const compilerOptions = { noUnusedLocals: false, noUnusedParameters: false, incremental: false }
  writeFileSync(
    join(folder, 'tsconfig.json'),
    JSON.stringify({ extends: `${root}tsconfig.json`, compilerOptions, include: ['*.ts'] }),
  )
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  mkdirSync(join(folder, 'etc'))
  writeFileSync(join(folder, 'etc/key'), '0f'.repeat(32), { mode: 0o600 })
}

/** Imports all snippets one after the other and prints what each of them printed. */
const runner = `
import { format } from 'node:util'
import { mkdirSync } from 'node:fs'
const event = { addListener() {}, removeListener() {} }
globalThis.chrome = { tabs: { onRemoved: event, onUpdated: event }, runtime: { onConnect: event, connect() {} } }
const results = {}
const log = console.log
for (const file of process.argv.slice(2)) {
  const folder = new URL(file.replace('.ts', '/'), import.meta.url)
  mkdirSync(folder)
  process.chdir(folder.pathname)
  const lines = []
  console.log = (...values) => lines.push(format(...values))
  await import(new URL(file, import.meta.url)).catch((error) => lines.push('failed: ' + (error?.stack ?? error)))
  results[file] = lines.join('\\n')
}
log(JSON.stringify(results))
process.exit(0)
`

describe('ts blocks of the documentation', () => {
  beforeAll(() => {
    createProject()
    for (const { file, text } of snippets)
      writeFileSync(join(folder, file), `${text.replaceAll('/etc/threadkeep/', `${folder}/etc/`)}\nexport {}\n`)
    writeFileSync(join(folder, 'runner.mjs'), runner)
  })

  verifies('P-03', 'ts blocks › type-checked with strict options › have no errors', async () => {
    const { stdout } = await execute('npx', ['tsc', '-p', folder], { cwd: root }).catch(
      (error: { stdout: string }) => error,
    )
    expect(stdout.replaceAll(folder, '')).toBe('')
  })

  verifies('P-03', 'ts blocks › run next to a server › print what they promise', async () => {
    const server = startCommand(['serve', '--port', '0'])
    const url = /http:\/\/127\.0\.0\.1:\d+/.exec(await server.waitForOutput('curl '))?.[0] ?? ''
    try {
      for (const { file } of snippets) {
        const path = join(folder, file)
        writeFileSync(path, readFileSync(path, 'utf8').replaceAll('http://127.0.0.1:4848', url))
      }
      const { stdout, stderr } = await startProgram(
        relative(root, join(folder, 'runner.mjs')),
        snippets.map(({ file }) => file),
        { THREADKEEP_STORE: '' },
        '',
        folder,
      ).result
      expect(stderr).toBe('')
      const printed = JSON.parse(stdout) as Readonly<Record<string, string>>
      const faults = snippets.flatMap((snippet) => {
        const output = printed[snippet.file] ?? 'failed: not run'
        const missing = snippet.expected.filter((text) => !output.includes(text))
        if (!output.startsWith('failed:') && !output.includes('\nfailed:') && missing.length === 0) return []
        return [`${nameOf(snippet)} printed ${JSON.stringify(output)}, not ${missing.join(', ')}`]
      })
      expect(faults).toEqual([])
    } finally {
      server.process.kill()
      await server.result
    }
  })
})
