import { hash } from 'node:crypto'
import type { Parsed } from '../../domain/chat.ts'
import { barringSecrets } from '../../text/secretMark.ts'

/**
 * From where on a conversation is not stored yet, when a client tells it again: from its beginning, whatever others have
 * said in between, or only its newest part, which then begins with what was stored last. A history with nothing in
 * common is new altogether, and so is one that has no more in common than a single message which tells nothing by itself:
 * "go on" is said again and again, and is better stored twice than lost.
 *
 * @example
 * fresh(['a', 'b'], ['b', 'c']) // 1: what is told from there on is new
 * fresh(['go on', 'Part 1'], ['go on', 'Part 2'], () => false) // 0
 */
export function fresh(
  stored: readonly string[],
  told: readonly string[],
  tells: (place: number) => boolean = () => true,
): number {
  const last = overlap(stored, told)
  const isKnown = tells(0) || (told[0] === stored[0] && told[1] === stored[1])
  return Math.max(last > 1 || tells(0) ? last : 0, isKnown ? retold(stored, told) : 0)
}

/** Whether a message by itself tells which conversation it is of: few words are said in many of them. */
export const isTelling = ({ content, calls }: Pick<Parsed, 'content' | 'calls'>): boolean =>
  content.trim().length >= 40 || calls !== undefined

/**
 * How many messages are told again from the beginning on. One alone is no history, and neither is one that was said more
 * than once: somebody says the same again.
 */
function retold(stored: readonly string[], told: readonly string[]): number {
  const [first] = stored
  if (told.length < 2 || told[0] !== first) return 0
  const again = inOrder(stored, told)
  return again === 1 && stored.lastIndexOf(first as string) > 0 ? 0 : again
}

/** How many of the first messages told are found among those stored, in order. */
function inOrder(stored: readonly string[], told: readonly string[]): number {
  let place = 0
  for (const [at, message] of told.entries()) {
    while (place < stored.length && stored[place] !== message) place++
    if (place === stored.length) return at
    place++
  }
  return told.length
}

/** How many of the first messages told are the last ones stored; in time proportional to both, however they repeat themselves. */
function overlap(stored: readonly string[], told: readonly string[]): number {
  const back: number[] = [0]
  const longer = (matched: number, next: string | undefined): number => {
    let at = matched
    while (at > 0 && (at === told.length || told[at] !== next)) at = back[at - 1] as number
    return at < told.length && told[at] === next ? at + 1 : at
  }
  for (let at = 1; at < told.length; at++) back.push(longer(back[at - 1] as number, told[at]))
  return stored.slice(-told.length).reduce((matched, next) => longer(matched, next), 0)
}

/** What a message is known by when it is told again: by what it says, but not when, and not by its secrets. */
export function fingerprint({ role, content, name, calls, answers }: Omit<Parsed, 'at'>): string {
  const said = [role, barringSecrets(content), barringSecrets(name ?? ''), answers ?? '']
  const called = (calls ?? []).flatMap((call) => [call.name, barringSecrets(call.arguments)])
  return hash('sha256', JSON.stringify([said, called]))
}

/** As `fresh`, of messages. */
export const freshIn = (stored: readonly Omit<Parsed, 'at'>[], told: readonly Omit<Parsed, 'at'>[]): number =>
  fresh(stored.map(fingerprint), told.map(fingerprint), (place) => told[place] !== undefined && isTelling(told[place]))
