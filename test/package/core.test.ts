import { createContext, runInContext } from 'node:vm'
import { gzipSync } from 'node:zlib'
import { build, type Plugin } from 'vite'
import { beforeAll, describe, expect, it } from 'vitest'
import { root } from '../shape/source.ts'

/** What a service worker has beside the language itself, as far as the core may lean on it. */
const worker = {
  AbortController,
  AbortSignal,
  TextDecoder,
  TextEncoder,
  URL,
  clearTimeout,
  console,
  crypto,
  performance,
  queueMicrotask,
  setTimeout,
  structuredClone,
}

type Bundle = { readonly code: string; readonly packages: readonly string[] }

/** The upper bound's word list stands in for the tables of a tokenizer: the engine is weighed without it. */
const withoutTables: Plugin = {
  name: 'without tables',
  enforce: 'pre',
  load: (id) =>
    id.endsWith('/text/frequentWords.ts')
      ? "export const words = ''\nexport const pairs = ''\nexport const triples = ''"
      : undefined,
}

async function bundle(entry: string, ...others: Plugin[]): Promise<Bundle> {
  const packages: string[] = []
  const watch: Plugin = {
    name: 'packages',
    enforce: 'pre',
    resolveId(specifier, importer) {
      if (importer !== undefined && !specifier.startsWith('.')) packages.push(specifier)
    },
  }
  const result = await build({
    root,
    configFile: false,
    logLevel: 'error',
    plugins: [watch, ...others],
    build: { write: false, minify: true, target: 'es2023', lib: { entry, formats: ['iife'], name: 'threadkeep' } },
  })
  const outputs = [result].flat().flatMap((built) => ('output' in built ? built.output : []))
  if (outputs.length !== 1 || outputs[0]?.type !== 'chunk')
    throw new Error(`expected one file, got ${outputs.map((output) => output.fileName)}`)
  return { code: outputs[0].code, packages }
}

describe('the core, bundled for a service worker', () => {
  let core: Bundle
  beforeAll(async () => {
    core = await bundle('src/browser.ts')
  })
  const run = (script: string): Promise<unknown> =>
    runInContext(`${core.code}\n;(async () => { ${script} })()`, createContext({ ...worker }))

  it('needs no builtins and no packages', () => {
    expect(core.packages).toEqual([])
    expect(core.code).not.toMatch(/\brequire\(|\bimport\(['"`]|node:/)
  })

  it('weighs at most 41 kB packed without the word list, 48 kB with it; what a tab needs of it, 26 kB', async () => {
    const bare = await bundle('src/browser.ts', withoutTables)
    const tab = await bundle('src/adapters/session-memory.ts', withoutTables)
    expect(gzipSync(bare.code).length).toBeLessThanOrEqual(41_000)
    expect(gzipSync(core.code).length).toBeLessThanOrEqual(48_000)
    expect(gzipSync(tab.code).length).toBeLessThanOrEqual(26_000)
  })

  it('holds a conversation where there is no process, no Buffer and no require', async () => {
    const script = `
      const memory = await threadkeep.openMemory({ profile: 'ephemeral' })
      await memory.append('example.com:1', [{ role: 'user', content: 'hello' }])
      const { text } = await memory.context('example.com:1')
      return [text, typeof process, typeof Buffer, typeof require].join()`
    expect(await run(script)).toBe('User: hello,undefined,undefined,undefined')
  })
})
