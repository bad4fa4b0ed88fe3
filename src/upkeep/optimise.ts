import { type Item, type Message, type Millis, type Notes, promotedId, type Tokens } from '../domain/entry.ts'
import type { Tokenizer } from '../domain/ports.ts'
import { type Head, isWithin } from '../domain/session.ts'
import { digest } from '../text/digest.ts'
import { type Actions, type Marks, triage, withMarks } from './triage.ts'
import { initial, recorded, tuned } from './tune.ts'

/** What a run is done with. */
export type Terms = { readonly budget: Tokens; readonly tokenizer: Tokenizer; readonly now: Millis }

const unmarked: Marks = { compressed: [], dropped: [], promoted: [] }

/** One run of the optimizer over the newest messages: what is marked, what is promoted, what is learnt from it. */
export function optimised(
  messages: readonly Message[],
  head: Head,
  { budget, tokenizer, now }: Terms,
): { readonly items: readonly Item[]; readonly notes: Pick<Notes, 'triage' | 'tuning'> } {
  const { triage: marks = unmarked, tuning } = head.derived.find((entry) => entry.kind === 'notes') ?? {}
  const parameters = tuning?.parameters ?? initial
  const actions = triage(messages, marks, parameters, now)
  const after = marked(marks, actions)
  const costs = new Costs(messages, tokenizer)
  const [tokensBefore, tokensAfter] = [costs.under(marks), costs.under(after)]
  const saved = tokensBefore === 0 ? 0 : Math.max(0, tokensBefore - tokensAfter) / tokensBefore
  const { compress, drop, promote } = actions
  const counts = { compressed: compress.length, dropped: drop.length, promoted: promote.length }
  const next = tuned(parameters, { usage: tokensBefore / budget, saved })
  const snapshot = { at: now, tokensBefore, tokensAfter, ...counts, ...next }
  return { items: promoted(messages, promote, now), notes: { triage: after, tuning: recorded(tuning, snapshot, next) } }
}

function marked(marks: Marks, { compress, drop, promote }: Actions): Marks {
  return {
    compressed: withMarks(marks.compressed, compress),
    dropped: withMarks(marks.dropped, drop),
    promoted: withMarks(marks.promoted, promote),
  }
}

/** Long-term memory of what was said, in the words in which it was said. */
function promoted(messages: readonly Message[], sequences: readonly number[], now: Millis): readonly Item[] {
  const chosen = new Set(sequences)
  return messages
    .filter(({ sequence }) => chosen.has(sequence))
    .map(({ id, role, content }) => ({
      kind: 'item',
      id: promotedId(id),
      at: now,
      category: 'data',
      content: digest(content, role),
      importance: 10,
      marked: false,
      sources: [{ message: id }],
    }))
}

/** What messages cost when some of them are shown shorter or not at all; each is shortened once. */
class Costs {
  private readonly messages: readonly Message[]
  private readonly tokenizer: Tokenizer
  private readonly shorter = new Map<number, Tokens>()

  constructor(messages: readonly Message[], tokenizer: Tokenizer) {
    this.messages = messages
    this.tokenizer = tokenizer
  }

  under({ compressed, dropped }: Marks): Tokens {
    return this.messages.reduce((sum, message) => {
      if (isWithin(dropped, message.sequence)) return sum
      return sum + (isWithin(compressed, message.sequence) ? this.short(message) : message.tokens)
    }, 0)
  }

  private short({ sequence, content, role, tokens }: Message): Tokens {
    const known = this.shorter.get(sequence)
    if (known !== undefined) return known
    const cost = Math.min(tokens, this.tokenizer.count(digest(content, role)))
    this.shorter.set(sequence, cost)
    return cost
  }
}
