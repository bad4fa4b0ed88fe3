import fc from 'fast-check'
import type { Incoming } from '../../src/domain/chat.ts'
import type { Derived, Fact, Item, Knowledge, Summary } from '../../src/domain/entry.ts'
import { type Framing, framings } from '../../src/domain/profile.ts'
import { type ProfileName, profiles } from '../../src/profiles/index.ts'
import { blank, name, text } from './texts.ts'

/** A session with everything around it, and a question put to it. */
export type Case = {
  readonly profile: ProfileName
  readonly budget: number
  readonly framing: Framing | undefined
  /** `newest` asks what the newest turn says, once more. */
  readonly query: { readonly text: string } | 'newest' | undefined
  readonly messages: readonly Incoming[]
  /** How many messages are appended at a time. */
  readonly batch: number
  readonly derived: readonly Derived[]
  readonly knowledge: readonly Knowledge[]
  /** Which messages are forgotten, counted from the end. */
  readonly forgotten: readonly number[]
}

export const start = Date.UTC(2026, 10, 15)
const hour = 3_600_000

/** A word that occurs in no other message, for finding one again in what is shown. */
export const markOf = (place: number): string =>
  `zq${[...String(place)].map((digit) => 'abcdefghij'[Number(digit)]).join('')}qz`

const content = fc.oneof({ weight: 9, arbitrary: text }, { weight: 1, arbitrary: blank })
const passed = fc.constantFrom(0, 0, 1_000, 60_000, 2 * hour, 30 * hour, -5 * hour, -72 * hour, 9_000 * hour)
const callId = fc.constantFrom('call_1', 'call_2', 'call_3', 'call_4', 'c|5', 'ü', `call_${'x'.repeat(60)}`)
const call = fc
  .tuple(
    callId,
    fc.constantFrom('search', 'read_file', 'run-tests'),
    fc.oneof(fc.constantFrom('{}', '{"q":"cats"}', '', '[1]', 'not json', '7'), text),
  )
  .map(([id, tool, args]) => ({ id, type: 'function' as const, function: { name: tool, arguments: args } }))

const said = fc
  .tuple(
    fc.constantFrom<Incoming['role']>(
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
    fc.option(name, { freq: 5 }),
    fc.boolean(),
  )
  .map(([role, what, who, marked]): Said[] => [{ role, content: what, marked, ...(who === null ? {} : { name: who }) }])

type Said = Incoming & { readonly marked?: boolean }
type Calls = NonNullable<Incoming['tool_calls']>

/** How results come back: all, in another order, some, none, twice, with words between, or all without a call. */
const manners = ['all', 'all', 'all', 'all', 'reversed', 'some', 'none', 'twice', 'torn', 'orphans'] as const

const worked = fc
  .tuple(
    fc.array(call, { minLength: 1, maxLength: 3 }),
    fc.oneof(content, fc.constant(null)),
    fc.constantFrom(...manners),
    content,
    fc.boolean(),
    fc.boolean(),
  )
  .map(([calls, what, manner, result, marked, distinct]): Said[] => {
    const asked = distinct ? distinctly(calls) : calls
    const results = answers(asked, manner).map(
      (id, at): Said => ({ role: 'tool', content: at === 0 ? result : `${id} done`, tool_call_id: id, marked }),
    )
    const torn: Said[] = manner === 'torn' ? [{ role: 'user', content: 'Wait.' }] : []
    const before: Said[] = manner === 'orphans' ? [] : [{ role: 'assistant', content: what, tool_calls: asked, marked }]
    return [...before, ...torn, ...results]
  })

const distinctly = (calls: Calls): Calls =>
  calls.filter((one, at) => calls.findIndex((other) => other.id === one.id) === at)

function answers(calls: Calls, manner: (typeof manners)[number]): readonly string[] {
  const ids = calls.map((one) => one.id)
  if (manner === 'reversed') return ids.reverse()
  if (manner === 'some') return ids.slice(1)
  if (manner === 'twice') return ids.flatMap((id) => [id, id])
  return manner === 'none' ? [] : ids
}

const act = fc.tuple(fc.oneof({ weight: 5, arbitrary: said }, { weight: 1, arbitrary: worked }), passed)

const history: fc.Arbitrary<readonly Incoming[]> = fc
  .oneof(
    { weight: 5, arbitrary: fc.array(act, { maxLength: 8, size: 'max' }) },
    { weight: 6, arbitrary: fc.array(act, { maxLength: 45, size: 'max' }) },
    { weight: 1, arbitrary: fc.array(act, { maxLength: 200, size: 'max' }) },
  )
  .map((acts) => {
    const messages: Incoming[] = []
    let at = start - 365 * 24 * hour
    for (const [turns, gap] of acts) {
      at += gap
      for (const { marked, ...turn } of turns)
        messages.push({
          ...turn,
          at,
          ...(marked === true ? { content: `${markOf(messages.length)} ${turn.content ?? ''}` } : {}),
        })
    }
    return messages
  })

const moment = fc.integer({ min: 0, max: 1_000 }).map((hours) => start - hours * hour)
const sources: Derived['sources'] = [{ message: 'm1' }]
const short = fc.oneof({ weight: 12, arbitrary: text }, { weight: 1, arbitrary: blank })

const fact = fc
  .tuple(
    moment,
    fc.constantFrom('user_preferences', 'key_decisions', '/odd', ' '),
    fc.constantFrom('colour', '', 'a b'),
    short,
    fc.integer({ min: 0, max: 10 }),
    fc.boolean(),
  )
  .map(([at, field, key, value, importance, over]): Omit<Fact, 'id'> => {
    return {
      kind: 'fact',
      at,
      field,
      key,
      value: importance === 3 ? { value, list: [1, null] } : value,
      importance,
      sources,
      ...(over ? { until: at } : {}),
    }
  })
const summary = fc
  .tuple(
    moment,
    fc.constantFrom('progressive' as const, 'hour' as const),
    short,
    fc.integer({ min: 1, max: 60 }),
    fc.integer({ min: 0, max: 40 }),
  )
  .map(([at, tier, what, first, more]): Omit<Summary, 'id'> => {
    return {
      kind: 'summary',
      at,
      tier,
      text: what,
      covers: [first, first + more],
      reach: 40 * (first + more),
      version: 1,
      by: 'builtin',
      sources,
      lost: [],
    }
  })
const item = fc
  .tuple(
    moment,
    fc.constantFrom('code' as const, 'file' as const, 'data' as const, 'concept' as const, 'task' as const),
    short,
    fc.integer({ min: 1, max: 10 }),
  )
  .map(
    ([at, category, what, importance]): Omit<Item, 'id'> => ({
      kind: 'item',
      at,
      category,
      content: what,
      importance,
      marked: false,
      sources,
    }),
  )
const knowing = fc
  .tuple(
    moment,
    fc.constantFrom('domain', 'error_pattern', '/'),
    fc.constantFrom('billing', ''),
    short,
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
      { weight: 1, arbitrary: knowing },
    ),
    {
      maxLength: 10,
    },
  )
  .map((entries) => entries.map((entry, place): Derived => ({ ...entry, id: `d${place}` })))
const knowledge = fc
  .array(knowing, { maxLength: 6 })
  .map((entries) => entries.map((entry, place): Knowledge => ({ ...entry, id: `k${place}` })))

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
  { weight: 2, arbitrary: text.map((what) => ({ text: what })) },
  { weight: 1, arbitrary: blank.map((what) => ({ text: what })) },
)

export const profileNames = Object.keys(profiles) as ProfileName[]

/** Cases for one profile, or for all of them in turn. */
export function cases(...names: readonly ProfileName[]): fc.Arbitrary<Case> {
  return fc.record({
    profile: fc.constantFrom(...(names.length === 0 ? profileNames : names)),
    budget,
    framing: fc.option(fc.constantFrom(...framings), { nil: undefined, freq: 2 }),
    query,
    messages: history,
    batch: fc.constantFrom(1, 7, 40, 1_000),
    derived: fc.oneof({ weight: 1, arbitrary: fc.constant([]) }, { weight: 1, arbitrary: derived }),
    knowledge: fc.oneof({ weight: 1, arbitrary: fc.constant([]) }, { weight: 1, arbitrary: knowledge }),
    forgotten: fc.oneof(
      { weight: 3, arbitrary: fc.constant([]) },
      { weight: 1, arbitrary: fc.array(fc.integer({ min: 0, max: 40 }), { maxLength: 6 }) },
    ),
  })
}
