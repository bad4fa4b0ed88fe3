import { describe, expect } from 'vitest'
import { parseKey } from '../../../src/domain/key.ts'
import type { Model } from '../../../src/domain/ports.ts'
import { openMemory } from '../../../src/index.ts'
import { internalsOf, type Memory } from '../../../src/memory.ts'
import { verifies } from '../../requirements/verifies.ts'
import { createSharedStores } from './sharedServers.ts'

const key = 'acme:long'
const messages = 16

/** A model whose calls last for a few turns of the event loop, so that the calls of two servers could overlap. */
function countingModel(): Model & { readonly calls: number } {
  const model = {
    name: 'counting',
    calls: 0,
    async *reply(): AsyncIterable<string> {
      model.calls++
      for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate)
      yield 'The user talks about parcels.'
    },
  }
  return model
}

/** Appends messages to servers in turn; after each, all of them look for work. Returns the number of model calls. */
async function countCalls(url: string, servers: number): Promise<{ calls: number; summaries: number }> {
  const model = countingModel()
  const open = (): Promise<Memory> => openMemory({ profile: 'summary', store: url, model })
  const memories = await Promise.all(Array.from({ length: servers }, open))
  for (let index = 0; index < messages; index++) {
    const role = index % 2 === 0 ? 'user' : 'assistant'
    const content = `Message ${index}: parcel ${index * 7} ${'was sent to the depot in Porto and came back. '.repeat(45)}`
    await memories[index % servers]?.append(key, [{ role, content }])
    for (const memory of memories) memory.upkeep.notify(parseKey(key), 'said')
    await Promise.all(memories.map((memory) => memory.upkeep.whenIdle()))
  }
  const { derived } = await internalsOf(memories[0] as Memory).sessions.readHead(parseKey(key), 0)
  for (const memory of memories) await memory.close()
  return { calls: model.calls, summaries: derived.filter(({ kind }) => kind === 'summary').length }
}

describe.each(await createSharedStores())('compaction, store %s', (_, store) => {
  verifies('X-07', 'due on three servers at once › is paid for once', async () => {
    const alone = await countCalls(await store(), 1)
    expect(alone.calls).toBeGreaterThan(1)
    expect(await countCalls(await store(), 3)).toEqual(alone)
  })
})
