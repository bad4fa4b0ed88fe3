import { createContext, runInContext } from 'node:vm'
import { gzipSync } from 'node:zlib'
import { build, type Plugin } from 'vite'
import { beforeAll, describe, expect, it } from 'vitest'
import { root } from '../shape/source.ts'

/** Globals of a service worker that the core may use. */
const workerGlobals = {
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

/** Replaces the word list of the token estimate with an empty one, to measure the engine alone. */
const withoutWordList: Plugin = {
  name: 'without word list',
  enforce: 'pre',
  load: (id) =>
    id.endsWith('/text/frequentWords.ts')
      ? ['words', 'symbols', 'cl100kMerges', 'o200kMerges', 'pairs', 'triples']
          .map((name) => `export const ${name} = ''`)
          .join('\n')
      : undefined,
}

async function bundle(entry: string, ...others: Plugin[]): Promise<Bundle> {
  const packages: string[] = []
  const recordPackages: Plugin = {
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
    plugins: [recordPackages, ...others],
    build: { write: false, minify: true, target: 'es2023', lib: { entry, formats: ['iife'], name: 'threadkeep' } },
  })
  const outputs = [result].flat().flatMap((built) => ('output' in built ? built.output : []))
  if (outputs.length !== 1 || outputs[0]?.type !== 'chunk')
    throw new Error(`expected one file, got ${outputs.map((output) => output.fileName)}`)
  return { code: outputs[0].code, packages }
}

describe('core bundle for a service worker', () => {
  let core: Bundle
  beforeAll(async () => {
    core = await bundle('src/browser.ts')
  })
  const run = (script: string): Promise<unknown> =>
    runInContext(`${core.code}\n;(async () => { ${script} })()`, createContext({ ...workerGlobals }))

  it('imports no builtins and no packages', () => {
    expect(core.packages).toEqual([])
    expect(core.code).not.toMatch(/\brequire\(|\bimport\(['"`]|node:/)
  })

  it('is at most 76 kB gzipped without the word list, 110 kB with it, and 41 kB for session-memory alone', async () => {
    const engine = await bundle('src/browser.ts', withoutWordList)
    const tab = await bundle('src/adapters/session-memory.ts', withoutWordList)
    expect(gzipSync(engine.code).length).toBeLessThanOrEqual(76_000)
    expect(gzipSync(core.code).length).toBeLessThanOrEqual(110_000)
    expect(gzipSync(tab.code).length).toBeLessThanOrEqual(41_000)
  })

  it('adds at most 32 kB gzipped for the masker', async () => {
    const masker = await bundle('src/memory/secretMasker.ts')
    expect(masker.packages).toEqual([])
    expect(gzipSync(masker.code).length).toBeLessThanOrEqual(32_000)
  })

  it('builds a context without process, Buffer and require', async () => {
    const script = `
      const memory = await threadkeep.openMemory({ profile: 'ephemeral' })
      await memory.append('example.com:1', [{ role: 'user', content: 'hello' }])
      const { text } = await memory.context('example.com:1')
      return [text, typeof process, typeof Buffer, typeof require].join()`
    expect(await run(script)).toBe('User: hello,undefined,undefined,undefined')
  })
})
