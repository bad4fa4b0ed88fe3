import { describe, expect, it } from 'vitest'
import type { DerivedEntry, Fact, Knowledge, Message, Summary, UpkeepNotes } from '../../src/domain/entry.ts'
import { MemoryError } from '../../src/domain/error.ts'
import { branchKey, parseKey, personKey } from '../../src/domain/key.ts'
import type { EraseFilter, Store } from '../../src/domain/ports.ts'
import type { Lifecycle } from '../../src/lifecycle/lifecycle.ts'
import { ForgetOperation, type Rederive } from '../../src/memory/forget.ts'
import type { ForgetTarget } from '../../src/memory/forgetTarget.ts'
import type { SecretMasker } from '../../src/memory/secretMasker.ts'
import { ramStore } from '../../src/stores/ram.ts'
import { verifies } from '../requirements/verifies.ts'
import { listIds, putEntries, storeMessages } from './entryFixtures.ts'

const summary = (id: string, covers: readonly [number, number], more: Partial<Summary> = {}): Summary => ({
  kind: 'summary',
  id,
  ...{ at: 1, tier: 'hour', text: 'Text.', covers, endOffset: 0, version: 1, by: 'builtin' },
  ...{ sources: [], lossyRanges: [], ...more },
})
const fact = (id: string, message: string, more: Partial<Fact> = {}): Fact => ({
  kind: 'fact',
  id,
  ...{ at: 1, field: 'names', key: 'cat', value: id, importance: 5, sources: [{ message }], ...more },
})
const knowledge = (id: string, more: Partial<Knowledge> = {}): Knowledge => ({
  kind: 'knowledge',
  id,
  ...{ at: 1, category: 'domain', key: id, value: 'any', confidence: 0.5, usedAt: 1, sources: [], ...more },
})

/** Forgets a target in RAM stores and records which messages entries are rebuilt from. */
class Harness {
  readonly store = ramStore()
  readonly rebuilds: [entry: string, from: readonly string[]][] = []
  readonly masker: string[] = []
  sessions: Store = this.store
  secrets = false
  branches: readonly string[] = []
  /** Text of rebuilt summaries; entries of other kinds are not rebuilt. */
  rebuiltText: string | undefined = 'Rebuilt.'
  onRederive: () => Promise<void> = async () => undefined

  async forget(target: ForgetTarget) {
    const masker: Partial<SecretMasker> = {
      drop: (scope, id) => void this.masker.push(`drop ${scope} ${id ?? '*'}`),
      hasValues: () => this.secrets,
      placeholdersOf: (_, text) => (text === 'hunter2' ? ['⟨secret:1⟩'] : []),
      dropPlaceholders: (key, marks) => void this.masker.push(`${key.id} ${marks.join(' ')}`),
    }
    const lifecycle: Pick<Lifecycle, 'auxiliaryData'> = {
      auxiliaryData: async (_, key) => this.branches.map((number) => ({ key: branchKey(key, Number(number)) })),
    }
    const rederive: Rederive = async (entry, from) => {
      this.rebuilds.push([entry.id, from.map((message: Message) => `${message.content}`)])
      await this.onRederive()
      return entry.kind === 'summary' && this.rebuiltText !== undefined
        ? { ...entry, text: this.rebuiltText }
        : undefined
    }
    const deps = {
      sessions: this.sessions,
      store: this.store,
      masker: masker as SecretMasker,
      lifecycle: lifecycle as Lifecycle,
    }
    return new ForgetOperation(deps, rederive).forget(target, 77)
  }

  async put(key: string, ...entries: readonly DerivedEntry[]): Promise<void> {
    await putEntries(this.store, parseKey(key), entries)
  }

  async derived<T extends DerivedEntry = DerivedEntry>(key: string): Promise<readonly T[]> {
    return (await this.store.readHead(parseKey(key), 0)).derived as readonly DerivedEntry[] as readonly T[]
  }
}

async function open(messages: Readonly<Record<string, readonly string[]>> = { 'acme:ann': ['one', 'two', 'three'] }) {
  const harness = new Harness()
  for (const [key, contents] of Object.entries(messages)) await storeMessages(harness.store, parseKey(key), contents)
  return harness
}

describe('forgetting messages', () => {
  verifies('X-05', 'rebuilds each summary that covers one from the other messages it covers', async () => {
    const harness = await open()
    await harness.put('acme:ann', summary('s1', [1, 2]), summary('s2', [3, 3]))
    expect(await harness.forget({ key: 'acme:ann', messageId: 'm2' })).toEqual({
      at: 77,
      sessions: [{ key: 'acme:ann', entries: ['m2', 's1'], rebuilt: ['s1'] }],
    })
    expect(harness.rebuilds).toEqual([['s1', ['one']]])
    expect(await harness.derived('acme:ann')).toMatchObject([
      { id: 's2', text: 'Text.' },
      { id: 's1', text: 'Rebuilt.' },
    ])
    expect(await listIds(harness.store, parseKey('acme:ann'))).toEqual(['m1', 'm3'])
  })

  verifies('X-05', 'forgets several at once, and rebuilds nothing that remains unaffected', async () => {
    const harness = await open()
    await harness.put('acme:ann', summary('s1', [1, 3]), fact('f1', 'm1'), fact('f2', 'm2'))
    const { sessions } = await harness.forget({ key: 'acme:ann', messageIds: ['m1', 'm3'] })
    expect(sessions).toEqual([{ key: 'acme:ann', entries: ['m1', 'm3', 's1', 'f1'], rebuilt: ['s1'] }])
    expect(harness.rebuilds).toEqual([
      ['s1', ['two']],
      ['f1', []],
    ])
    expect((await harness.derived('acme:ann')).map(({ id }) => id).sort()).toEqual(['f2', 's1'])
  })

  verifies('X-05', 'rebuilds facts from their other sources, also of other sessions, oldest entry first', async () => {
    const harness = await open({ 'acme:ann': ['one', 'two'], 'acme:bob': ['three', 'four'] })
    const sources = [{ message: 'm1' }, { message: 'm2' }, { message: 'm2', session: 'bob' }]
    await harness.put('acme:ann', fact('late', 'm1', { at: 9 }), fact('early', 'm1', { at: 3, sources }))
    await harness.forget({ key: 'acme:ann', messageId: 'm1' })
    expect(harness.rebuilds).toEqual([
      ['early', ['two', 'four']],
      ['late', []],
    ])
  })

  verifies('X-05', 'reads sessions of any length', async () => {
    const harness = await open({ 'acme:ann': Array.from({ length: 1_203 }, (_, at) => `message ${at + 1}`) })
    await harness.put('acme:ann', summary('s1', [2, 1_202]))
    await harness.forget({ key: 'acme:ann', messageIds: ['m700', 'm1202'] })
    const from = harness.rebuilds[0]?.[1] ?? []
    expect([from.length, from[0], from.at(-1), from.includes('message 700')]).toEqual([
      1_199,
      'message 2',
      'message 1201',
      false,
    ])
  })

  verifies('X-05', 'drops an entry that cannot be rebuilt', async () => {
    const harness = await open()
    harness.rebuiltText = undefined
    await harness.put('acme:ann', summary('s1', [1, 3]))
    expect((await harness.forget({ key: 'acme:ann', messageId: 'm2' })).sessions).toEqual([
      { key: 'acme:ann', entries: ['m2', 's1'] },
    ])
    expect(await harness.derived('acme:ann')).toEqual([])
  })

  verifies('X-05', 'discards a rebuilt summary if another one covers its messages meanwhile', async () => {
    for (const [covers, ids] of [
      [[3, 3], ['new']],
      [
        [4, 4],
        ['new', 's1'],
      ],
    ] as const) {
      const harness = await open({ 'acme:ann': ['one', 'two', 'three', 'four'] })
      await harness.put('acme:ann', summary('s1', [1, 3]))
      harness.onRederive = () => harness.put('acme:ann', summary('new', covers))
      await harness.forget({ key: 'acme:ann', messageId: 'm2' })
      expect((await harness.derived('acme:ann')).map(({ id }) => id)).toEqual(ids)
    }
  })

  verifies('X-05', 'rebuilds entries without messages that another call forgets meanwhile', async () => {
    const harness = await open()
    const sources = ['m1', 'm2', 'm3'].map((message) => ({ session: 'ann', message }))
    await harness.put('acme:ann', summary('s1', [1, 3]))
    await harness.put('acme', knowledge('k1', { sources }))
    harness.onRederive = async () => {
      harness.onRederive = async () => undefined
      await harness.forget({ key: 'acme:ann', messageId: 'm2' })
    }
    await harness.forget({ key: 'acme:ann', messageId: 'm1' })
    expect(new Map(harness.rebuilds)).toEqual(
      new Map([
        ['s1', ['three']],
        ['k1', ['three']],
      ]),
    )
  })

  verifies('X-05', 'rebuilds nothing in a session that is erased meanwhile', async () => {
    const harness = await open()
    await harness.put('acme:ann', summary('s1', [1, 3]))
    harness.onRederive = async () => void (await harness.store.erase(parseKey('acme:ann')))
    await harness.forget({ key: 'acme:ann', messageId: 'm2' })
    expect(await harness.derived('acme:ann')).toEqual([])
  })

  verifies('X-05', 'erases what upkeep derives from them until they are erased', async () => {
    const harness = await open()
    await harness.put('acme:ann', fact('f1', 'm2'))
    let isFirst = true
    harness.sessions = new Proxy(harness.store, {
      get: (store, name) => {
        const member = Reflect.get(store, name)
        if (name !== 'erase') return typeof member === 'function' ? member.bind(store) : member
        return async (...args: Parameters<Store['erase']>) => {
          if (isFirst) await harness.put('acme:ann', fact('meanwhile', 'm2'))
          isFirst = false
          return store.erase(...args)
        }
      },
    })
    await harness.forget({ key: 'acme:ann', messageId: 'm2' })
    expect(await harness.derived('acme:ann')).toEqual([])
    expect(harness.rebuilds.map(([id]) => id)).toEqual(['f1', 'meanwhile'])
  })

  verifies(['X-05', 'X-10'], 'restores the fact that the forgotten one had superseded', async () => {
    const harness = await open()
    await harness.put(
      'acme:ann',
      fact('f1', 'm1', { until: 20 }),
      fact('f2', 'm2', { supersedes: 'f1', until: 30 }),
      fact('f3', 'm3', { supersedes: 'f2' }),
    )
    const { sessions } = await harness.forget({ key: 'acme:ann', messageId: 'm2' })
    expect(sessions).toEqual([{ key: 'acme:ann', entries: ['m2', 'f2'], rebuilt: ['f1', 'f3'] }])
    const rest = new Map((await harness.derived<Fact>('acme:ann')).map((entry) => [entry.id, entry]))
    expect([rest.size, rest.get('f1')?.until, rest.get('f3')?.supersedes]).toEqual([2, 30, 'f1'])
  })

  verifies(['X-05', 'X-10'], 'restores the fact before a chain of forgotten ones as the current one', async () => {
    const harness = await open()
    await harness.put(
      'acme:ann',
      fact('f1', 'm1', { until: 20 }),
      fact('f2', 'm2', { supersedes: 'f1', until: 30 }),
      fact('f3', 'm3', { supersedes: 'f2' }),
    )
    await harness.forget({ key: 'acme:ann', messageIds: ['m2', 'm3'] })
    const [rest, ...others] = await harness.derived<Fact>('acme:ann')
    expect([rest?.id, others]).toEqual(['f1', []])
    expect(rest).not.toHaveProperty('until')
    await harness.put('acme:ann', fact('f4', 'm1', { key: 'dog' }))
    await harness.forget({ key: 'acme:ann', messageId: 'm1' })
    expect(await harness.derived('acme:ann')).toEqual([])
  })

  verifies('X-05', 'lowers the number of facts that are expected, never raises it', async () => {
    const notes: UpkeepNotes = { kind: 'notes', id: 'notes', at: 1, sources: [], facts: 3 }
    const expected = async (facts: number | undefined) => {
      const harness = await open()
      const { facts: _, ...other } = notes
      await harness.put(
        'acme:ann',
        fact('f1', 'm1'),
        facts === undefined ? other : { ...notes, facts },
        fact('f2', 'm2'),
        fact('f3', 'm3'),
      )
      await harness.forget({ key: 'acme:ann', messageId: 'm2' })
      return (await harness.derived<UpkeepNotes>('acme:ann')).find(({ kind }) => kind === 'notes')?.facts
    }
    expect([
      await expected(3),
      await expected(2),
      await expected(1),
      await expected(0),
      await expected(undefined),
    ]).toEqual([2, 2, 1, 0, undefined])
  })

  verifies(['X-05', 'X-08'], 'drops the secrets that no other message contains', async () => {
    const harness = await open({ 'acme:ann': ['a ⟨secret:1⟩ b ⟨secret:2⟩', '⟨secret:2⟩ ⟨secret:3⟩'] })
    await harness.forget({ key: 'acme:ann', messageId: 'm3' })
    expect(harness.masker).toEqual([])
    harness.secrets = true
    await harness.forget({ key: 'acme:ann', messageId: 'm1' })
    expect(harness.masker).toEqual(['ann ⟨secret:1⟩'])
  })

  it('with a person › forgets an entry of that person', async () => {
    const harness = await open()
    const person = personKey('acme', 'ann')
    await putEntries(harness.store, person, [knowledge('k1'), knowledge('k2')])
    harness.sessions = ramStore()
    expect((await harness.forget({ key: 'acme', messageId: 'k1', person: 'ann' })).sessions).toEqual([
      { key: 'acme::person:ann', entries: ['k1'] },
    ])
    expect((await harness.store.readHead(person, 0)).derived.map(({ id }) => id)).toEqual(['k2'])
  })
})

describe('forgetting a session', () => {
  verifies('X-05', 'erases it with its branches and secrets, and no other session', async () => {
    const harness = await open({ 'acme:ann': ['one'], 'acme:anna': ['two'], 'other:ann': ['three'] })
    await storeMessages(harness.store, branchKey(parseKey('acme:ann'), 1), ['branch'])
    harness.branches = ['1']
    expect((await harness.forget({ key: 'acme:ann' })).sessions).toEqual([
      { key: 'acme:ann', entries: ['m1'] },
      { key: 'acme:ann:1', entries: ['m1'] },
    ])
    expect(harness.masker).toEqual(['drop acme ann'])
    for (const key of ['acme:anna', 'other:ann']) expect(await listIds(harness.store, parseKey(key))).toEqual(['m1'])
  })

  verifies(['X-05', 'A-03'], 'keeps stated knowledge that another session stated too, without its name', async () => {
    const harness = await open({ 'acme:ann': ['one'], 'acme:bob': ['two'] })
    const from = (...sessions: readonly string[]) => sessions.map((session) => ({ message: '', session }))
    await harness.put(
      'acme',
      knowledge('both', { sources: from('ann', 'bob'), statedBy: ['ann', 'bob'], usedBy: ['ann'] }),
      knowledge('only', { sources: from('ann'), statedBy: ['ann'] }),
      knowledge('learned', {
        origin: 'learned',
        sources: [
          { message: 'm1', session: 'ann' },
          { message: 'm1', session: 'bob' },
        ],
      }),
      knowledge('used', { usedBy: ['ann', 'bob'] }),
      knowledge('stated', { statedBy: ['bob', 'ann'] }),
      knowledge('other', { statedBy: ['bob'] }),
    )
    const { sessions } = await harness.forget({ key: 'acme:ann' })
    expect(sessions).toEqual([
      { key: 'acme', entries: ['both', 'only', 'learned'], rebuilt: ['both', 'learned'] },
      { key: 'acme:ann', entries: ['m1'] },
    ])
    const rest = new Map((await harness.derived<Knowledge>('acme')).map(({ id, ...entry }) => [id, entry]))
    expect(JSON.stringify([...rest])).not.toContain('ann')
    expect([...rest.keys()].sort()).toEqual(['both', 'learned', 'other', 'stated', 'used'])
    expect(rest.get('both')).toMatchObject({ sources: from('bob'), statedBy: ['bob'], usedBy: [] })
    expect(rest.get('learned')).toMatchObject({ sources: [{ message: 'm1', session: 'bob' }] })
    expect(rest.get('learned')).not.toHaveProperty('statedBy')
    expect([rest.get('used')?.usedBy, rest.get('stated')?.statedBy, rest.get('other')?.statedBy]).toEqual([
      ['bob'],
      ['bob'],
      ['bob'],
    ])
    expect(harness.rebuilds).toEqual([])
  })

  verifies('X-05', 'rebuilds knowledge derived from messages from those of the other sessions', async () => {
    const harness = await open({ 'acme:ann': ['one'], 'acme:bob': ['two', 'three'] })
    const sources = [
      { message: 'm1', session: 'ann' },
      { message: 'm2', session: 'bob' },
    ]
    await harness.put('acme', knowledge('k1', { sources }), knowledge('k2', { sources: sources.slice(1) }))
    await harness.forget({ key: 'acme:ann' })
    expect(harness.rebuilds).toEqual([['k1', ['three']]])
    expect((await harness.derived('acme')).map(({ id }) => id)).toEqual(['k2'])
  })

  verifies('X-05', 'of the scope itself › erases it in the store of the scope', async () => {
    const harness = await open({ acme: ['one'], 'acme:ann': ['two'] })
    harness.sessions = ramStore()
    await harness.put('acme', knowledge('k1', { statedBy: [''] }))
    expect((await harness.forget({ key: 'acme' })).sessions).toEqual([{ key: 'acme', entries: ['m1', 'k1'] }])
    expect(await listIds(harness.store, parseKey('acme:ann'))).toEqual(['m1'])
  })
})

describe('forgetting without masking and limits', () => {
  verifies('X-05', 'erases messages, sessions, texts and scopes alike', async () => {
    const store = ramStore()
    const forget = (target: ForgetTarget) =>
      new ForgetOperation({ sessions: store, store }, async () => undefined).forget(target, 77)
    for (const key of ['acme:ann', 'acme:bob', 'acme:eve']) await storeMessages(store, parseKey(key), ['one', 'two'])
    expect((await forget({ key: 'acme:ann', messageId: 'm1' })).sessions).toEqual([
      { key: 'acme:ann', entries: ['m1'] },
    ])
    expect((await forget({ key: 'acme:bob' })).sessions).toEqual([{ key: 'acme:bob', entries: ['m1', 'm2'] }])
    expect((await forget({ scope: 'acme', text: 'one' })).sessions).toEqual([{ key: 'acme:eve', entries: ['m1'] }])
    expect((await forget({ scope: 'acme' })).sessions.map(({ key }) => key).sort()).toEqual(['acme:ann', 'acme:eve'])
  })
})

describe('forgetting a scope', () => {
  verifies('X-05', 'erases all its sessions in both stores, and no scope with a similar name', async () => {
    const harness = await open({ acme: ['one'], 'acme:ann': ['two'], 'acme-2:ann': ['three'], 'acm:e': ['four'] })
    harness.sessions = ramStore()
    await storeMessages(harness.sessions, parseKey('acme:bob'), ['five', 'six'])
    const { sessions } = await harness.forget({ scope: 'acme' })
    expect(sessions.map(({ key, entries }) => `${key} ${entries.length}`).sort()).toEqual([
      'acme 1',
      'acme:ann 1',
      'acme:bob 2',
    ])
    expect(harness.masker).toEqual(['drop acme *'])
    for (const key of ['acme-2:ann', 'acm:e']) expect(await listIds(harness.store, parseKey(key))).toEqual(['m1'])
  })
})

describe('forgetting a text', () => {
  verifies('X-05', 'erases entries that contain it or its placeholder, in all sessions of the scope', async () => {
    const harness = await open({
      'acme:ann': ['My cat', 'the dog', 'word: ⟨secret:1⟩'],
      'acme:bob': ['a CAT too'],
      'other:eve': ['her cat'],
    })
    await harness.put('acme', knowledge('k1', { value: 'likes cats' }), knowledge('k2', { value: 'likes dogs' }))
    await harness.put('acme:ann', fact('f1', 'm1'), summary('s1', [3, 3], { text: 'No pets.' }))
    const erased = async (text: string) =>
      Object.fromEntries(
        (await harness.forget({ scope: 'acme', text })).sessions.map(({ key, entries }) => [key, entries]),
      )
    expect(await erased('cat')).toEqual({ acme: ['k1'], 'acme:ann': ['m1', 'f1'], 'acme:bob': ['m1'] })
    expect(await erased('hunter2')).toEqual({ 'acme:ann': ['m3', 's1'] })
    expect(await erased('zebra')).toEqual({})
    expect(await listIds(harness.store, parseKey('other:eve'))).toEqual(['m1'])
  })

  verifies('X-05', 'erases the remains of damaged entries, also if no entry contains it', async () => {
    const harness = await open()
    const erasures: [string, EraseFilter | undefined][] = []
    harness.sessions = new Proxy(harness.store, {
      get: (store, name) => {
        const member = Reflect.get(store, name)
        if (name !== 'erase') return typeof member === 'function' ? member.bind(store) : member
        return async (key: Parameters<Store['erase']>[0], only?: EraseFilter) => {
          erasures.push([key.scope + key.id, only])
          return store.erase(key, only)
        }
      },
    })
    await harness.forget({ scope: 'acme', text: 'zebra' })
    expect(erasures).toEqual([['acme', { remains: true }]])
  })

  it('that is blank › is refused and nothing is erased', async () => {
    const harness = await open()
    for (const text of ['', ' \n', undefined as unknown as string])
      await expect(harness.forget({ scope: 'acme', text })).rejects.toMatchObject({
        code: 'bad-option',
        param: 'text',
      })
    expect(await listIds(harness.store, parseKey('acme:ann'))).toEqual(['m1', 'm2', 'm3'])
  })
})

describe('forgetting in a store that fails', () => {
  /** A store that erases and then throws. */
  const failing = (store: ReturnType<typeof ramStore>, error: Error): Store =>
    new Proxy(store, {
      get: (_, name) => {
        const member = Reflect.get(store, name)
        if (name !== 'erase') return typeof member === 'function' ? member.bind(store) : member
        return async (...args: Parameters<Store['erase']>) => {
          await store.erase(...args)
          throw error
        }
      },
    })

  verifies('X-05', 'to clean up › rebuilds first, then reports it', async () => {
    const harness = await open()
    await harness.put('acme:ann', summary('s1', [1, 3]))
    const busy = new MemoryError('busy', 'The file is in use.')
    harness.sessions = failing(harness.store, busy)
    await expect(harness.forget({ key: 'acme:ann', messageId: 'm2' })).rejects.toBe(busy)
    expect(await harness.derived('acme:ann')).toMatchObject([{ id: 's1', text: 'Rebuilt.' }])
  })

  verifies('X-05', 'to erase › stops at once', async () => {
    for (const error of [
      new MemoryError('full', 'The disk is full.'),
      Object.assign(new Error('busy'), { code: 'busy' }),
    ]) {
      const harness = await open()
      await harness.put('acme:ann', summary('s1', [1, 3]))
      harness.sessions = failing(harness.store, error)
      await expect(harness.forget({ key: 'acme:ann', messageId: 'm2' })).rejects.toBe(error)
      expect(harness.rebuilds).toEqual([])
    }
  })
})
