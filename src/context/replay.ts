import { type Message, sequenceOf, type Tokens } from '../domain/entry.ts'
import type { Key } from '../domain/key.ts'
import type { Ledger, Verdict } from '../domain/ledger.ts'
import type { Framing } from '../domain/profile.ts'
import type { Head } from '../domain/session.ts'
import { SearchIndex, unlimited } from '../search/score.ts'
import { searchTerms } from '../search/terms.ts'
import type { Stretch } from '../text/when/calendar.ts'
import type { Answer, Need, Walk } from './gather.ts'
import type { Shared } from './shared.ts'

/** A context as it was asked for, with everything it was made from: plain data, so that it can be kept and asked for again. */
export type Trace = {
  readonly head: Head
  readonly messages: readonly Message[]
  readonly shared: readonly Shared[]
  /** The time that the question named. */
  readonly when?: Stretch
  readonly query: string | undefined
  readonly budget: Tokens
  readonly framing: Framing
  readonly ledger: Ledger
}

/** Messages whose fate differs between two receipts. */
export type Difference = {
  readonly entries: readonly [first: string, last: string]
  readonly count: number
  readonly was: Verdict
  readonly is: Verdict
}

/** Answers a walk from messages at hand. */
export function answersFrom(key: Key, messages: readonly Message[]): (need: Need) => Answer {
  return (need) => {
    if ('page' in need) {
      const { after = 0, before = Number.POSITIVE_INFINITY, limit, newest = false } = need.page
      const within = messages.filter((message) => message.sequence > after && message.sequence < before)
      return { messages: newest ? within.slice(-limit) : within.slice(0, limit), hits: [] }
    }
    const { limit, text = '', ...limits } = need.search
    const index = new SearchIndex()
    for (const message of messages)
      index.add({ ...message, owner: 0, name: message.name, terms: searchTerms(message.content) })
    const hits = index
      .rank(text, { ...unlimited, ...limits, most: limit })
      .map(({ place, score, why }) => ({ key, entry: messages[place] as Message, score, why }))
    return { messages: [], hits }
  }
}

/** Runs a walk whose needs can be answered at once. */
export function walked<T>(walk: Walk<T>, answer: (need: Need) => Answer): T {
  for (let step = walk.next(); ; ) {
    if (step.done) return step.value
    step = walk.next(answer(step.value))
  }
}

/** What another receipt shows differently, in conversation order. */
export function differences(messages: readonly Message[], was: Ledger, is: Ledger): Difference[] {
  const [before, after] = [verdicts(was), verdicts(is)]
  const result: Difference[] = []
  let previous = -1
  messages.forEach((message, place) => {
    const [old, now] = [before(message.sequence), after(message.sequence)]
    if (old === undefined || now === undefined || old === now) return
    const last = result.at(-1)
    if (last !== undefined && previous === place - 1 && last.was === old && last.is === now) {
      result[result.length - 1] = { ...last, entries: [last.entries[0], message.id], count: last.count + 1 }
    } else result.push({ entries: [message.id, message.id], count: 1, was: old, is: now })
    previous = place
  })
  return result
}

/** Looks up what a receipt says of a message. */
function verdicts(ledger: Ledger): (sequence: number) => Verdict | undefined {
  const runs = ledger.lines.flatMap((line) => {
    const [first, last] = [sequenceOf(line.entries?.[0] ?? ''), sequenceOf(line.entries?.[1] ?? '')]
    return first === undefined || last === undefined ? [] : [{ first, last, verdict: line.verdict }]
  })
  return (sequence) => runs.find((run) => run.first <= sequence && sequence <= run.last)?.verdict
}
