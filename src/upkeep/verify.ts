import type { Source } from '../domain/entry.ts'
import { type Anchor, type AnchorKind, findAnchors, isCompoundWord } from '../text/anchors.ts'
import {
  createConstraintFinder,
  createTextFinder,
  isNameable,
  mentionWeight,
  missingNames,
  rankNames,
} from './summarise/coverage.ts'
import { blankQuotations, findInjections } from './summarise/injectionCheck.ts'
import { renderPieces, splitEarlierSummary, splitIntoPieces } from './summarise/pieces.ts'
import { findLargest } from './summarise/select.ts'
import { countWords, fitsTarget, type SummaryMessage, type SummaryTarget } from './summarise/summary.ts'
import { runSync, type Work } from './work.ts'

/** Content that a summary omits, and the message that still has it. */
export type Loss = { readonly kind: AnchorKind; readonly text: string; readonly source: Source }

type VerifyFailure = 'empty' | 'too short' | 'longer' | 'invented' | 'uncovered' | 'echo' | 'over target' | 'markup'

export type VerifyResult =
  | { readonly ok: true }
  | { readonly ok: false; readonly why: VerifyFailure; readonly detail: string }

/** Source of a model's summary, the built-in summary of the same source, and the instructions of the prompt. */
export type VerifyInput = {
  readonly messages: readonly SummaryMessage[]
  readonly previous: string | undefined
  readonly baseline: string
  readonly prompt: string
  readonly target: SummaryTarget
}

/** This many consecutive words of the instructions count as an echo. */
const echoWords = 8
/** Limits the constraints that are added to one summary. */
const maxAddedConstraints = 32

/** Finds anchors and constraints of messages that a text omits. */
export const findLosses = (text: string, messages: readonly SummaryMessage[]): readonly Loss[] =>
  runSync(findLossesInSteps(text, messages))

export function* findLossesInSteps(text: string, messages: readonly SummaryMessage[]): Work<readonly Loss[]> {
  const [hasText, hasConstraint] = [createTextFinder(text), createConstraintFinder(text)]
  const seen = new Set<string>()
  const losses: Loss[] = []
  for (const message of messages) {
    for (const { kind, text: anchor, start, end } of findAnchors(message.content)) {
      const key = `${kind} ${anchor}`
      if (seen.has(key) || (kind === 'constraint' && !isBinding(message))) continue
      seen.add(key)
      if (!(kind === 'constraint' ? hasConstraint(anchor) : hasText(anchor)))
        losses.push({ kind, text: anchor, source: { message: message.id, span: [start, end] } })
    }
    yield message.content.length
  }
  return losses
}

/** Only constraints of users and system messages count, not those of assistants or tool output. */
const isBinding = ({ role }: SummaryMessage): boolean => role === 'user' || role === 'system'

/**
 * Checks a model's summary against its source and against the coverage of the built-in summary. Fails if it is empty,
 * markup, too long or too short, repeats the instructions, invents anchors, or covers less than the built-in summary.
 */
export function* verifySummary(candidate: string, input: VerifyInput): Work<VerifyResult> {
  const text = candidate.trim()
  const source = sourceText(input)
  if (text === '') return reject('empty', 'the text is empty')
  if (isMarkup(text)) return reject('markup', 'it is HTML, JSON or code instead of prose')
  if (!fitsTarget(text, input.target)) return reject('over target', `it has ${countWords(text)} words`)
  if (text.length >= source.length || countWords(text) >= countWords(source))
    return reject('longer', 'it is no shorter than its source')
  const echo = findEcho(text, input.prompt, source)
  if (echo !== undefined) return reject('echo', echo)
  yield source.length
  const invented = findInvented(text, source, input.messages)
  if (invented !== undefined) return reject('invented', invented)
  yield source.length
  const uncovered = yield* findUncovered(text, input)
  if (uncovered !== undefined) return reject('uncovered', uncovered)
  return countWords(text) < minWords(input) ? reject('too short', `it has ${countWords(text)} words`) : { ok: true }
}

const reject = (why: VerifyFailure, detail: string): VerifyResult => ({ ok: false, why, detail })

/** Minimum number of words: that of the target, or of the built-in summary if that is shorter. */
const minWords = ({ target, baseline }: VerifyInput): number => Math.min(target.words?.[0] ?? 0, countWords(baseline))

/** True if a candidate is so short that repairing it would replace it. */
export const isTooThin = (candidate: string, input: VerifyInput): boolean =>
  countWords(candidate) < Math.min(minWords(input), countWords(input.baseline)) / 2

const sourceText = ({ messages, previous }: Pick<VerifyInput, 'messages' | 'previous'>): string =>
  [previous ?? '', ...messages.map(({ name, content }) => (name === undefined ? content : `${name}: ${content}`))]
    .join('\n')
    .trim()

/** True for a text that starts as data or code, or has at least three tags. */
function isMarkup(text: string): boolean {
  if (/^(?:\{|\[\s*[[{"]|```|~~~|<!doctype|<\?xml|<[a-z][^<>|\n]{0,200}>)/i.test(text)) return true
  return (text.match(/<\/?[a-z][^<>\n]{0,200}>/gi)?.length ?? 0) >= 3
}

/** Finds repeated instructions, or instructions to the reading model that are not quoted. */
function findEcho(text: string, prompt: string, source: string): string | undefined {
  const bare = blankQuotations(text)
  const [order] = findInjections(bare)
  if (order !== undefined) return bare.slice(...order)
  const promptGrams = wordGrams(prompt)
  if (promptGrams.size === 0) return undefined
  const sourceGrams = wordGrams(source)
  for (const gram of wordGrams(text)) if (promptGrams.has(gram) && !sourceGrams.has(gram)) return gram
  return undefined
}

function wordGrams(text: string): ReadonlySet<string> {
  const words = text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []
  return new Set(
    Array.from({ length: Math.max(0, words.length - echoWords + 1) }, (_, at) =>
      words.slice(at, at + echoWords).join(' '),
    ),
  )
}

/** Finds the first identifier, number or date that is not in the source. */
function findInvented(text: string, source: string, messages: readonly SummaryMessage[]): string | undefined {
  const has = createTextFinder(source.toLowerCase())
  const atoms = new Set([...dateAtoms(source), ...messages.flatMap(({ at }) => dateAtoms(new Date(at).toUTCString()))])
  const numbers = new Set((source.match(/\d[\d.,'’_]*/g) ?? []).map(digitsOf))
  const isSaid = ({ kind, text: name }: Anchor): boolean => {
    if (has(name.toLowerCase())) return true
    // Dates and numbers may be formatted differently.
    if (kind === 'date') return dateAtoms(name).every((atom) => atoms.has(atom))
    return kind === 'number' && (name.match(/\d[\d.,'’_]*/g) ?? []).every((number) => numbers.has(digitsOf(number)))
  }
  const isClaim = (anchor: Anchor): boolean =>
    anchor.kind !== 'name' && anchor.kind !== 'constraint' && !isCompoundWord(anchor)
  return findAnchors(text).find((anchor) => isClaim(anchor) && !isSaid(anchor))?.text
}

const digitsOf = (number: string): string => number.replace(/\D/g, '')
/** Reduces words to three letters and normalises numbers, so that `September 3rd`, `3 Sep.` and `03/09` match. */
const dateAtoms = (text: string): string[] =>
  (text.toLowerCase().match(/\d+|\p{L}{3,}/gu) ?? []).map((atom) =>
    /^\d/.test(atom) ? String(Number(atom)) : atom.slice(0, 3),
  )

/** Finds the first anchor that only the built-in summary covers, if the text covers less by weight. */
function* findUncovered(text: string, input: VerifyInput): Work<string | undefined> {
  const [constraint] = yield* findMissingConstraints(text, input)
  if (constraint !== undefined) return constraint.clause
  const [has, baselineHas] = [createTextFinder(text), createTextFinder(input.baseline)]
  let [covered, needed] = [0, 0]
  let missing: string | undefined
  for (const [name, weight] of yield* countMentions(withPreviousSummary(input))) {
    const [isHere, isThere] = [has(name), baselineHas(name)]
    if (isHere) covered += weight
    if (isThere) needed += weight
    if (isThere && !isHere) missing ??= name
  }
  return covered < needed - 1e-9 ? missing : undefined
}

/** Prepends the previous summary as a user message: a new summary must cover it as well. */
const withPreviousSummary = ({ messages, previous }: VerifyInput): readonly SummaryMessage[] =>
  previous === undefined ? messages : [{ id: '', sequence: 0, at: 0, role: 'user', content: previous }, ...messages]

/** Finds user constraints that the built-in summary has and a text lacks, each with its sentence. */
function* findMissingConstraints(
  text: string,
  { messages, previous, baseline }: VerifyInput,
): Work<readonly { readonly clause: string; readonly line: string }[]> {
  const [hasConstraint, baselineHasConstraint] = [createConstraintFinder(text), createConstraintFinder(baseline)]
  const earlier = splitEarlierSummary(
    previous === undefined ? undefined : { text: previous, sources: [] },
  ).pieces.filter(({ isPerson }) => isPerson)
  const missing: { clause: string; line: string }[] = []
  for (const piece of [...earlier, ...(yield* splitIntoPieces(messages.filter(isBinding)))]) {
    for (const { kind, text: clause } of findAnchors(piece.text))
      if (kind === 'constraint' && baselineHasConstraint(clause) && !hasConstraint(clause))
        missing.push({ clause, line: renderPieces([{ ...piece, day: '' }], []) })
    yield piece.text.length
  }
  return missing
}

/** Weighs names and numbers by the speakers and the number of their mentions. */
function* countMentions(messages: readonly SummaryMessage[]): Work<ReadonlyMap<string, number>> {
  const mentions = new Map<string, number>()
  for (const message of messages) {
    for (const anchor of findAnchors(message.content))
      if (isNameable(anchor) && !isCompoundWord(anchor))
        mentions.set(anchor.text, (mentions.get(anchor.text) ?? 0) + mentionWeight(message))
    yield message.content.length
  }
  return new Map([...mentions].map(([name, sum]) => [name, Math.log(1 + sum)]))
}

/** Adds missing constraints and names of the source to a model's summary, as far as the target allows. */
export function* repairSummary(candidate: string, input: VerifyInput): Work<string> {
  let text = candidate.trim()
  if (text === '' || !fitsTarget(text, input.target)) return text
  for (const { line } of (yield* findMissingConstraints(text, input)).slice(0, maxAddedConstraints))
    if (fitsTarget(`${text}\n${line}`, input.target)) text = `${text}\n${line}`
  const names = missingNames(text, yield* rankNames(withPreviousSummary(input), []))
  const withNames = (count: number): string =>
    count === 0 ? text : `${text}\n${renderPieces([], names.slice(0, count))}`
  return fillToMinimum(
    withNames(findLargest(names.length, (count) => fitsTarget(withNames(count), input.target))),
    input,
  )
}

/** Adds lines of the built-in summary until the text has the minimum length. */
function fillToMinimum(text: string, input: VerifyInput): string {
  let result = text
  for (const line of input.baseline.split('\n')) {
    if (countWords(result) >= minWords(input)) break
    if (!result.includes(line) && fitsTarget(`${result}\n${line}`, input.target)) result = `${result}\n${line}`
  }
  return result
}
