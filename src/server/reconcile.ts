import type { Parsed } from '../domain/chat.ts'
import type { Message } from '../domain/entry.ts'
import { barringSecrets, marksIn } from '../text/secretMark.ts'

type Compared = Pick<Parsed, 'role' | 'content' | 'calls' | 'answers'>

/**
 * Which of the messages sent are new. The most of them, counted from the first, that the stored ones end with are known;
 * so a client may send its whole history, the end of it or only its newest message.
 *
 * Only what is missing at the end is found: a client that edits or takes back what was said before has it all appended.
 *
 * @example
 * reconcile([hello, hi], [hello, hi, bye]) // [bye]
 */
export function reconcile<Sent extends Compared>(stored: readonly Pick<Message, keyof Compared>[], sent: readonly Sent[]): readonly Sent[] {
  const isMasked = stored.some(hasMark)
  const fingerprint = (message: Compared): string => fingerprintOf(message, isMasked ? barringSecrets : (text) => text)
  const wanted = sent.map(fingerprint)
  const borders = bordersOf(wanted)
  let known = 0
  for (const text of stored.map(fingerprint)) {
    if (known === wanted.length) known = borders[known - 1] ?? 0
    while (known > 0 && wanted[known] !== text) known = borders[known - 1] ?? 0
    if (wanted[known] === text) known++
  }
  return sent.slice(known)
}

/** Secrets are not kept: what a client resends with them is known by the rest. */
const hasMark = ({ content, calls }: Compared): boolean => marksIn(content).length > 0 || calls?.some((call) => marksIn(call.arguments).length > 0) === true

const fingerprintOf = ({ role, content, calls, answers }: Compared, text: (text: string) => string): string =>
  JSON.stringify([role, text(content), calls?.map((call) => [call.id, call.name, text(call.arguments)]) ?? [], answers ?? ''])

/** For each beginning of a list, how long its longest end is that is a beginning too: with it, no message is compared again and again. */
function bordersOf(texts: readonly string[]): number[] {
  const borders = [0]
  let length = 0
  for (let at = 1; at < texts.length; at++) {
    while (length > 0 && texts[at] !== texts[length]) length = borders[length - 1] ?? 0
    if (texts[at] === texts[length]) length++
    borders.push(length)
  }
  return borders
}
