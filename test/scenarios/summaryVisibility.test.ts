import { describe, expect } from 'vitest'
import type { MessageInput } from '../../src/domain/chat.ts'
import type { Summary } from '../../src/domain/entry.ts'
import { parseKey } from '../../src/domain/key.ts'
import type { Context, LedgerLine } from '../../src/domain/ledger.ts'
import { type Memory, openMemory, profiles, ramStore } from '../../src/index.ts'
import { verifies } from '../requirements/verifies.ts'
import { assistant, user } from '../server/start.ts'
import { countWords } from './sampleTurns.ts'

const key = 'acme:ann'
const minute = 60_000
const hour = 60 * minute
const start = Date.UTC(2026, 2, 2, 9)

const repeatText = (count: number, say: (place: number) => string, between = ' '): string =>
  Array.from({ length: count }, (_, place) => say(place)).join(between)

const people = ['Marguerite', 'Thaddeus', 'Philippa', 'Bartholomew', 'Genevieve', 'Cornelius', 'Rosalind']
const matters = [
  'reconciliation',
  'groundskeeping',
  'bookbinding',
  'refurbishment',
  'landscaping',
  'upholstery',
  'stonemasonry',
  'rewiring',
]

/** Conversations whose summaries take many tokens per word, very many, or have no spaces between words. */
const conversations = {
  'plain English': (turn: number) =>
    repeatText(10, (item) => {
      const [person, matter] = [people[(turn + item) % people.length], matters[(3 * turn + item) % matters.length]]
      return `${person} has not finished the ${matter} of house ${10 * turn + item}, since the apprentices of Cornelius mislaid the drawings, and will be paid on ${item + 1} May.`
    }),
  Chinese: (turn: number) =>
    repeatText(
      8,
      (item) =>
        `第${turn}次会议我们讨论了项目${10 * turn + item}的预算和上海仓库的交付时间，客户王先生要求在${item + 1}月${(turn % 28) + 1}日之前完成测试。`,
      '',
    ),
  'paths and addresses': (turn: number) =>
    repeatText(
      14,
      (item) =>
        `Please open src/modules/feature_${turn}_${item}/controllers/Factory${31 * turn + item}.ts, see https://git.example.org/acme/issues/${turn}${item}.`,
    ),
}

const alternate = (turn: number, content: string): MessageInput => (turn % 2 === 1 ? user(content) : assistant(content))

async function appendAndSettle(memory: Memory, turn: number, content: string): Promise<void> {
  await memory.append(key, [alternate(turn, content)])
  await memory.upkeep.whenIdle()
}

const countOf = (lines: readonly LedgerLine[]): number => lines.reduce((sum, { count }) => sum + count, 0)
const sentencesOf = (text: string): string[] =>
  text.split(/(?<=[.。…])\s*/).filter((sentence) => /[\p{L}\p{N}]/u.test(sentence))

/** Summaries of which the context shows at least a sentence and which the receipt reports as shown. */
async function shownSummaries(memory: Memory, { text, ledger }: Context, band: string): Promise<readonly Summary[]> {
  const [memoryPart = ''] = text.split('</memory>')
  const summaries = (await memory.upkeep.summaries(key)).filter((summary) =>
    sentencesOf(summary.text).some((sentence) => memoryPart.includes(sentence)),
  )
  expect(countOf(ledger.lines.filter((line) => line.band === band))).toBe(summaries.length)
  return summaries
}

describe('the progressive summary', () => {
  const kinds = Object.keys(conversations) as (keyof typeof conversations)[]
  for (const kind of kinds)
    verifies(['C-07', 'C-03'], `${kind} › is shown in every version`, async () => {
      await using memory = await openMemory({ profile: 'summary', store: 'ram:' })
      const versions: number[] = []
      for (let turn = 1; versions.length < 7; turn++) {
        await appendAndSettle(memory, turn, conversations[kind](turn))
        const [summary] = await memory.upkeep.summaries(key)
        if (summary === undefined || summary.version === versions.at(-1)) continue
        versions.push(summary.version)
        const context = await memory.context(key)
        expect([summary.version, await shownSummaries(memory, context, 'summary')]).toEqual([
          summary.version,
          [summary],
        ])
        expect(context.ledger.spent).toBeLessThanOrEqual(3_000)
        if (kind === 'plain English' && summary.version >= 5)
          expect(countWords(summary.text)).toBeGreaterThanOrEqual(500)
      }
      expect(versions).toEqual([1, 2, 3, 4, 5, 6, 7])
    })

  for (const kind of kinds)
    verifies('C-07', `${kind}, profile thread › is shown in every version`, async () => {
      await using memory = await openMemory({ profile: 'thread', store: 'ram:' })
      for (let turn = 1, version = 0; version < 3; turn++) {
        await appendAndSettle(memory, turn, conversations[kind](turn))
        const [summary] = await memory.upkeep.summaries(key)
        if (summary === undefined || summary.version === version) continue
        version = summary.version
        expect([version, await shownSummaries(memory, await memory.context(key), 'summary')]).toEqual([
          version,
          [summary],
        ])
      }
    })
})

const things = ['parcel', 'invoice', 'refund', 'router', 'contract', 'delivery', 'receipt']
const outcomes = [
  'did not arrive on Monday',
  'was sent to the wrong address',
  'is still in the warehouse',
  'came back from Hamburg',
  'got lost on its way',
]
/** A message of about this many words, in unique sentences of fifteen words. */
const longMessage = (turn: number, words: number): string =>
  repeatText(Math.round(words / 15), (place) => {
    const [thing, fate] = [things[(turn * 3 + place) % things.length], outcomes[(turn + place * 2) % outcomes.length]]
    return `The ${thing} with the number ${1_000 + 20 * turn + place} ${fate}, and ${people[(turn + place) % people.length]} cannot say why.`
  })

describe('summaries of a tenant with long messages', () => {
  const knowledge = { category: 'domain', key: 'numbers', value: 'A number begins with the year.' } as const

  for (const words of [40, 80, 250])
    verifies(
      'T-04',
      `200 messages of ${words} words in one hour › are shown together with the tenant's knowledge`,
      async () => {
        await using memory = await openMemory({ profile: 'support', clock: () => start })
        await memory.remember('acme', knowledge)
        for (let turn = 1; turn <= 200; turn++) {
          await appendAndSettle(memory, turn, longMessage(turn, words))
          if (turn < 50 || turn % 10 !== 0) continue
          const context = await memory.context(key)
          expect([turn, (await shownSummaries(memory, context, 'earlier')).length]).toEqual([turn, 1])
          expect(context.text).toContain(knowledge.value)
        }
        expect((await memory.upkeep.summaries(key)).map(({ tier, covers }) => [tier, covers])).toEqual([
          ['hour', [1, 160]],
        ])
      },
    )

  for (const words of [40, 80])
    verifies('T-04', `messages of ${words} words over a long day › are shown for every hour`, async () => {
      let now = start
      await using memory = await openMemory({ profile: 'support', clock: () => now })
      for (let turn = 1; turn <= 260; turn++) {
        now += 3 * minute
        await appendAndSettle(memory, turn, longMessage(turn, words))
      }
      const context = await memory.context(key)
      expect((await shownSummaries(memory, context, 'earlier')).map(({ covers }) => covers)).toEqual(
        (await memory.upkeep.summaries(key)).map(({ covers }) => covers),
      )
      expect(
        context.ledger.lines.filter(({ verdict, entries }) => verdict === 'dropped' && entries?.[0].startsWith('m')),
      ).toEqual([])
    })

  for (const large of [0, 1, 2])
    verifies(
      'T-04',
      `number ${large + 1} of three larger than the whole share › the others are still shown`,
      async () => {
        const sessions = ramStore()
        await using memory = await openMemory({ profile: 'support', sessions, clock: () => start })
        for (let turn = 1; turn <= 40; turn++) await memory.append(key, [alternate(turn, `Message ${turn} is short.`)])
        const head = await sessions.readHead(parseKey(key), 0)
        const put = [0, 1, 2].map((place): Summary => {
          const text =
            place === large
              ? repeatText(300, (item) => `Customer ${item} waits for parcel ${4_000 + item}.`)
              : `In hour ${place} a clerk took parcel 7${place} back.`
          const covers = [1 + 2 * place, 2 + 2 * place] as const
          const id = `hour${start / hour - 3 + place}`
          return {
            kind: 'summary',
            id,
            at: start,
            tier: 'hour',
            text,
            covers,
            endOffset: 0,
            version: 1,
            by: 'builtin',
            sources: [],
            lossyRanges: [],
          }
        })
        await sessions.commit({
          key: head.key,
          at: start,
          epoch: head.epoch,
          base: head.revision,
          append: [],
          put,
          drop: [],
          expiresAt: head.expiresAt,
        })
        expect((await shownSummaries(memory, await memory.context(key), 'earlier')).map(({ id }) => id)).toEqual(
          put.map(({ id }) => id),
        )
      },
    )

  verifies(
    ['T-04', 'X-05'],
    'after a message of theirs was forgotten › are shown and no longer than before',
    async () => {
      let now = start
      await using memory = await openMemory({
        profile: { ...profiles.support, durability: 'durable' },
        store: 'ram:',
        clock: () => now,
      })
      for (let turn = 1; turn <= 120; turn++) {
        now += turn % 40 === 0 ? 12 * hour : 5 * minute
        await appendAndSettle(
          memory,
          turn,
          `In turn ${turn} we spoke of ticket ${1_000 + turn} and of the router at ${turn} Main Street in Hamburg, which is slow.`,
        )
      }
      now += 18 * hour
      await appendAndSettle(memory, 121, 'Hello again, how are things?')
      const lengths = async () =>
        (await shownSummaries(memory, await memory.context(key), 'earlier')).map(
          ({ id, text }) => [id, memory.tokenizer.count(text)] as const,
        )
      const before = await lengths()
      expect(before.map(([id]) => id)).toContain('session')
      await memory.forget({ key, messageId: 'm5' })
      const after = await lengths()
      expect(after.map(([id]) => id)).toEqual(before.map(([id]) => id))
      for (const [place, [, tokens]] of after.entries())
        expect(tokens).toBeLessThanOrEqual((before[place]?.[1] ?? 0) + 16)
    },
  )
})

describe('a conversation under 3,000 tokens', () => {
  for (const [kind, times] of [
    ['long', 10],
    ['short', 1],
  ] as const)
    verifies(
      ['C-02', 'C-03'],
      `${kind} messages › is shown whole, and nothing after the summary is dropped later`,
      async () => {
        await using memory = await openMemory({ profile: 'summary', store: 'ram:' })
        const contents = ['Hello, my name is Ann, and whatever happens never deploy on Fridays.']
        await memory.append(key, [user(contents[0] as string)])
        for (let turn = 2, last = 0; last === 0 || turn < 60; turn++) {
          contents.push(`Turn ${turn}. ${`We talked about Berlin and harbour number ${turn}. `.repeat(times)}`.trim())
          await memory.append(key, [alternate(turn, contents.at(-1) as string)])
          const { messages, ledger } = await memory.context(key)
          last = (await memory.upkeep.summaries(key))[0]?.covers[1] ?? 0
          expect(ledger.lines.filter(({ verdict }) => verdict === 'dropped')).toEqual([])
          expect(messages.slice(-(turn - last)).map(({ content }) => content)).toEqual(contents.slice(last))
        }
      },
    )
})

/** Verdict of each message in the receipt. */
function verdicts({ ledger }: Context): ReadonlyMap<number, string> {
  const found = new Map<number, string>()
  for (const { entries, verdict } of ledger.lines) {
    const [from = 1, to = 0] = entries?.map((id) => Number(/^m(\d+)$/.exec(id)?.[1])) ?? []
    for (let sequence = from; sequence <= to; sequence++) found.set(sequence, verdict)
  }
  return found
}

describe('a promoted message', () => {
  verifies('A-08', 'appears either in long-term memory or as a turn, as the receipt says', async () => {
    let now = start
    const finding = (number: number): string =>
      `Important finding ${number}: see https://example.org/report/${number} for the whole story of quay ${number}.`
    for (const budget of [8_000, 6_000]) {
      await using memory = await openMemory({
        profile: { ...profiles.agent, budget },
        store: 'ram:',
        clock: () => now,
      })
      for (let number = 1; number <= 60; number++)
        await memory.append(key, [user(`${finding(number)} ${`More about ${number}. `.repeat(20)}`)])
      await memory.append(key, [user('Go on please with what we had, thank you very much.')])
      now += 3 * minute
      await memory.sweep(now)
      await memory.upkeep.whenIdle()
      const context = await memory.context(key)
      const longTerm = context.messages
        .flatMap(({ content }) => (content?.includes('[LONG-TERM MEMORY]') ? [content] : []))
        .join()
      const turns = context.messages
        .flatMap(({ content }) => (content?.includes('[LONG-TERM MEMORY]') ? [] : [content]))
        .join()
      const verdict = verdicts(context)
      const locationOf = (number: number): string => {
        if (turns.includes(`report/${number} `)) return 'turn'
        return longTerm.includes(`report/${number} `) ? 'long-term' : 'nowhere'
      }
      const expectedLocation: Record<string, string> = {
        whole: 'turn',
        shortened: 'turn',
        covered: 'long-term',
        dropped: 'nowhere',
      }
      const places = Array.from({ length: 60 }, (_, at) => locationOf(at + 1))
      expect(places).toEqual(places.map((_, at) => expectedLocation[verdict.get(at + 1) ?? '']))
      expect([places.includes('long-term'), places.includes('nowhere') && budget === 8_000]).toEqual([true, false])
      expect(places.slice(0, 30)).toContain('turn')
    }
  })
})
