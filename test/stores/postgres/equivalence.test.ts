import { describe, expect } from 'vitest'
import type { SearchIndex, Store } from '../../../src/domain/ports.ts'
import { openMemory, profiles } from '../../../src/index.ts'
import { exportBundle } from '../../../src/portable/export.ts'
import { ramStore } from '../../../src/stores/ram.ts'
import { sqliteStore } from '../../../src/stores/sqlite.ts'
import { textAnalysis } from '../../../src/stores/textAnalysis.ts'
import { verifies } from '../../requirements/verifies.ts'
import { createEmptyStores, createStore } from '../../support/postgres.ts'
import { type ComparedStore, canonicalJson, expectSameAsRam } from '../equivalence.ts'
import { createTempPaths } from '../tempPaths.ts'

const newPath = createTempPaths()
const openEmpty = createEmptyStores(1)

/** Opens two stores with caches of their own on the same data, which take turns; after a crash, a new one continues. */
async function openCompared(): Promise<ComparedStore> {
  const first = await openEmpty()
  const open = () => createStore(first.database, 1)
  let [current, other] = [open(), open()]
  return {
    get store() {
      return current
    },
    reopen: async (how) => {
      if (how === 'reopen') [current, other] = [other, current]
      else current = open()
    },
    close: async () => undefined,
  }
}

/** Fills a store through the library and returns its contexts, hits and export. */
async function useStore(store: Store & SearchIndex, profile: 'thread' | 'agent' | 'summary'): Promise<string> {
  let now = 1_800_000_000_000
  const memory = await openMemory({ store, profile: profiles[profile], upkeep: false, clock: () => now })
  const results: unknown[] = []
  for (let turn = 0; turn < 40; turn++) {
    now += 60_000
    const topic = ['the walrus \u0000 on the ice', 'trains to \uD800 Lisbon', 'a cat called Mišo 🐈'][turn % 3]
    await memory.append('acme:ann', [
      { role: 'user', content: `Question ${turn}: what of ${topic}?` },
      { role: 'assistant', content: `Answer ${turn}: ${topic} is number ${turn * 7}.` },
    ])
    if (turn % 10 === 9) results.push(await memory.context('acme:ann', { budget: 300 + 100 * turn }))
  }
  await memory.remember('acme', { category: 'domain', key: 'opening hours', value: 'nine to five' })
  results.push(await memory.context('acme:ann', { query: 'when is the walrus open?' }))
  results.push(await memory.search('acme', 'walrus number', { limit: 20 }))
  await memory.forget({ key: 'acme:ann', messageIds: ['m3', 'm4'] })
  results.push(await memory.search('acme', 'walrus number', { limit: 20, session: 'ann' }))
  const chunks: Uint8Array[] = []
  for await (const chunk of exportBundle(store, {})) chunks.push(chunk)
  await memory.close()
  return `${canonicalJson(results)}\n${Buffer.concat(chunks).toString('base64')}`
}

describe('ramStore, sqliteStore and postgresStore', () => {
  verifies(
    'X-07',
    'return the same bytes after any steps on one of two processes, including erasures and clock jumps',
    () => expectSameAsRam(openCompared, 10),
  )

  for (const profile of ['thread', 'agent', 'summary'] as const)
    verifies('X-07', `give the same contexts, hits and export of profile ${profile}`, async () => {
      const ram = await useStore(ramStore({ analysis: textAnalysis }), profile)
      expect(await useStore(sqliteStore(newPath()), profile)).toBe(ram)
      expect(await useStore(await openEmpty(), profile)).toBe(ram)
    })
})
