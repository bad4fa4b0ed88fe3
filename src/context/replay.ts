import {
  type DerivedEntry,
  type Entry,
  getEntryText,
  type Message,
  parseMessageId,
  type Tokens,
} from '../domain/entry.ts'
import { getOrCompute } from '../domain/keyed.ts'
import type { Ledger, Origin, Verdict } from '../domain/ledger.ts'
import type { Framing } from '../domain/profile.ts'
import type { SessionHead } from '../domain/session.ts'
import { ScopeIndex, type TextAnalysis } from '../search/scopeIndex.ts'
import type { TimeRange } from '../text/calendar.ts'
import { type PassageRange, splitPassages } from '../text/passages.ts'
import type { SharedEntries } from './gatherCandidates.ts'
import type { ContextQuery, ReadRequest, ReadResponse } from './sessionReader.ts'

/** A context request with all its input, as plain data that can be stored and replayed. */
export type Trace = {
  readonly head: SessionHead
  readonly messages: readonly Message[]
  readonly shared: readonly SharedEntries[]
  /** Period that the question named. */
  readonly when?: TimeRange
  readonly query: string | undefined
  readonly budget: Tokens
  readonly framing: Framing
  readonly ledger: Ledger
}

/** A run of messages whose verdict differs between two receipts. */
export type Difference = {
  readonly entries: readonly [first: string, last: string]
  readonly count: number
  readonly was: Verdict
  readonly is: Verdict
}

/** Creates a function that answers reads from the messages and entries of a trace. */
export function createReadResponder(
  { head, messages, shared }: Pick<Trace, 'head' | 'messages' | 'shared'>,
  analysis: TextAnalysis,
): (request: ReadRequest) => ReadResponse {
  const { key } = head
  const entriesOf = (from: Origin | undefined): readonly DerivedEntry[] =>
    from === undefined ? head.derived : shared.flatMap((other) => (other.from === from ? other.entries : []))
  const indexes = new Map<Origin | undefined, ScopeIndex>()
  const createIndex = (from: Origin | undefined): ScopeIndex => {
    const created = new ScopeIndex(analysis)
    if (from === undefined) created.addMessages(key, messages)
    created.setDerived(key, entriesOf(from))
    return created
  }
  return (request) => {
    if ('page' in request) {
      const { after = 0, before = Number.POSITIVE_INFINITY, limit, newest = false } = request.page
      const inRange = messages.filter((message) => message.sequence > after && message.sequence < before)
      return { messages: newest ? inRange.slice(-limit) : inRange.slice(0, limit), hits: [] }
    }
    if ('pause' in request) return { messages: [], hits: [] }
    const index = getOrCompute(indexes, request.in, () => createIndex(request.in))
    const byId = new Map([...messages, ...entriesOf(request.in)].map((entry) => [entry.id, entry]))
    const hits = index.search(request.search).map(({ id, passage, score, why }) => {
      const entry = byId.get(id) as Entry
      return { key, entry, score, why, passage: splitPassages(getEntryText(entry))[passage] as PassageRange }
    })
    return { messages: [], hits }
  }
}

/** Runs a generator whose reads are answered synchronously. */
export function runContextQuery<T>(query: ContextQuery<T>, answer: (request: ReadRequest) => ReadResponse): T {
  for (let step = query.next(); ; ) {
    if (step.done) return step.value
    step = query.next(answer(step.value))
  }
}

/** Lists the messages whose verdicts differ between two receipts, in conversation order. */
export function compareLedgers(messages: readonly Message[], was: Ledger, is: Ledger): Difference[] {
  const [verdictBefore, verdictAfter] = [verdictLookup(was), verdictLookup(is)]
  const result: Difference[] = []
  let previous = -1
  messages.forEach((message, index) => {
    const [before, after] = [verdictBefore(message.sequence), verdictAfter(message.sequence)]
    if (before === undefined || after === undefined || before === after) return
    const last = result.at(-1)
    if (last !== undefined && previous === index - 1 && last.was === before && last.is === after) {
      result[result.length - 1] = { ...last, entries: [last.entries[0], message.id], count: last.count + 1 }
    } else result.push({ entries: [message.id, message.id], count: 1, was: before, is: after })
    previous = index
  })
  return result
}

function verdictLookup(ledger: Ledger): (sequence: number) => Verdict | undefined {
  const runs = ledger.lines.flatMap((line) => {
    const [first, last] = [parseMessageId(line.entries?.[0] ?? ''), parseMessageId(line.entries?.[1] ?? '')]
    return first === undefined || last === undefined ? [] : [{ first, last, verdict: line.verdict }]
  })
  return (sequence) => runs.find((run) => run.first <= sequence && sequence <= run.last)?.verdict
}
