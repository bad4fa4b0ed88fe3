import { runSync, type Work } from '../domain/work.ts'
import type { SecretMatch } from './secrets/rule.ts'
import { type OpenLists, ScanState, scanRange } from './secrets/scan.ts'

/** Masks written for secrets found earlier. */
const maskPattern = /⟨secret:\d{1,12}⟩/g
/** Overwrites found secrets; no pattern accepts this character in a name or value. */
const blank = '⟨'
/**
 * A secret hidden by a neighbouring one is found in the next pass; four passes suffice for all but adversarial texts.
 */
const maxPasses = 4

/** Rules read no more than this many characters before and after their trigger, apart from long values. */
const maxReach = 900

/** Characters scanned per step: a few milliseconds, also for text that consists of secret names. */
const stepCharacters = 8_192

/**
 * Finds secrets in a text, in order and without overlaps; `text.slice(start, end)` is exactly what must be replaced.
 *
 * @example
 * findSecrets('my password is hunter2') // [{ kind: 'password', start: 15, end: 22 }]
 */
export const findSecrets = (text: string): readonly SecretMatch[] => runSync(findSecretsInSteps(text))

/**
 * Finds the same as `findSecrets`, but returns to the caller between parts of a long text, so that it can yield.
 * `lists` has the tables that began in an earlier part of the text, and then those that may go on in the next one.
 * `confine` returns the parts of a match that count.
 */
export function* findSecretsInSteps(
  text: string,
  lists: OpenLists = new Map(),
  confine?: (match: SecretMatch) => readonly SecretMatch[],
): Work<readonly SecretMatch[]> {
  const plain = unusualSign.test(text) ? replaceUnusualSigns(text) : text
  let rest = plain.includes('⟨') ? plain.replace(maskPattern, ({ length }) => blank.repeat(length)) : plain
  let found: readonly SecretMatch[] = []
  let ranges: readonly Range[] = [{ from: 0, to: rest.length }]
  for (let pass = 0; pass < maxPasses && ranges.length > 0; pass++) {
    const matches: SecretMatch[] = []
    let scanned = 0
    for (const { from, to } of ranges) {
      const state = to - from > stepCharacters ? new ScanState(pass === 0 ? lists : undefined) : undefined
      for (let at = from; at < to; at += stepCharacters) {
        if (scanned >= stepCharacters) {
          yield scanned
          scanned = 0
        }
        const end = Math.min(to, at + stepCharacters)
        matches.push(...scanRange(rest, at, end, state))
        scanned += end - at
      }
    }
    const more = mergeOverlapping(confine === undefined ? matches : matches.flatMap(confine))
    found = found.concat(more)
    rest = blankOut(rest, more)
    ranges = findSurroundings(more, rest.length)
  }
  return mergeOverlapping(found)
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: begins a colour
const unusualSign = /[\u001b\u00a0\u2000-\u200a\u2010\u2011\u202f\u205f\u2212\u3000\uff0d\uff10-\uff19\uff1d]|\\u001b/

/** Replaces colours, wide signs and unusual spaces by spaces and ASCII, sign by sign: positions stay the same. */
const replaceUnusualSigns = (text: string): string =>
  text
    // biome-ignore lint/suspicious/noControlCharactersInRegex: begins a colour
    .replace(/(?:\u001b|\\u001b)\[[\d;]{0,20}m/g, ({ length }) => ' '.repeat(length))
    .replace(/[\u00a0\u2000-\u200a\u202f\u205f\u3000]/g, ' ')
    .replace(/[\u2010\u2011\u2212\uff0d]/g, '-')
    .replace(/\uff1d/g, '=')
    .replace(/[\uff10-\uff19]+/g, (digits) => digits.normalize('NFKC'))

type Range = { readonly from: number; readonly to: number }

/** Ranges in which a rule may read one of the matches, which are in order. */
function findSurroundings(matches: readonly SecretMatch[], length: number): readonly Range[] {
  const ranges: Range[] = []
  for (const { start, end } of matches) {
    const last = ranges.at(-1)
    const range = { from: Math.max(0, start - maxReach), to: Math.min(length, end + maxReach) }
    if (last !== undefined && range.from <= last.to) ranges[ranges.length - 1] = { from: last.from, to: range.to }
    else ranges.push(range)
  }
  return ranges
}

/** Overwrites ordered ranges of a text, so that no search finds anything there. */
export function blankOut(text: string, found: readonly Pick<SecretMatch, 'start' | 'end'>[]): string {
  let result = ''
  let reached = 0
  for (const { start, end } of found) {
    result += text.slice(reached, start) + blank.repeat(end - start)
    reached = end
  }
  return result + text.slice(reached)
}

/** Merges overlapping matches, so that no part of either remains; the first one determines the kind. */
function mergeOverlapping(found: readonly SecretMatch[]): SecretMatch[] {
  const merged: SecretMatch[] = []
  for (const secret of [...found].sort((left, right) => left.start - right.start || right.end - left.end)) {
    const last = merged.at(-1)
    if (last === undefined || secret.start >= last.end) merged.push(secret)
    else merged[merged.length - 1] = { ...last, end: Math.max(last.end, secret.end) }
  }
  return merged
}

/** Formats the mask that replaces a secret. */
export const formatMask = (number: number): string => `⟨secret:${number}⟩`

/** Finds the masks in a text. */
export const findMasks = (text: string): readonly string[] =>
  text.includes('⟨secret:') ? (text.match(maskPattern) ?? []) : []

/**
 * Replaces each secret of a text by a mask.
 *
 * @example
 * maskSecrets('my password is hunter2', () => '⟨secret:7⟩') // 'my password is ⟨secret:7⟩'
 */
export const maskSecrets = (text: string, createMask: (secret: string) => string): string =>
  runSync(maskSecretsInSteps(text, createMask))

function* maskSecretsInSteps(text: string, createMask: (secret: string) => string): Work<string> {
  let [result, from] = ['', 0]
  for (const { start, end } of yield* findSecretsInSteps(text)) {
    result += text.slice(from, start) + createMask(text.slice(start, end))
    from = end
  }
  return result + text.slice(from)
}

/** Replaces masks by their values; an unknown mask stays. */
export const unmaskSecrets = (text: string, lookup: (mask: string) => string | undefined): string =>
  text.replace(maskPattern, (mask) => lookup(mask) ?? mask)

/** Replaces all secrets and all masks by the same mask, so that the text sent and the text stored compare equal. */
export const normalizeSecrets = (text: string): string => runSync(normalizeSecretsInSteps(text))

/** `normalizeSecrets` as interruptible work. */
export function* normalizeSecretsInSteps(text: string): Work<string> {
  const masked = yield* maskSecretsInSteps(text, () => formatMask(0))
  return masked.replace(maskPattern, formatMask(0))
}
