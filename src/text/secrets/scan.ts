import { findCard } from './cards.ts'
import { changedRules } from './changedValues.ts'
import { commandRules } from './commandValues.ts'
import { fileRules } from './fileValues.ts'
import { keyRules } from './keyForms.ts'
import { listRules } from './lists.ts'
import { namedRules } from './namedValues.ts'
import { pemRules } from './pemBlocks.ts'
import { requestRules } from './requestValues.ts'
import { type ListReader, noMatches, type SecretMatch, type SecretRule } from './rule.ts'
import { separatedRules } from './separatedValues.ts'
import { findHyphenatedNumber, statedRules } from './statedValues.ts'

export const secretRules: readonly SecretRule[] = [
  ...pemRules,
  ...keyRules,
  ...requestRules,
  ...commandRules,
  ...statedRules,
  ...namedRules,
  ...separatedRules,
  ...changedRules,
  ...listRules,
  ...fileRules,
]

/** A trigger and the numbers of its rules. */
type Trigger = { readonly word: string; readonly rules: number[] }

/** Bits of a character that take part in the hash: a letter has the same in either case. */
const hashedBits = 31
/** The hash of three characters has three times five bits. */
const hashMask = 0x7fff
const hashWord = (word: string): number =>
  [0, 1, 2].reduce((hash, index) => (hash << 5) | (word.charCodeAt(index) & hashedBits), 0)

/** Triggers by the hash of their first three characters; most characters of a text cost one look into this table. */
const triggersByHash = indexTriggers()

function indexTriggers(): readonly (readonly Trigger[] | undefined)[] {
  const byHash: (Trigger[] | undefined)[] = Array.from({ length: hashMask + 1 })
  secretRules.forEach(({ triggers }, rule) => {
    for (const trigger of triggers) {
      const word = trigger.toLowerCase()
      // A trigger of two characters may be followed by any third.
      const hashes =
        word.length > 2
          ? [hashWord(word)]
          : Array.from({ length: hashedBits + 1 }, (_, bits) => (hashWord(word) & ~hashedBits) | bits)
      for (const hash of hashes) {
        const known = byHash[hash]?.find((other) => other.word === word)
        if (known === undefined) byHash[hash] = [...(byHash[hash] ?? []), { word, rules: [rule] }]
        else known.rules.push(rule)
      }
    }
  })
  return byHash
}

const isDigit = (code: number): boolean => code >= 48 && code <= 57

/** Lists that are being read, by the number of their rule. */
export type OpenLists = Map<number, ListReader>

/** State of a scan that continues from range to range. */
export class ScanState {
  readonly lists: OpenLists
  /** Position before which each rule is not tried again. */
  readonly reached = new Float64Array(secretRules.length)
  /** End of the last card number. */
  cardEnd = 0

  constructor(lists: OpenLists = new Map()) {
    this.lists = lists
  }

  reset(): this {
    this.reached.fill(0)
    if (this.lists.size > 0) this.lists.clear()
    this.cardEnd = 0
    return this
  }
}

/** State of scans that are not interrupted. */
const sharedState = new ScanState()

/** Finds the secrets whose trigger begins in a range of a text; they may overlap. */
export function scanRange(text: string, from: number, to: number, state = sharedState.reset()): readonly SecretMatch[] {
  const found: SecretMatch[] = []
  let [hash, previous] = [0, from > 0 ? text.charCodeAt(from - 1) : 0]
  const end = Math.min(text.length, to + 2)
  for (let index = from; index < end; index++) {
    const current = text.charCodeAt(index)
    hash = ((hash << 5) | (current & hashedBits)) & hashMask
    if (isDigit(current) && !isDigit(previous) && index >= state.cardEnd && index < to) {
      const numbers = findNumber(text, index)
      found.push(...numbers)
      state.cardEnd = numbers[0]?.end ?? 0
    }
    previous = current
    const triggers = triggersByHash[hash]
    if (triggers === undefined || index < from + 2) continue
    const at = index - 2
    for (const { word, rules } of triggers)
      if (startsWith(text, word, at)) for (const rule of rules) found.push(...applyRule(text, at, rule, state))
  }
  if (state.lists.size > 0) for (const list of state.lists.values()) found.push(...list.read(text, to))
  return found
}

/** Tries a rule at one of its triggers. */
function applyRule(text: string, at: number, rule: number, { reached, lists }: ScanState): readonly SecretMatch[] {
  if (at < (reached[rule] ?? 0)) return noMatches
  const list = lists.get(rule)
  const read = list?.read(text, at) ?? noMatches
  // Text that a list has read is not read again.
  if (list !== undefined && (!list.isDone || at < list.at)) return read
  const result = secretRules[rule]?.find(text, at) ?? 0
  if (typeof result === 'number') reached[rule] = result
  else if ('read' in result) lists.set(rule, result)
  else if ('reached' in result) {
    reached[rule] = result.reached
    return result.matches
  } else {
    lists.delete(rule)
    reached[rule] = result.at(-1)?.end ?? 0
    return read.length === 0 ? result : [...read, ...result]
  }
  return read
}

function startsWith(text: string, word: string, at: number): boolean {
  const last = word.length - 1
  // The hash has compared the beginning; most wrong candidates differ in their last character.
  if (((text.charCodeAt(at + last) ^ word.charCodeAt(last)) & hashedBits) !== 0) return false
  return text.startsWith(word, at) || text.slice(at, at + word.length).toLowerCase() === word
}

function findNumber(text: string, at: number): readonly SecretMatch[] {
  const cards = findCard(text, at)
  return cards.length > 0 ? cards : findHyphenatedNumber(text, at)
}
