// Runs one benchmark: npm run bench -- NAME [--data DIR]
const modules: Readonly<Record<string, string>> = {
  context: './turnLatency.ts',
  recall: './evidenceRecall.ts',
  prefix: './prefixStability.ts',
  future: './futureReference.ts',
  store: './sqliteStore.ts',
  upkeep: './upkeepCost.ts',
  summaries: './summaryQuality.ts',
  redundancy: './redundancyScaling.ts',
  secrets: './secretDetection.ts',
  soak: './soak.ts',
  proxy: './proxyOverhead.ts',
  fit: './fit.ts',
  handoff: './handoffRecall.ts',
  selection: './lineSelection.ts',
  mcp: './mcpTools.ts',
  peers: './peerComparison.ts',
  stalls: './stalls.ts',
  structureStalls: './structureStalls.ts',
  browser: './browser.ts',
  scale: './scale.ts',
}
const module = modules[process.argv[2] ?? '']
if (module === undefined) {
  console.error(`Name a benchmark: npm run bench -- ${Object.keys(modules).join(' | ')} [--data DIR]`)
  process.exit(2)
}
await import(module)
