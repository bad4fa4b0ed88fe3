import { describe, expect, it } from 'vitest'
import type { SessionMetadata } from '../../src/domain/entry.ts'
import { branchKey, type Key, outboxKey, parseKey, parseStoredKey } from '../../src/domain/key.ts'
import { noExpiry } from '../../src/domain/session.ts'
import { type Memory, openMemory } from '../../src/index.ts'
import { internalsOf } from '../../src/memory.ts'
import { migrateStore } from '../../src/portable/migrate.ts'
import { newMessage } from '../../src/stores/conformance/fixtures.ts'
import { ramStore } from '../../src/stores/ram.ts'
import { verifies } from '../requirements/verifies.ts'
import { openChunks, readAll } from './byteStreams.ts'

const at = 1_763_000_000_000
const ann = parseKey('acme:ann')

type ForgedSession = {
  readonly key: Key
  readonly texts?: readonly string[]
  readonly about?: Partial<SessionMetadata>
  readonly receipt?: object
}

/** Exports what nobody would store: the bundle of an attacker. */
async function forgeBundle(sessions: readonly ForgedSession[]): Promise<Buffer> {
  const store = ramStore()
  for (const { key, texts = [], about, receipt } of sessions) {
    const append = texts.map((text) => newMessage(text, { at }))
    const put = about === undefined ? [] : [{ kind: 'about' as const, id: 'about', at, sources: [], ...about }]
    await store.commit({ key, at, epoch: 0, append, put, drop: [], expiresAt: noExpiry })
    if (receipt !== undefined) await store.appendRecord(key, { id: 'r1', at, body: JSON.stringify(receipt) }, 9)
  }
  await using memory = await openMemory({ store, clock: () => at, upkeep: false })
  return await readAll(memory.export())
}

async function openTarget(): Promise<Memory> {
  const memory = await openMemory({ clock: () => at, upkeep: false })
  await memory.append('acme:ann', [{ role: 'user', content: 'Only mine.' }])
  return memory
}

const textsOf = async (memory: Memory, key: string): Promise<readonly string[]> =>
  (await memory.transcript(key)).map(({ content }) => content)

describe('importBundle with a bundle that reaches for another session', () => {
  verifies('R-04', 'as its transfer in progress › leaves the other session where it is', async () => {
    for (const about of [{ movedFrom: 'ann' }, { movedTo: 'ann' }]) {
      await using memory = await openTarget()
      const bundle = await forgeBundle([{ key: parseKey('acme:eve'), texts: ['Injected.'], about }])
      await memory.import(openChunks(bundle))
      await memory.append('acme:eve', [{ role: 'user', content: 'Next.' }])
      expect(await textsOf(memory, 'acme:ann')).toEqual(['Only mine.'])
      expect(await textsOf(memory, 'acme:eve')).toEqual(['Injected.', 'Next.'])
    }
  })

  it('as a source without messages › leaves the other session where it is', async () => {
    await using memory = await openTarget()
    await memory.import(openChunks(await forgeBundle([{ key: parseKey('acme:eve'), about: { movedFrom: 'ann' } }])))
    await memory.append('acme:eve', [{ role: 'user', content: 'Next.' }])
    expect(await textsOf(memory, 'acme:ann')).toEqual(['Only mine.'])
    expect(await textsOf(memory, 'acme:eve')).toEqual(['Next.'])
  })

  it('as a branch of it › imports no branch, also when the session itself is skipped', async () => {
    await using memory = await openTarget()
    const branch = { key: branchKey(ann, 1), texts: ['Injected.'] }
    await memory.import(openChunks(await forgeBundle([branch])))
    const bundle = await forgeBundle([{ key: ann, texts: ['Other.'] }, branch])
    const { skipped } = await memory.import(openChunks(bundle), { onExisting: 'skip' })
    expect(skipped).toEqual(['acme:ann', 'acme:ann:1'])
    const { revision } = await internalsOf(memory).store.readHead(branch.key, 0)
    expect(revision).toBe(0)
  })

  verifies('R-04', 'as a pending end event › imports no event', async () => {
    await using memory = await openTarget()
    const bundle = await forgeBundle([
      { key: outboxKey('acme'), texts: ['{"key":"other:bob"}'] },
      { key: parseKey('acme:eve'), texts: ['Own.'] },
    ])
    expect(await memory.import(openChunks(bundle))).toMatchObject({ sessions: 1, messages: 1 })
    expect((await internalsOf(memory).store.readHead(outboxKey('acme'), 0)).revision).toBe(0)
    expect(await textsOf(memory, 'acme:eve')).toEqual(['Own.'])
  })
})

describe('importBundle with a genuine bundle', () => {
  it('with a session that was moved › keeps its redirect', async () => {
    await using source = await openTarget()
    await source.lifecycle.transfer(ann, parseKey('acme:bob'))
    await using memory = await openMemory({ clock: () => at, upkeep: false })
    await memory.import(openChunks(await readAll(source.export())))
    expect(await textsOf(memory, 'acme:bob')).toEqual(['Only mine.'])
    await expect(memory.append('acme:ann', [{ role: 'user', content: 'Late.' }])).rejects.toMatchObject({
      code: 'moved',
      to: 'acme:bob',
    })
  })

  it('with a session and its branch › imports both', async () => {
    await using memory = await openMemory({ clock: () => at, upkeep: false })
    const bundle = await forgeBundle([
      { key: ann, texts: ['Newer.'] },
      { key: branchKey(ann, 1), texts: ['Older.'] },
    ])
    expect(await memory.import(openChunks(bundle))).toMatchObject({ sessions: 2, messages: 2 })
    expect((await internalsOf(memory).store.readHead(parseStoredKey('acme:ann:1'), 0)).messages).toBe(1)
  })

  verifies(
    ['R-04', 'X-12'],
    'with the receipt of a response › marks it as imported, and exports it as it was',
    async () => {
      await using memory = await openMemory({ clock: () => at, upkeep: false })
      const receipt = { response: 'resp_1', sequence: 1, isStoredUpstream: true, question: 1 }
      const bundle = await forgeBundle([{ key: ann, texts: ['Own.'], receipt }])
      const { store } = internalsOf(memory)
      for (let times = 0; times < 2; times++) {
        await memory.import(openChunks(bundle))
        const [record] = await store.records(ann, { limit: 9 })
        expect(JSON.parse(record?.body ?? '')).toEqual({ ...receipt, isImported: true })
        expect((await readAll(memory.export())).equals(bundle)).toBe(true)
      }
      const copy = ramStore()
      await migrateStore(store, copy)
      expect(await copy.records(ann, { limit: 9 })).toEqual(await store.records(ann, { limit: 9 }))
    },
  )
})
