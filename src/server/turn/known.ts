import type { Message } from '../../domain/entry.ts'
import type { Key } from '../../domain/key.ts'
import type { Memory } from '../../memory.ts'
import { barringSecrets, marksIn } from '../../text/secretMark.ts'
import type { Sent } from '../protocols/dialect.ts'
import { type Compared, isLiteral, isUser } from './likeness.ts'
import { type Reconciled, reconcile } from './reconcile.ts'

type Known = { readonly stored: readonly Message[]; readonly hasEarlier: boolean }

/**
 * Whether a client tells all that is stored to the letter, replies too, and goes on from there. Nearly all do: one look at
 * each message is all that most turns take to be told from what is stored.
 */
export function isContinued(stored: readonly Message[], said: readonly Sent[]): boolean {
  if (stored.length >= said.length || !areAsLong(stored, said)) return false
  let hasReplies = false
  for (let place = 0; place < stored.length; place++) {
    const message = stored[place] as Message
    if (!isLiteral(message, said[place] as Sent) || hasMarks(message)) return false
    hasReplies ||= !isUser(message)
  }
  return hasReplies
}

/** Whether what is stored is as long as what is sent in its place. Asked first, in a few steps for each: so the processor fetches them all at once. */
function areAsLong(stored: readonly Message[], said: readonly Sent[]): boolean {
  for (let place = 0; place < stored.length; place++)
    if (stored[place]?.content.length !== said[place]?.content.length) return false
  return true
}

/**
 * How what a client sends relates to what is stored. Secrets are not kept: what a client resends is compared as it would
 * be kept. What was kept by another process, whose marks mean nothing here, is known by the rest; but rather is a message
 * kept twice than the newest one lost because another was like it but for its secret.
 */
export function reconciled(
  memory: Memory,
  key: Key,
  known: Known,
  said: readonly Sent[],
): Reconciled | Promise<Reconciled> {
  return known.stored.some(hasMarks) ? reconciledBarred(memory, key, known, said) : reconcile(known.stored, said, known)
}

async function reconciledBarred(
  memory: Memory,
  key: Key,
  { stored, hasEarlier }: Known,
  said: readonly Sent[],
): Promise<Reconciled> {
  const bare = <T extends Compared>(message: T): T => reworded(message, barringSecrets)
  const result = reconcile(stored.map(bare), said.map(bare), { hasEarlier })
  const line = stored.filter(({ sequence }) => result.cut === undefined || sequence < result.cut)
  const matched = line.slice(Math.max(0, line.length - result.fresh))
  const offset = result.fresh - matched.length
  // Of those that are alike but for their secrets, the first that has another one is new, and all that follow it.
  for (const [at, message] of matched.entries()) {
    const place = at + offset
    const other = said[place]
    // A client may leave messages out, or tell some differently: then these two are no pair.
    if (other === undefined || !hasMarks(message) || !sameAs(bare(other), bare(message))) continue
    const isSame = memory.knowsSecrets(key, textsOf(message).join('\n'))
      ? sameAs(await memory.asKept(key, other), message)
      : place < said.length - 1
    if (!isSame) return { ...result, fresh: place }
  }
  return result
}

const textsOf = ({ content, calls, answers }: Compared): readonly string[] => [
  content,
  ...(calls ?? []).flatMap((call) => [call.id, call.name, call.arguments]),
  answers ?? '',
]
/** A mark begins with a letter that hardly anybody writes: without it there is nothing to list. */
const hasMark = (text: string): boolean => text.includes('⟨') && marksIn(text).length > 0
/** Asked of every message that is compared, so it makes no list of texts where there is but one. */
const hasMarks = (message: Message): boolean =>
  message.calls === undefined && message.answers === undefined
    ? hasMark(message.content)
    : textsOf(message).some(hasMark)
const sameAs = (one: Compared, other: Compared): boolean =>
  JSON.stringify(textsOf(one)) === JSON.stringify(textsOf(other))

/** A message with every text in it changed. */
function reworded<T extends Compared>(message: T, change: (text: string) => string): T {
  const { content, calls, answers } = message
  return {
    ...message,
    content: change(content),
    ...(calls === undefined
      ? {}
      : {
          calls: calls.map((call) => ({
            id: change(call.id),
            name: change(call.name),
            arguments: change(call.arguments),
          })),
        }),
    ...(answers === undefined ? {} : { answers: change(answers) }),
  }
}
