import { describe, expect } from 'vitest'
import type { Fact } from '../../src/domain/entry.ts'
import { parseKey } from '../../src/domain/key.ts'
import { type Memory, type MessageInput, openMemory, profiles } from '../../src/index.ts'
import { openaiModel } from '../../src/providers/openai.ts'
import { openStore } from '../../src/stores/open.ts'
import { type RecordedRequest, replyWith, startUpstream } from '../providers/upstream.ts'
import { verifies } from '../requirements/verifies.ts'
import { assistant, user } from '../server/start.ts'
import { createTempPaths } from '../stores/tempPaths.ts'
import { databaseFiles, findTraces } from '../stores/traces.ts'
import { appendAlternating } from './sampleTurns.ts'
import { purposeOf, runTurnsUntil } from './upkeepHarness.ts'

const fresh = createTempPaths()
const key = 'acme:ann'
const hour = 3_600_000
const start = Date.UTC(2026, 2, 2, 9)
let now = start

/** Unremarkable text, long enough that everything before it is summarised. */
const filler: readonly MessageInput[] = Array.from({ length: 24 }, (_, place) =>
  assistant(`Chapter ${place}. ${'The hills are green and the rivers run to the sea. '.repeat(20)}`),
)

/** A long chat with an hour between messages, of which all but the end is summarised. */
async function openChat(
  file: string,
  contents: readonly string[],
  options: Parameters<typeof openMemory>[0] = {},
): Promise<Memory> {
  now = start
  const memory = await openMemory({ profile: 'summary', store: `sqlite:${file}`, clock: () => now, ...options })
  for (const content of contents) {
    await memory.append(key, [user(content)])
    now += hour
  }
  await memory.append(key, [...filler, user('What comes next?')])
  await memory.upkeep.whenIdle()
  return memory
}

/** Everything memory reveals of the session: derived entries, the context and search results. */
async function everythingAbout(memory: Memory, word: string): Promise<string> {
  const { upkeep } = memory
  const derived = [
    await upkeep.record(key),
    await upkeep.summaries(key),
    await upkeep.facts(key, { history: true }),
    await upkeep.losses(key),
  ]
  return JSON.stringify([
    derived,
    await memory.context(key),
    await memory.context(key, { query: word }),
    await memory.search('acme', word),
    await memory.trace(key),
  ])
}

const cat = 'My cat is called Zephyrine and was found in Juniper Lane. It is grey.'
const dog = 'My dog is called Halcyon and was found in harbour 9032. Never feed it onions.'

describe('forgetting a summarised message', () => {
  verifies(
    'X-05',
    'rebuilds the summary without it by the built-in rules and deletes its facts and every byte of it',
    async () => {
      const file = fresh()
      const memory = await openChat(file, ['Hello there.', cat, dog])
      const before = await memory.upkeep.summaries(key)
      expect(
        before.map(({ text, by, covers }) => [text.includes('Zephyrine'), text.includes('Halcyon'), by, covers[0]]),
      ).toEqual([[true, true, 'builtin', 1]])
      expect(
        (await memory.upkeep.facts(key)).filter(({ sources }) => sources.some(({ message }) => message === 'm2'))
          .length,
      ).toBeGreaterThan(0)

      const forgotten = await memory.forget({ key, messageId: 'm2' })
      const [session] = forgotten.sessions
      expect([forgotten.sessions.length, session?.key, session?.entries.includes('m2'), session?.rebuilt]).toEqual([
        1,
        key,
        true,
        ['summary'],
      ])
      const after = await memory.upkeep.summaries(key)
      expect(after.map(({ id, text, by, covers }) => [id, text.includes('Halcyon'), by, covers])).toEqual([
        ['summary', true, 'builtin', before[0]?.covers],
      ])
      for (const word of ['Zephyrine', 'Juniper Lane']) {
        // The query itself is not stored data.
        expect(await everythingAbout(memory, word.slice(1))).not.toContain(word)
        expect(findTraces(word, databaseFiles(file))).toEqual([])
      }
      expect((await memory.upkeep.facts(key)).map(({ value }) => value)).toContain(
        'My dog is called Halcyon and was found in harbour 9032',
      )
      await memory.close()
      expect(findTraces('Zephyrine', databaseFiles(file))).toEqual([])
    },
  )

  verifies('X-05', "rebuilds a model's summary without calling the model again", async () => {
    const file = fresh()
    const model = (request: RecordedRequest) =>
      purposeOf(request) === 'summary'
        ? replyWith(`${cat} ${dog} The hills are green and the rivers run to the sea.`)
        : replyWith(JSON.stringify({ important_facts: ['My cat is called Zephyrine', 'My dog is called Halcyon'] }))
    await using upstream = await startUpstream(model)
    const memory = await openChat(file, ['Hello there.', cat, dog], {
      model: openaiModel({ baseUrl: upstream.url, model: 'scribe' }),
    })
    const before = await memory.upkeep.summaries(key)
    expect(before.map(({ by, text }) => [by, text.includes('Zephyrine')])).toEqual([['scribe', true]])
    const asked = upstream.requests.length
    await memory.forget({ key, messageId: 'm2' })
    const after = await memory.upkeep.summaries(key)
    expect(after.map(({ by, text }) => [by, text.includes('Zephyrine'), text.includes('Halcyon')])).toEqual([
      ['builtin', false, true],
    ])
    expect(upstream.requests.length).toBe(asked)
    expect(await everythingAbout(memory, 'Zephyrine')).not.toMatch(/Zephyrine|Juniper/)
    await memory.close()
    for (const word of ['Zephyrine', 'Juniper Lane']) expect(findTraces(word, databaseFiles(file))).toEqual([])
  })

  verifies('X-05', 'reaches summaries that were built on earlier summaries', async () => {
    const file = fresh()
    const memory = await openChat(file, ['Hello there.', cat, dog])
    for (let version = 2; version <= 4; version++) {
      await memory.append(key, [...filler, user(`What comes after ${version}?`)])
      await memory.upkeep.whenIdle()
    }
    const [before] = await memory.upkeep.summaries(key)
    expect([before?.version, before?.text.includes('Zephyrine')]).toEqual([4, true])
    await memory.forget({ scope: 'acme', text: 'zephyrine' })
    expect(
      (await memory.upkeep.summaries(key)).map(({ text, version }) => [text.includes('Halcyon'), version]),
    ).toEqual([[true, 4]])
    expect(await everythingAbout(memory, 'Zephyrine')).not.toMatch(/Zephyrine|Juniper/)
    await memory.close()
    expect(findTraces('Zephyrine', databaseFiles(file))).toEqual([])
  })

  verifies(['X-05', 'T-04'], 'reaches hourly and session summaries', async () => {
    /** Each customer has a unique name. */
    const name = (number: number): string =>
      `Zeph${String.fromCharCode(97 + Math.floor(number / 26))}ry${String.fromCharCode(97 + (number % 26))}n`
    for (const days of [0, 1]) {
      const file = fresh()
      now = start
      const memory = await openMemory({
        profile: { ...profiles.support, durability: 'durable' },
        store: `sqlite:${file}`,
        clock: () => now,
      })
      await memory.append(
        key,
        Array.from({ length: 60 }, (_, at) => user(`${name(at + 1)} waits for parcels from the depot.`)),
      )
      await memory.upkeep.whenIdle()
      now += days * 23 * hour
      await memory.append(key, [user('Is anybody there?')])
      now += days * 3 * hour
      await memory.append(key, [user('Hello?')])
      await memory.upkeep.whenIdle()
      const before = await memory.upkeep.summaries(key)
      expect(before.map(({ tier, covers }) => [tier, covers])).toEqual([[days === 0 ? 'hour' : 'session', [1, 20]]])
      const known = Array.from({ length: 20 }, (_, at) => at + 1).filter((number) =>
        before[0]?.text.includes(name(number)),
      )
      const [gone = 0] = known
      expect(gone).toBeGreaterThan(0)
      await memory.forget({ key, messageId: `m${gone}` })
      const after = await memory.upkeep.summaries(key)
      expect(after.map(({ tier, covers, by, text }) => [tier, covers, by, text.includes('Zeph')])).toEqual([
        [before[0]?.tier, [1, 20], 'builtin', true],
      ])
      expect(await everythingAbout(memory, 'depot')).not.toContain(name(gone))
      await memory.close()
      expect(findTraces(name(gone), databaseFiles(file))).toEqual([])
    }
  })

  verifies(['X-05', 'A-08'], 'removes it from long-term memory', async () => {
    const file = fresh()
    now = start
    const store = await openStore(`sqlite:${file}`)
    const memory = await openMemory({ profile: 'agent', store, clock: () => now })
    const items = async () =>
      (await store.readHead(parseKey(key), 0)).derived.flatMap((entry) =>
        entry.kind === 'item' ? [entry.content] : [],
      )
    await memory.append(key, [
      user('The shop is at https://zephyrine.example/cart now.'),
      user('The blog is at https://halcyon.example/blog now.'),
    ])
    now += 2 * 60_000
    await memory.sweep(now)
    await memory.upkeep.whenIdle()
    expect((await items()).length).toBe(2)
    expect((await memory.forget({ key, messageId: 'm1' })).sessions).toEqual([{ key, entries: ['m1', 'im1'] }])
    expect(await items()).toEqual(['The blog is at https://halcyon.example/blog now.'])
    await memory.close()
    expect(findTraces('zephyrine', databaseFiles(file))).toEqual([])
  })
})

describe('a fact whose message is forgotten', () => {
  const teas = (facts: readonly Fact[]): unknown[] =>
    facts
      .filter((fact) => fact.key === 'favorite_tea')
      .map(({ value, until, sources }) => [
        value,
        until === undefined ? 'holds' : until - start,
        ...sources.map(({ message }) => message),
      ])

  verifies(
    ['X-05', 'X-09'],
    'is derived again from another message that says the same, citing only that one',
    async () => {
      const statement = 'My favourite tea is Genmaicha.'
      await using memory = await openChat(fresh(), [statement, 'Hello there.', `As I said: ${statement}`, statement])
      expect(teas(await memory.upkeep.facts(key))).toEqual([['Genmaicha', 'holds', 'm1', 'm3', 'm4']])
      await memory.forget({ key, messageId: 'm1' })
      const facts = (await memory.upkeep.facts(key)).filter((fact) => fact.key === 'favorite_tea')
      expect(facts.map(({ value }) => value)).toEqual(['Genmaicha'])
      const transcript = await memory.transcript(key)
      for (const { message, span = [0, 0] } of facts[0]?.sources ?? []) {
        expect(['m3', 'm4']).toContain(message)
        expect(transcript.find(({ id }) => id === message)?.content.slice(...span)).toContain(
          'My favourite tea is Genmaicha',
        )
      }
      expect(facts[0]?.sources.length).toBeGreaterThan(0)
      await memory.forget({ key, messageId: 'm3' })
      await memory.forget({ key, messageId: 'm4' })
      expect(teas(await memory.upkeep.facts(key, { history: true }))).toEqual([])
    },
  )

  const three = ['My favourite tea is Lapsang.', 'My favourite tea is Genmaicha.', 'My favourite tea is Rooibos.']

  verifies(['X-05', 'X-10'], 'restores the value it had superseded', async () => {
    const file = fresh()
    const memory = await openChat(file, three.slice(0, 2))
    expect(teas(await memory.upkeep.facts(key, { history: true }))).toEqual([
      ['Lapsang', hour, 'm1'],
      ['Genmaicha', 'holds', 'm2'],
    ])
    await memory.forget({ key, messageId: 'm2' })
    expect(teas(await memory.upkeep.facts(key, { history: true }))).toEqual([['Lapsang', 'holds', 'm1']])
    expect(await everythingAbout(memory, 'Genmaicha')).not.toContain('is Genmaicha')
    await memory.close()
    expect(findTraces('Genmaicha', databaseFiles(file))).toEqual([])
  })

  verifies(
    ['X-05', 'X-10'],
    'and that had itself been superseded › leaves no gap in time, and its successor holds',
    async () => {
      await using memory = await openChat(fresh(), three)
      await memory.forget({ key, messageId: 'm2' })
      const teaAt = async (asOf: number) =>
        teas(await memory.upkeep.facts(key, { asOf })).map((tea) => (tea as unknown[])[0])
      expect([await teaAt(start), await teaAt(start + hour), await teaAt(start + 2 * hour), await teaAt(now)]).toEqual([
        ['Lapsang'],
        ['Lapsang'],
        ['Rooibos'],
        ['Rooibos'],
      ])
    },
  )

  for (const order of [
    ['m2', 'm3'],
    ['m3', 'm2'],
  ] as const)
    verifies(
      ['X-05', 'X-10'],
      `${order.join(' then ')} of three values forgotten › the first value holds`,
      async () => {
        await using memory = await openChat(fresh(), three)
        for (const messageId of order) await memory.forget({ key, messageId })
        expect(teas(await memory.upkeep.facts(key, { history: true }))).toEqual([['Lapsang', 'holds', 'm1']])
        expect((await memory.upkeep.record(key)).important_data.user_preferences).toMatchObject({
          favorite_tea: 'Lapsang',
        })
      },
    )

  verifies(['X-05', 'X-10'], 'the oldest value forgotten › the later ones are unchanged', async () => {
    await using memory = await openChat(fresh(), three)
    await memory.forget({ key, messageId: 'm1' })
    expect(teas(await memory.upkeep.facts(key, { history: true }))).toEqual([
      ['Genmaicha', 2 * hour, 'm2'],
      ['Rooibos', 'holds', 'm3'],
    ])
  })
})

const longRemark = (place: number): string =>
  `Remark ${place}: ${'some ordinary words that fill the window here. '.repeat(12)}`

describe('a forgotten fact', () => {
  const statePreference = async (memory: Memory, contents: string): Promise<void> => {
    await memory.append(key, [user(contents)])
    await appendAlternating(memory, 40, longRemark)
  }
  const themes = async (memory: Memory, history = false): Promise<unknown[]> =>
    (await memory.upkeep.facts(key, { history }))
      .filter((fact) => fact.key === 'theme')
      .map(({ value, until }) => [value, until])

  for (const how of ['by what it says', 'by its id'] as const)
    verifies('X-05', `${how} › is not derived again with the next message`, async () => {
      await using memory = await openMemory({ profile: 'summary', store: `sqlite:${fresh()}` })
      await statePreference(memory, 'I prefer dark mode.')
      expect(await themes(memory)).toEqual([['dark', undefined]])
      const [fact] = await memory.upkeep.facts(key)
      await memory.forget(how === 'by its id' ? { key, messageId: fact?.id ?? '' } : { scope: 'acme', text: 'theme' })
      expect(await themes(memory, true)).toEqual([])
      await appendAlternating(memory, 2, longRemark)
      expect(await themes(memory, true)).toEqual([])
    })

  verifies(['X-10', 'X-05'], 'together with the one it superseded › restores the value before both', async () => {
    await using memory = await openMemory({ profile: 'summary', store: `sqlite:${fresh()}` })
    await statePreference(memory, 'I prefer dark mode.')
    await statePreference(memory, 'I prefer light mode for Zorg.')
    await statePreference(memory, 'I prefer solarized theme for Zorg.')
    expect((await themes(memory, true)).length).toBe(3)
    await memory.forget({ scope: 'acme', text: 'zorg' })
    expect(await themes(memory, true)).toEqual([['dark', undefined]])
    await appendAlternating(memory, 4, longRemark)
    expect(await themes(memory)).toEqual([['dark', undefined]])
  })
})

describe('the session record', () => {
  verifies('X-05', 'after forgetting messages › no longer counts them', async () => {
    await using memory = await openMemory({ profile: 'summary', store: `sqlite:${fresh()}` })
    const turns = await runTurnsUntil(memory, key, 2, 0)
    const { messages_summarized_count: count, ...before } = await memory.upkeep.record(key)
    expect([count > 20, count < 2 * turns, before.last_keep_window_index]).toEqual([true, true, count])
    for (let number = 2; number <= 11; number++) await memory.forget({ key, messageId: `m${number}` })
    const { messages_summarized_count: left, ...after } = await memory.upkeep.record(key)
    expect([left, after.last_keep_window_index, after.summary_version]).toEqual([
      count - 10,
      before.last_keep_window_index,
      2,
    ])
  })
})
