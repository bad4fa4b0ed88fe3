import { describe, expect, it } from 'vitest'
import type { Message } from '../../src/domain/entry.ts'
import type { ChatMessage } from '../../src/domain/ledger.ts'
import type { Model } from '../../src/domain/ports.ts'
import { profiles } from '../../src/index.ts'
import { type DraftDeps, draftFacts, draftSummary } from '../../src/upkeep/draft.ts'
import { proposeKnowledge } from '../../src/upkeep/learn/learn.ts'
import { verifies } from '../requirements/verifies.ts'

const messageOf = (content: string, at: number): Message => ({
  ...{ kind: 'message', id: `m${at + 1}`, sequence: at + 1, at: Date.UTC(2026, 0, 1) + at, role: 'user', content },
  ...{ tokens: 1, weight: 1, offset: at, hash: '', lineTokens: 1, tokenizer: 'chars4' },
})

/** A pronounceable word for each number. */
function wordOf(number: number): string {
  const syllables = ['ba', 'do', 'fi', 'gu', 'ke', 'la', 'mo', 'ni', 'pu', 're']
  return String((number * 7_919) % 100_003).replace(/\d/g, (digit) => syllables[Number(digit)] ?? '')
}

const needSentence = (number: number): string =>
  `My ${wordOf(number)} needs a ${wordOf(number + 1)} beside the ${wordOf(number + 2)}.`

/** Long messages of different sentences about as many things. */
const createMessages = (count: number, sentences: number, sentenceOf = needSentence): readonly Message[] =>
  Array.from({ length: count }, (_, message) =>
    messageOf(
      Array.from({ length: sentences }, (_, at) => sentenceOf(3 * (message * sentences + at))).join(' '),
      message,
    ),
  )

/** The conversation in a prompt of upkeep. */
const readData = (prompt: readonly ChatMessage[]): string =>
  /<memory>\n([\s\S]*)\n<\/memory>/.exec(prompt[1]?.content ?? '')?.[1] ?? ''
const statementsOf = (text: string): readonly string[] => text.match(/My \w+ needs a \w+ beside the \w+/g) ?? []

/** Dependencies with a model, and the longest processor time between two pauses. */
function createDeps(reply: (data: string) => string) {
  const readMs = (): number => process.threadCpuUsage().user / 1_000
  let [longestMs, lastMs] = [0, readMs()]
  const pause = (): undefined => {
    const now = readMs()
    longestMs = Math.max(longestMs, now - lastMs)
    lastMs = now
  }
  const model: Model = {
    name: 'diligent',
    async *reply({ messages }) {
      yield reply(readData(messages))
      lastMs = readMs()
    },
  }
  const never = new AbortController().signal
  const modelCall = { model, timeout: 1_000, maxContextWait: 1_000, timeoutSignal: () => never }
  const deps: DraftDeps = { modelCall, signal: never, pause }
  return {
    deps,
    stop: (): number => {
      pause()
      return longestMs
    },
  }
}

/** The goal is 50; a slow machine and compilation take more. Without steps, each of these took 200 to 4,000 ms. */
const maxLongestMs = 150
const target = { words: [400, 500] as const }

describe('a long conversation with a model for upkeep', () => {
  verifies('R-03', 'whose facts are grounded › pauses often', async () => {
    const { deps, stop } = createDeps((data) => JSON.stringify({ important_facts: statementsOf(data).slice(0, 200) }))
    const { facts, faults } = await draftFacts(createMessages(4, 1_200), deps)
    expect(stop()).toBeLessThan(maxLongestMs)
    expect([faults, facts.length > 150]).toEqual([[], true])
  })

  verifies('R-03', 'whose summary is verified › pauses often', async () => {
    const { deps, stop } = createDeps((data) => (data.match(/[\d.]+ km\/h/g) ?? []).slice(0, 200).join('\n'))
    const messages = createMessages(8, 5_000, (number) => `${(number * 7_919) % 9_973}.${number % 89} km/h`)
    const { by, faults } = await draftSummary({ messages, previous: undefined }, target, 400, deps)
    expect(stop()).toBeLessThan(maxLongestMs)
    expect([by, faults]).toEqual(['diligent', []])
  })

  verifies('R-03', 'that knowledge is learnt from › pauses often', async () => {
    const { deps, stop } = createDeps((data) => {
      const sentences =
        data
          .split('\n')
          .at(-1)
          ?.match(/The \w+ is \w+\./g) ?? []
      const proposals = sentences
        .slice(-3)
        .map((value) => ({ category: 'domain', key: value.slice(0, 16), value, confidence: 0.6 }))
      return JSON.stringify(proposals)
    })
    const policy = { ...profiles.agent.knowledgePolicy, user: 'yes' as const }
    const messages = createMessages(200, 250, (number) => `The ${wordOf(number)} is ${wordOf(number + 1)}.`)
    const { knowledge, faults } = await proposeKnowledge(messages, policy, deps)
    expect(stop()).toBeLessThan(maxLongestMs)
    expect([knowledge.map(({ messages: stating }) => stating.length > 0), faults]).toEqual([[true, true, true], []])
  })
})

describe('a summary of a long conversation', () => {
  const constraint = 'Never paint box BX-4711 red, whatever others say.'
  const draft = (own: readonly Partial<Message>[], reply: (data: string) => string) => {
    const long = createMessages(4, 400)
    const messages = [...long, ...own.map((fields, at) => ({ ...messageOf('', long.length + at), ...fields }))]
    return draftSummary({ messages, previous: undefined }, target, 400, createDeps(reply).deps)
  }
  const quote = (data: string, count = 50): string => `${statementsOf(data).slice(0, count).join('. ')}.`

  verifies('X-04', 'that says what its excerpt says › is accepted, and keeps what a user forbids', async () => {
    const { by, text, faults } = await draft([{ content: constraint }], quote)
    expect([by, faults]).toEqual(['diligent', []])
    expect(text).toContain('Never paint box BX-4711 red')
  })

  verifies('X-04', 'that names what its excerpt does not have › is refused', async () => {
    const { by, faults } = await draft([{ content: constraint }], (data) => `${quote(data)} See QX-99812-B.`)
    expect([by, faults]).toEqual(['builtin', [{ step: 'summary', why: 'refused, invented' }]])
  })

  verifies('X-04', 'that reverses what a user forbids › is refused', async () => {
    const { by, faults } = await draft([{ content: constraint }], (data) => `${quote(data)} Paint box BX-4711 red.`)
    expect([by, faults]).toEqual(['builtin', [{ step: 'summary', why: 'refused, negated' }]])
  })

  verifies('X-04', 'that states a number after which an assistant names another › is accepted', async () => {
    const own = [
      { content: 'The garden has 85 plants.' },
      { role: 'assistant' as const, content: 'Actually I moved 12 plants.' },
    ]
    const { by, faults } = await draft(own, (data) => `${quote(data)} The garden has 85 plants.`)
    expect([by, faults]).toEqual(['diligent', []])
  })

  verifies('X-04', 'that states a request that an assistant did not fulfil › is accepted', async () => {
    const own = [
      { content: 'Can you paint box BX-4711 red?' },
      { role: 'assistant' as const, content: 'I did not paint box BX-4711 red.' },
    ]
    const { by, faults } = await draft(own, (data) => `${quote(data)} The user wants to paint box BX-4711 red.`)
    expect([by, faults]).toEqual(['diligent', []])
  })

  verifies('X-04', 'that omits a constraint of a system message › gets it', async () => {
    const { by, text, faults } = await draft([{ role: 'system', content: constraint }], (data) => quote(data, 60))
    expect([by, faults]).toEqual(['diligent', []])
    expect(text).toContain(`Note: ${constraint}`)
  })

  verifies('X-04', 'with several values in the same words › is shown each in its sentence', async () => {
    const values = [18, 20, 21].map((degrees) => ({ content: `The heating is set to ${degrees} degrees.` }))
    let shown = ''
    const { by, faults } = await draft(values, (data) => {
      shown = data
      return `${quote(data)} The heating is set to 21 degrees.`
    })
    expect([by, faults]).toEqual(['diligent', []])
    expect(shown).toContain('user: The heating is set to 21 degrees')
  })

  it.each([
    ['long names', (at: number) => `The ${wordOf(at)} is ${at}.`],
    ['names that are longer than their content', (at: number) => `It is ${at}.`],
  ])('of many short messages with %s › is shown no more than of few long ones', async (_, contentOf) => {
    const messages = Array.from({ length: 4_000 }, (_, at) => ({
      ...messageOf(contentOf(at), at),
      name: 'weather_station_north',
    }))
    let shown = ''
    const { deps } = createDeps((data) => {
      shown = data
      return '{}'
    })
    await draftFacts(messages, deps)
    expect([shown.length > 40_000, shown.length <= 48_000]).toEqual([true, true])
  })

  it('whose speakers have names as long as a prompt › is shown with the start of each name', async () => {
    const messages = createMessages(60, 20).map((message, at) => ({
      ...message,
      name: `${wordOf(at)}${'x'.repeat(48_500)}`,
    }))
    let shown = ''
    const { deps } = createDeps((data) => {
      shown = data
      return quote(data)
    })
    const { by } = await draftSummary({ messages, previous: undefined }, target, 400, deps)
    expect([by, shown.length > 40_000, shown.length <= 48_000]).toEqual(['diligent', true, true])
    expect(shown.split('\n').every((line) => /^\w{64}…: /.test(line))).toBe(true)
  })

  it('of nothing but an earlier summary › is made by the model', async () => {
    const text = 'The heating is set to 21 degrees. The box is painted red. Ana moved to Oslo in March.'
    const previous = { text, sources: [], lossyRanges: [] }
    const { deps } = createDeps(() => 'The heating is set to 21 degrees, the box is red, Ana moved to Oslo in March.')
    const { by } = await draftSummary({ messages: [], previous }, { fits: ({ length }) => length < 200 }, 40, deps)
    expect(by).toBe('diligent')
  })

  it('of nothing but code › is made without the model, and says so', async () => {
    const code = (at: number): string => `\`\`\`\n${'const a = 1\n'.repeat(100)}b${at}()\n\`\`\``
    const messages = Array.from({ length: 60 }, (_, at) => messageOf(code(at), at))
    const { deps } = createDeps(() => expect.unreachable())
    const { by, faults } = await draftSummary({ messages, previous: undefined }, target, 400, deps)
    const why = 'not asked, no sentences'
    expect([by, faults]).toEqual(['builtin', [{ step: 'summary', why }]])
    expect((await draftFacts(messages, deps)).faults).toEqual([{ step: 'facts', why }])
  })
})
