import { describe, expect } from 'vitest'
import type { Fact } from '../../src/domain/entry.ts'
import { parseKey } from '../../src/domain/key.ts'
import { type Incoming, type Memory, openMemory, profiles } from '../../src/index.ts'
import { openaiModel } from '../../src/providers/openai.ts'
import { openStore } from '../../src/stores/open.ts'
import { type Received, replies, startUpstream } from '../providers/upstream.ts'
import { verifies } from '../requirements/verifies.ts'
import { assistant, user } from '../server/start.ts'
import { freshFiles } from '../stores/tempPaths.ts'
import { databaseFiles, tracesOf } from '../stores/traces.ts'
import { purposeOf } from './stage.ts'

const fresh = freshFiles()
const key = 'acme:ann'
const hour = 3_600_000
const start = Date.UTC(2026, 2, 2, 9)
let now = start

/** Nothing of importance, long enough that all before it is summed up. */
const filler: readonly Incoming[] = Array.from({ length: 24 }, (_, place) =>
  assistant(`Chapter ${place}. ${'The hills are green and the rivers run to the sea. '.repeat(20)}`),
)

/** A long chat, an hour between two messages, of which everything but the end is summed up. */
async function chat(
  file: string,
  said: readonly string[],
  options: Parameters<typeof openMemory>[0] = {},
): Promise<Memory> {
  now = start
  const memory = await openMemory({ profile: 'summary', store: `sqlite:${file}`, clock: () => now, ...options })
  for (const content of said) {
    await memory.append(key, [user(content)])
    now += hour
  }
  await memory.append(key, [...filler, user('What comes next?')])
  await memory.upkeep.settled()
  return memory
}

/** Everything memory tells of the session: what is derived, what is shown, what is found. */
async function told(memory: Memory, word: string): Promise<string> {
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

describe('forgetting a message that was summed up', () => {
  verifies(
    'X-05',
    'makes the summary anew without it, by the built-in rules, and takes its facts; no byte of it stays',
    async () => {
      const file = fresh()
      const memory = await chat(file, ['Hello there.', cat, dog])
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
      expect([forgotten.sessions.length, session?.key, session?.entries.includes('m2'), session?.renewed]).toEqual([
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
        // The question itself is no memory.
        expect(await told(memory, word.slice(1))).not.toContain(word)
        expect(tracesOf(word, databaseFiles(file))).toEqual([])
      }
      expect((await memory.upkeep.facts(key)).map(({ value }) => value)).toContain(
        'My dog is called Halcyon and was found in harbour 9032',
      )
      await memory.close()
      expect(tracesOf('Zephyrine', databaseFiles(file))).toEqual([])
    },
  )

  verifies('X-05', 'makes what a model has summed up anew without asking it again', async () => {
    const file = fresh()
    const model = (request: Received) =>
      purposeOf(request) === 'summary'
        ? replies(`${cat} ${dog} ${'The assistant then spoke of hills and rivers at length. '.repeat(12)}`)
        : replies(JSON.stringify({ important_facts: ['My cat is called Zephyrine', 'My dog is called Halcyon'] }))
    await using upstream = await startUpstream(model)
    const memory = await chat(file, ['Hello there.', cat, dog], {
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
    expect(await told(memory, 'Zephyrine')).not.toMatch(/Zephyrine|Juniper/)
    await memory.close()
    for (const word of ['Zephyrine', 'Juniper Lane']) expect(tracesOf(word, databaseFiles(file))).toEqual([])
  })

  verifies('X-05', 'reaches summaries that were made of earlier summaries', async () => {
    const file = fresh()
    const memory = await chat(file, ['Hello there.', cat, dog])
    for (let version = 2; version <= 4; version++) {
      await memory.append(key, [...filler, user(`What comes after ${version}?`)])
      await memory.upkeep.settled()
    }
    const [before] = await memory.upkeep.summaries(key)
    expect([before?.version, before?.text.includes('Zephyrine')]).toEqual([4, true])
    await memory.forget({ scope: 'acme', text: 'zephyrine' })
    expect(
      (await memory.upkeep.summaries(key)).map(({ text, version }) => [text.includes('Halcyon'), version]),
    ).toEqual([[true, 4]])
    expect(await told(memory, 'Zephyrine')).not.toMatch(/Zephyrine|Juniper/)
    await memory.close()
    expect(tracesOf('Zephyrine', databaseFiles(file))).toEqual([])
  })

  verifies(['X-05', 'T-04'], 'reaches the summaries of hours and of the session', async () => {
    /** Each customer has a name of its own. */
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
      await memory.upkeep.settled()
      now += days * 23 * hour
      await memory.append(key, [user('Is anybody there?')])
      now += days * 3 * hour
      await memory.append(key, [user('Hello?')])
      await memory.upkeep.settled()
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
      expect(await told(memory, 'depot')).not.toContain(name(gone))
      await memory.close()
      expect(tracesOf(name(gone), databaseFiles(file))).toEqual([])
    }
  })

  verifies(['X-05', 'A-08'], 'takes it out of long-term memory', async () => {
    const file = fresh()
    now = start
    const store = await openStore(`sqlite:${file}`)
    const memory = await openMemory({ profile: 'agent', store, clock: () => now })
    const items = async () =>
      (await store.head(parseKey(key), 0)).derived.flatMap((entry) => (entry.kind === 'item' ? [entry.content] : []))
    await memory.append(key, [
      user('The shop is at https://zephyrine.example/cart now.'),
      user('The blog is at https://halcyon.example/blog now.'),
    ])
    now += 2 * 60_000
    await memory.sweep(now)
    await memory.upkeep.settled()
    expect((await items()).length).toBe(2)
    expect((await memory.forget({ key, messageId: 'm1' })).sessions).toEqual([{ key, entries: ['m1', 'im1'] }])
    expect(await items()).toEqual(['The blog is at https://halcyon.example/blog now.'])
    await memory.close()
    expect(tracesOf('zephyrine', databaseFiles(file))).toEqual([])
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

  verifies(['X-05', 'X-09'], 'is found again in another message that says the same, and cites it alone', async () => {
    const said = 'My favourite tea is Genmaicha.'
    await using memory = await chat(fresh(), [said, 'Hello there.', `As I said: ${said}`, said])
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
  })

  const three = ['My favourite tea is Lapsang.', 'My favourite tea is Genmaicha.', 'My favourite tea is Rooibos.']

  verifies(['X-05', 'X-10'], 'leaves what it had superseded to hold again', async () => {
    const file = fresh()
    const memory = await chat(file, three.slice(0, 2))
    expect(teas(await memory.upkeep.facts(key, { history: true }))).toEqual([
      ['Lapsang', hour, 'm1'],
      ['Genmaicha', 'holds', 'm2'],
    ])
    await memory.forget({ key, messageId: 'm2' })
    expect(teas(await memory.upkeep.facts(key, { history: true }))).toEqual([['Lapsang', 'holds', 'm1']])
    expect(await told(memory, 'Genmaicha')).not.toContain('is Genmaicha')
    await memory.close()
    expect(tracesOf('Genmaicha', databaseFiles(file))).toEqual([])
  })

  verifies(
    ['X-05', 'X-10'],
    'that had been superseded itself leaves no gap in time, and what superseded it holds',
    async () => {
      await using memory = await chat(fresh(), three)
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
      `leaves the first of three values to hold when ${order.join(' and then ')} are forgotten`,
      async () => {
        await using memory = await chat(fresh(), three)
        for (const messageId of order) await memory.forget({ key, messageId })
        expect(teas(await memory.upkeep.facts(key, { history: true }))).toEqual([['Lapsang', 'holds', 'm1']])
        expect((await memory.upkeep.record(key)).important_data.user_preferences).toMatchObject({
          favorite_tea: 'Lapsang',
        })
      },
    )

  verifies(['X-05', 'X-10'], 'for the oldest value leaves the later ones as they are', async () => {
    await using memory = await chat(fresh(), three)
    await memory.forget({ key, messageId: 'm1' })
    expect(teas(await memory.upkeep.facts(key, { history: true }))).toEqual([
      ['Genmaicha', 2 * hour, 'm2'],
      ['Rooibos', 'holds', 'm3'],
    ])
  })
})
