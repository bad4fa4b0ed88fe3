import { describe, expect, it } from 'vitest'
import { filesKey, parseKey } from '../../src/domain/key.ts'
import type { SearchIndex, Store } from '../../src/domain/ports.ts'
import { openMemory } from '../../src/index.ts'
import { exportBundle } from '../../src/portable/export.ts'
import { type MigrationStep, migrateStore } from '../../src/portable/migrate.ts'
import { ramStore } from '../../src/stores/ram.ts'
import { sharedStore } from '../../src/stores/sharedStore.ts'
import { createFiles } from '../files/fileServiceFixture.ts'
import { readAll } from './byteStreams.ts'

/** Creates a store with sessions `acme:s1`…`acme:sN` of three messages each. */
async function createSource(sessions: number) {
  const store = ramStore()
  await using memory = await openMemory({ store: sharedStore(store), upkeep: false, clock: () => 1_000 })
  for (let number = 1; number <= sessions; number++)
    await memory.append(`acme:s${number}`, [
      { role: 'user', content: `question ${number}` },
      { role: 'assistant', content: `answer ${number}` },
      { role: 'user', content: `thanks ${number}` },
    ])
  return store
}

const bundleOf = async (store: Store) => (await readAll(exportBundle(store))).toString()

describe('migrateStore', () => {
  it('after an interruption › continues, and both stores export the same bytes', async () => {
    const [source, target] = [await createSource(5), ramStore()]
    const outcomes: string[] = []
    const interrupted = migrateStore(source, target, {
      onSession: (key) => {
        outcomes.push(key)
        if (outcomes.length === 2) throw new Error('stop')
      },
    })
    await expect(interrupted).rejects.toThrow('stop')
    const again: string[] = []
    const result = await migrateStore(source, target, { onSession: (key, outcome) => again.push(`${key} ${outcome}`) })
    expect(again).toEqual([
      'acme:s1 unchanged',
      'acme:s2 unchanged',
      'acme:s3 written',
      'acme:s4 written',
      'acme:s5 written',
    ])
    expect(result).toMatchObject({ sessions: 3, messages: 9, unchanged: 2 })
    expect(await bundleOf(target)).toBe(await bundleOf(source))
  })

  it('with files of a scope › copies them, and the target searches and lists them', async () => {
    const [source, target] = [ramStore(), ramStore()]
    const bytes = Buffer.from('Lamps may be returned within thirty days.')
    await createFiles(source).add('acme', { name: 'returns.txt', bytes })
    await migrateStore(source, target)
    expect(await bundleOf(target)).toBe(await bundleOf(source))
    const files = createFiles(target)
    const { items } = await files.list('acme')
    expect(items).toMatchObject([{ name: 'returns.txt', status: 'ready' }])
    expect(await files.text('acme', items[0]?.id ?? '')).toBe(bytes.toString())
    expect(await target.search(filesKey('acme'), { text: 'lamps returned', limit: 1 })).toMatchObject([
      { entry: { name: 'returns.txt' } },
    ])
  })

  it('with a session that was partly written › completes it', async () => {
    const [source, target] = [await createSource(1), ramStore()]
    const key = parseKey('acme:s1')
    const { commit } = target
    const failing: Store & SearchIndex = {
      ...target,
      commit: async (change) => {
        const messages = await commit({ ...change, append: change.append.slice(0, 1) })
        if (change.append.length > 1) throw new Error('connection lost')
        return messages
      },
    }
    await expect(migrateStore(source, failing)).rejects.toThrow('connection lost')
    expect((await target.readHead(key, 0)).messages).toBe(1)
    await migrateStore(source, target)
    expect(await bundleOf(target)).toBe(await bundleOf(source))
  })

  it('reports the messages of each step', async () => {
    const steps = new Map<MigrationStep, number>()
    await migrateStore(await createSource(4), ramStore(), { onProgress: (step, messages) => steps.set(step, messages) })
    expect([...steps]).toEqual([
      ['compare', 12],
      ['copy', 12],
      ['vectors', 12],
      ['verify', 12],
    ])
  })

  it('with a target that stores something else than it was given › rejects', async () => {
    const [source, target] = [await createSource(1), ramStore()]
    const damaging: Store & SearchIndex = {
      ...target,
      readMessages: async (key, range) =>
        (await target.readMessages(key, range)).map((message) => ({ ...message, content: `${message.content}!` })),
    }
    await expect(migrateStore(source, damaging)).rejects.toMatchObject({ code: 'conflict' })
  })
})
