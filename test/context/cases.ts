import fc from 'fast-check'
import type { MessageInput } from '../../src/domain/chat.ts'
import type { DerivedEntry, Fact, Item, Knowledge, Summary } from '../../src/domain/entry.ts'
import { type Framing, framings } from '../../src/domain/profile.ts'
import { type ProfileName, profiles } from '../../src/profiles/index.ts'
import { arbitraryName, arbitraryText, blankText, invisibleTexts } from './arbitraryText.ts'

/** A session with derived entries and knowledge, and a context request for it. */
export type TestCase = {
  readonly profile: ProfileName
  readonly budget: number
  readonly framing: Framing | undefined
  /** `newest` repeats the content of the newest turn. */
  readonly query: { readonly text: string } | 'newest' | undefined
  readonly messages: readonly MessageInput[]
  /** Messages per append. */
  readonly batchSize: number
  readonly derived: readonly DerivedEntry[]
  readonly knowledge: readonly Knowledge[]
  /** Indexes of forgotten messages, counted from the end. */
  readonly forgotten: readonly number[]
}

export const startTime = Date.UTC(2026, 10, 15)
const hourMs = 3_600_000

/** Marker word that occurs in no other message, to find a message in a context. */
export const markerOf = (index: number): string =>
  `zq${[...String(index)].map((digit) => 'abcdefghij'[Number(digit)]).join('')}qz`

const content = fc.oneof({ weight: 9, arbitrary: arbitraryText }, { weight: 1, arbitrary: blankText })
const elapsedMs = fc.constantFrom(
  0,
  0,
  1_000,
  60_000,
  2 * hourMs,
  30 * hourMs,
  -5 * hourMs,
  -72 * hourMs,
  9_000 * hourMs,
)
const callId = fc.constantFrom('call_1', 'call_2', 'call_3', 'call_4', 'c|5', 'ü', `call_${'x'.repeat(60)}`)
const call = fc
  .tuple(
    callId,
    fc.constantFrom('search', 'read_file', 'run-tests'),
    fc.oneof(fc.constantFrom('{}', '{"q":"cats"}', '', '[1]', 'not json', '7'), arbitraryText),
  )
  .map(([id, tool, args]) => ({ id, type: 'function' as const, function: { name: tool, arguments: args } }))

const plainTurn = fc
  .tuple(
    fc.constantFrom<MessageInput['role']>(
      'user',
      'user',
      'user',
      'assistant',
      'assistant',
      'assistant',
      'system',
      'developer',
    ),
    fc.oneof({ weight: 20, arbitrary: content }, { weight: 1, arbitrary: fc.constant(null) }),
    fc.option(arbitraryName, { freq: 5 }),
    fc.boolean(),
  )
  .map(([role, text, speaker, marked]): DraftMessage[] => [
    { role, content: text, marked, ...(speaker === null ? {} : { name: speaker }) },
  ])

type DraftMessage = MessageInput & { readonly marked?: boolean }
type Calls = NonNullable<MessageInput['tool_calls']>

/** Order and completeness of tool results: `torn` has a message between call and results, `orphans` has no call. */
const resultModes = ['all', 'all', 'all', 'all', 'reversed', 'some', 'none', 'twice', 'torn', 'orphans'] as const

const toolTurn = fc
  .tuple(
    fc.array(call, { minLength: 1, maxLength: 3 }),
    fc.oneof(content, fc.constant(null)),
    fc.constantFrom(...resultModes),
    content,
    fc.boolean(),
    fc.boolean(),
  )
  .map(([calls, text, mode, result, marked, hasUniqueIds]): DraftMessage[] => {
    const toolCalls = hasUniqueIds ? withUniqueIds(calls) : calls
    const results = resultIds(toolCalls, mode).map(
      (id, at): DraftMessage => ({ role: 'tool', content: at === 0 ? result : `${id} done`, tool_call_id: id, marked }),
    )
    const between: DraftMessage[] = mode === 'torn' ? [{ role: 'user', content: 'Wait.' }] : []
    const request: DraftMessage[] =
      mode === 'orphans' ? [] : [{ role: 'assistant', content: text, tool_calls: toolCalls, marked }]
    return [...request, ...between, ...results]
  })

const withUniqueIds = (calls: Calls): Calls =>
  calls.filter((one, at) => calls.findIndex((other) => other.id === one.id) === at)

function resultIds(calls: Calls, mode: (typeof resultModes)[number]): readonly string[] {
  const ids = calls.map((one) => one.id)
  if (mode === 'reversed') return ids.reverse()
  if (mode === 'some') return ids.slice(1)
  if (mode === 'twice') return ids.flatMap((id) => [id, id])
  return mode === 'none' ? [] : ids
}

const step = fc.tuple(fc.oneof({ weight: 5, arbitrary: plainTurn }, { weight: 1, arbitrary: toolTurn }), elapsedMs)

/** Newest turns with nothing to show, or in another form than text. */
const emptyTurns: readonly (readonly MessageInput[])[] = [
  ...invisibleTexts.map((text): MessageInput[] => [{ role: 'user', content: text }]),
  [{ role: 'user', content: null }],
  [{ role: 'user' }],
  [{ role: 'user', content: [] }],
  [{ role: 'user', content: [{ type: 'text', text: '' }] }],
  [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://example.com/a.png' } }] }],
  [
    { role: 'user', content: '' },
    { role: 'assistant', content: ' ' },
  ],
  [{ role: 'tool', tool_call_id: 'call_9', content: '' }],
  [
    { role: 'user', content: ' ' },
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'call_9', type: 'function', function: { name: 'search', arguments: '{}' } }],
    },
    { role: 'tool', tool_call_id: 'call_9', content: '' },
  ],
]

const longHistory: fc.Arbitrary<readonly MessageInput[]> = fc
  .oneof(
    { weight: 5, arbitrary: fc.array(step, { maxLength: 8, size: 'max' }) },
    { weight: 6, arbitrary: fc.array(step, { maxLength: 45, size: 'max' }) },
    { weight: 1, arbitrary: fc.array(step, { maxLength: 200, size: 'max' }) },
  )
  .map((steps) => {
    const messages: MessageInput[] = []
    let at = startTime - 365 * 24 * hourMs
    for (const [turns, gap] of steps) {
      at += gap
      for (const { marked, ...turn } of turns)
        messages.push({
          ...turn,
          at,
          ...(marked === true ? { content: `${markerOf(messages.length)} ${turn.content ?? ''}` } : {}),
        })
    }
    return messages
  })

const history: fc.Arbitrary<readonly MessageInput[]> = fc
  .tuple(longHistory, fc.option(fc.constantFrom(...emptyTurns), { freq: 3 }))
  .map(([messages, newest]) => [...messages, ...(newest ?? [])])

const pastTime = fc.integer({ min: 0, max: 1_000 }).map((hours) => startTime - hours * hourMs)
const sources: DerivedEntry['sources'] = [{ message: 'm1' }]
const entryText = fc.oneof({ weight: 12, arbitrary: arbitraryText }, { weight: 1, arbitrary: blankText })

const fact = fc
  .tuple(
    pastTime,
    fc.constantFrom('user_preferences', 'key_decisions', '/odd', ' '),
    fc.constantFrom('colour', '', 'a b'),
    entryText,
    fc.integer({ min: 0, max: 10 }),
    fc.boolean(),
  )
  .map(([at, field, key, value, importance, isSuperseded]): Omit<Fact, 'id'> => {
    return {
      kind: 'fact',
      at,
      field,
      key,
      value: importance === 3 ? { value, list: [1, null] } : value,
      importance,
      sources,
      ...(isSuperseded ? { until: at } : {}),
    }
  })
const summary = fc
  .tuple(
    pastTime,
    fc.constantFrom('progressive' as const, 'hour' as const),
    entryText,
    fc.integer({ min: 1, max: 60 }),
    fc.integer({ min: 0, max: 40 }),
  )
  .map(([at, tier, text, first, more]): Omit<Summary, 'id'> => {
    return {
      kind: 'summary',
      at,
      tier,
      text,
      covers: [first, first + more],
      endOffset: 40 * (first + more),
      version: 1,
      by: 'builtin',
      sources,
      lossyRanges: [],
    }
  })
const item = fc
  .tuple(
    pastTime,
    fc.constantFrom('code' as const, 'file' as const, 'data' as const, 'concept' as const, 'task' as const),
    entryText,
    fc.integer({ min: 1, max: 10 }),
  )
  .map(
    ([at, category, content, importance]): Omit<Item, 'id'> => ({
      kind: 'item',
      at,
      category,
      content,
      importance,
      marked: false,
      sources,
    }),
  )
const knowledgeEntry = fc
  .tuple(
    pastTime,
    fc.constantFrom('domain', 'error_pattern', '/'),
    fc.constantFrom('billing', ''),
    entryText,
    fc.integer({ min: 1, max: 10 }),
  )
  .map(
    ([at, category, key, value, tenths]): Omit<Knowledge, 'id'> => ({
      kind: 'knowledge',
      at,
      category,
      key,
      value,
      confidence: tenths / 10,
      usedAt: at,
      sources,
    }),
  )

const derived = fc
  .array(
    fc.oneof(
      { weight: 3, arbitrary: fact },
      { weight: 3, arbitrary: summary },
      { weight: 3, arbitrary: item },
      { weight: 1, arbitrary: knowledgeEntry },
    ),
    {
      maxLength: 10,
    },
  )
  .map((entries) => entries.map((entry, index): DerivedEntry => ({ ...entry, id: `d${index}` })))
const knowledge = fc
  .array(knowledgeEntry, { maxLength: 6 })
  .map((entries) => entries.map((entry, index): Knowledge => ({ ...entry, id: `k${index}` })))

const budget = fc.oneof(
  { weight: 3, arbitrary: fc.integer({ min: 1, max: 60 }) },
  { weight: 5, arbitrary: fc.integer({ min: 20, max: 400 }) },
  { weight: 4, arbitrary: fc.integer({ min: 400, max: 3_000 }) },
  { weight: 2, arbitrary: fc.integer({ min: 3_000, max: 9_000 }) },
  { weight: 1, arbitrary: fc.integer({ min: 9_000, max: 40_000 }) },
)
const query = fc.oneof(
  { weight: 5, arbitrary: fc.constant(undefined) },
  { weight: 2, arbitrary: fc.constant('newest' as const) },
  { weight: 2, arbitrary: arbitraryText.map((question) => ({ text: question })) },
  { weight: 1, arbitrary: blankText.map((question) => ({ text: question })) },
)

export const profileNames = Object.keys(profiles) as ProfileName[]

/** Generates test cases for the named profiles, or for all profiles. */
export function testCases(...names: readonly ProfileName[]): fc.Arbitrary<TestCase> {
  return fc.record({
    profile: fc.constantFrom(...(names.length === 0 ? profileNames : names)),
    budget,
    framing: fc.option(fc.constantFrom(...framings), { nil: undefined, freq: 2 }),
    query,
    messages: history,
    batchSize: fc.constantFrom(1, 7, 40, 1_000),
    derived: fc.oneof({ weight: 1, arbitrary: fc.constant([]) }, { weight: 1, arbitrary: derived }),
    knowledge: fc.oneof({ weight: 1, arbitrary: fc.constant([]) }, { weight: 1, arbitrary: knowledge }),
    forgotten: fc.oneof(
      { weight: 3, arbitrary: fc.constant([]) },
      { weight: 1, arbitrary: fc.array(fc.integer({ min: 0, max: 40 }), { maxLength: 6 }) },
    ),
  })
}
