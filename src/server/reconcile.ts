import type { Parsed } from '../domain/chat.ts'

/** What of a message tells it from others. */
export type Compared = Pick<Parsed, 'role' | 'content' | 'calls' | 'answers'>

/**
 * Which of the messages sent are new. The most of them, counted from the first, that the stored ones end with are known;
 * so a client may send its whole history, the end of it or only its newest message. `seen` are those sent as they would
 * be stored, if that is not as they are.
 *
 * Only what is missing at the end is found: a client that edits or takes back what was said before has it all appended.
 *
 * @example
 * reconcile([hello, hi], [hello, hi, bye]) // [bye]
 */
export function reconcile<Sent extends Compared>(stored: readonly Compared[], sent: readonly Sent[], seen: readonly Compared[] = sent): readonly Sent[] {
  const wanted = seen.map(fingerprint)
  const borders = bordersOf(wanted)
  let known = 0
  for (const text of stored.map(fingerprint)) {
    if (known === wanted.length) known = borders[known - 1] ?? 0
    while (known > 0 && wanted[known] !== text) known = borders[known - 1] ?? 0
    if (wanted[known] === text) known++
  }
  return sent.slice(known)
}

const fingerprint = ({ role, content, calls, answers }: Compared): string =>
  JSON.stringify([role, content, calls?.map((call) => [call.id, call.name, call.arguments]) ?? [], answers ?? ''])

/** A message with every text in it changed. */
export function reworded(message: Compared, change: (text: string) => string): Compared {
  const { role, content, calls, answers } = message
  return {
    role,
    content: change(content),
    ...(calls === undefined ? {} : { calls: calls.map((call) => ({ id: change(call.id), name: change(call.name), arguments: change(call.arguments) })) }),
    ...(answers === undefined ? {} : { answers: change(answers) }),
  }
}

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
