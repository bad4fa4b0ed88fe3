import type { Source } from '../domain/entry.ts'
import { runSync, type Work } from '../domain/work.ts'
import { type AnchorKind, findAnchors, findAnchorsInSteps, isCompoundWord } from '../text/anchors.ts'
import { splitSentences, splitSentencesInSteps } from '../text/sentences.ts'
import { findClaimFaults } from './summarise/claims.ts'
import {
  createConstraintFinder,
  createTextFinder,
  createValueFinder,
  isNameable,
  mentionWeight,
  missingNames,
  rankNames,
} from './summarise/coverage.ts'
import { blankQuotations, findInjections, findInjectionsInSteps } from './summarise/injectionCheck.ts'
import { cleanModelText, dropUnfinished, trimToTarget } from './summarise/modelText.ts'
import { findLargestInSteps } from './summarise/select.ts'
import { indexSource, type SourceIndex } from './summarise/sourceIndex.ts'
import {
  countWords,
  fitsTarget,
  type NamedEntity,
  type SummaryMessage,
  type SummaryTarget,
} from './summarise/summary.ts'
import { contentTerms, contentTermsInSteps } from './summarise/valueClauses.ts'

/** Content that a summary omits, and the message that still has it. */
export type Loss = { readonly kind: AnchorKind; readonly text: string; readonly source: Source }

export type VerifyFailure =
  | 'empty'
  | 'too short'
  | 'longer'
  | 'invented'
  | 'misplaced'
  | 'stale'
  | 'negated'
  | 'uncovered'
  | 'no content'
  | 'off topic'
  | 'repetition'
  | 'echo'
  | 'over target'
  | 'markup'

export type VerifyFault = { readonly why: VerifyFailure; readonly detail: string }
/** A summary and its faults; it may be committed if there are none. */
type VerifiedText = { readonly text: string; readonly faults: readonly VerifyFault[] }

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
/** Limits the constraints and the names that are added to one summary. */
const maxAddedConstraints = 32
const maxAddedNames = 16
/** Share of the content words of the built-in summary that a summary needs, and the most it needs. */
const minContentShare = 0.25
const maxNeededTerms = 8
/** Share of the content words of a summary that must be words of the source. */
const minKnownShare = 0.35
/** Fewer content words than this are too few to tell the topic. */
const minJudgedTerms = 6
/** Share of sentences and phrases that may be repeated. */
const maxRepeatedShare = 0.25
const minJudgedPhrases = 20
const minJudgedWords = 4
/** Cost of looking for the constraints of a sentence beside its characters. */
const sentenceWork = 20
/** Cost of looking for a name, number or constraint beside its characters. */
const anchorWork = 20

/** Finds anchors and constraints of messages that a text omits. */
export const findLosses = (text: string, messages: readonly SummaryMessage[]): readonly Loss[] =>
  runSync(findLossesInSteps(text, messages))

/** `findLosses` as interruptible work. */
export function* findLossesInSteps(text: string, messages: readonly SummaryMessage[]): Work<readonly Loss[]> {
  const hasText = yield* createTextFinder(text)
  const hasConstraint = yield* createConstraintFinder(text)
  const seen = new Set<string>()
  const losses: Loss[] = []
  for (const message of messages) {
    for (const { kind, text: anchor, start, end } of yield* findAnchorsInSteps(message.content)) {
      const key = `${kind} ${anchor}`
      yield anchorWork + anchor.length
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
 * Makes the best of a model's reply: extracts the summary, trims it, checks its statements, and adds what it lacks.
 * Content is checked before anything is added, because the additions would hide what the model got wrong.
 */
export function* reviewReply(reply: string, input: VerifyInput): Work<VerifiedText> {
  const clean = dropUnfinished(cleanModelText(reply))
  const text = (yield* trimToTarget(clean, input.target, weighSentence)) ?? clean
  const faults = yield* findFaults(text, input)
  if (faults.length > 0) return { text, faults }
  const repaired = yield* repairSummary(text, input)
  return { text: repaired, faults: yield* findGaps(repaired, input) }
}

/** Checks a summary against its source and against the coverage of the built-in summary. */
export function* verifySummary(candidate: string, input: VerifyInput): Work<readonly VerifyFault[]> {
  const text = candidate.trim()
  const faults = yield* findFaults(text, input)
  return faults.length > 0 ? faults : yield* findGaps(text, input)
}

/**
 * Finds wrong content: text that is empty, markup, too long, or repeats itself or the instructions; that says nothing,
 * invents, misplaces or reverses statements, or states replaced values as current ones.
 */
function* findFaults(text: string, input: VerifyInput): Work<readonly VerifyFault[]> {
  const form = findFormFault(text, input)
  if (form !== undefined) return [form]
  yield text.length
  const index = yield* indexSource(input.messages, input.previous)
  const content = yield* findContentFault(text, index, input.baseline)
  return [...(yield* findClaimFaults(text, index)), ...(content === undefined ? [] : [content])]
}

/** Finds missing content: less coverage or fewer words than the built-in summary. */
function* findGaps(text: string, input: VerifyInput): Work<readonly VerifyFault[]> {
  const uncovered = yield* findUncovered(text, input)
  if (uncovered.length > 0) return uncovered.map((detail) => ({ why: 'uncovered', detail }))
  const source = sourceText(input)
  if (text.length >= source.length || countWords(text) >= countWords(source)) return [longer]
  // The target is a wish; a summary that says enough may be shorter.
  return countWords(text) < minWords(input) / 2
    ? [{ why: 'too short', detail: `it has ${countWords(text)} words` }]
    : []
}

const longer = { why: 'longer', detail: 'it is no shorter than its source' } as const

/** Finds a fault of the whole text, without which the others cannot be found. */
function findFormFault(text: string, input: VerifyInput): VerifyFault | undefined {
  const source = sourceText(input)
  if (text === '') return { why: 'empty', detail: 'the text is empty' }
  if (isMarkup(text)) return { why: 'markup', detail: 'it is HTML, JSON or code instead of prose' }
  if (!fitsTarget(text, input.target)) return { why: 'over target', detail: `it has ${countWords(text)} words` }
  if (text.length >= source.length || countWords(text) >= countWords(source)) return longer
  const echo = findEcho(text, input.prompt, source)
  if (echo !== undefined) return { why: 'echo', detail: echo }
  return repeatsItself(text, source) ? { why: 'repetition', detail: 'it repeats its own sentences' } : undefined
}

/** Minimum number of words: that of the target, or of the built-in summary if that is shorter. */
const minWords = ({ target, baseline }: VerifyInput): number => Math.min(target.words?.[0] ?? 0, countWords(baseline))

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
  const repeated = [...wordGrams(text)].filter((gram) => promptGrams.has(gram))
  if (repeated.length === 0) return undefined
  const sourceGrams = wordGrams(source)
  return repeated.find((gram) => !sourceGrams.has(gram))
}

function wordGrams(text: string): ReadonlySet<string> {
  const words = text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []
  return new Set(
    Array.from({ length: Math.max(0, words.length - echoWords + 1) }, (_, at) =>
      words.slice(at, at + echoWords).join(' '),
    ),
  )
}

/** True if sentences or phrases occur again and again, and more often than in the source: the model was in a loop. */
function repeatsItself(text: string, source: string): boolean {
  const sentencesOf = (of: string): readonly string[] =>
    splitSentences(of).flatMap(({ text: sentence }) => {
      const bare = sentence.toLowerCase().replace(speakerLabel, '')
      return countWords(bare) < minJudgedWords ? [] : [bare]
    })
  const repeatsMost = (itemsOf: (of: string) => readonly string[], minCount: number): boolean => {
    const items = itemsOf(text)
    const isMost = (count: number): boolean => count >= minCount && count > maxRepeatedShare * items.length
    // Most summaries repeat little, whatever their source does.
    return isMost(countRepeated(items, [])) && isMost(countRepeated(items, itemsOf(source)))
  }
  return repeatsMost(sentencesOf, 2) || (phrasesOf(text).length >= minJudgedPhrases && repeatsMost(phrasesOf, 1))
}

/** All runs of four words. */
function phrasesOf(text: string): readonly string[] {
  const words = text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []
  return words.slice(3).map((_, at) => words.slice(at, at + 4).join(' '))
}

/** Counts the occurrences of items beyond the first, and beyond those in the source. */
function countRepeated(items: readonly string[], source: readonly string[]): number {
  const counts = new Map(items.map((item) => [item, 0]))
  for (const item of items) counts.set(item, (counts.get(item) ?? 0) + 1)
  const allowed = new Map(items.map((item) => [item, 0]))
  for (const item of source) if (allowed.has(item)) allowed.set(item, (allowed.get(item) ?? 0) + 1)
  return [...counts].reduce((sum, [item, count]) => sum + Math.max(0, count - Math.max(1, allowed.get(item) ?? 0)), 0)
}

/** Finds out if a summary says little of what was said, or mostly something else. */
function* findContentFault(
  text: string,
  { clauses, words, capitalisesNouns }: SourceIndex,
  baseline: string,
): Work<VerifyFault | undefined> {
  const names = new Set(clauses.flatMap((clause) => [...clause.names]))
  const salient = new Set(
    clauses.flatMap(({ terms, names: own }) => [...terms].filter((term) => capitalisesNouns || !own.has(term))),
  )
  const said = clauses.length === 0 ? new Set<string>() : new Set(clauses.flatMap(({ terms }) => [...terms]))
  const own = [...new Set(yield* contentTermsInSteps(yield* withoutNames(text)))]
  const known = own.filter((term) => said.has(term) || words.has(term) || names.has(term))
  const baselineTerms = yield* contentTermsInSteps(yield* withoutNames(baseline))
  const shown = new Set(baselineTerms.filter((term) => salient.has(term)))
  const needed = Math.min(maxNeededTerms, shown.size, Math.max(1, Math.floor(minContentShare * shown.size)))
  if (own.filter((term) => salient.has(term)).length < needed)
    return { why: 'no content', detail: 'it says too little of what was said' }
  const isForeign = own.length >= minJudgedTerms && known.length < minKnownShare * own.length
  return isForeign ? { why: 'off topic', detail: 'it is about something else' } : undefined
}

/** Removes paths, identifiers and words in capitals: a list of them is no summary. */
function* withoutNames(text: string): Work<string> {
  const kept: string[] = []
  let reached = 0
  for (const { kind, start, end } of yield* findAnchorsInSteps(text)) {
    if (kind !== 'url' && kind !== 'path' && kind !== 'identifier') continue
    kept.push(text.slice(reached, Math.max(reached, start)))
    reached = Math.max(reached, end)
  }
  return [...kept, text.slice(reached)].join(' ').replace(/(?<![\p{L}])\p{Lu}{2,}(?![\p{L}])/gu, ' ')
}

/** Finds constraints that only the built-in summary has, and names if the text covers less of them by weight. */
function* findUncovered(text: string, input: VerifyInput): Work<readonly string[]> {
  const constraints = (yield* findMissingConstraints(text, input)).map(({ clause }) => clause)
  // A series is a list of like values, of which a narrative names a few.
  const narrative = input.baseline.replace(/^Series: .*$/gm, '')
  const [has, baselineHas] = [yield* createValueFinder(text), yield* createValueFinder(narrative)]
  let [covered, needed] = [0, 0]
  const missing: string[] = []
  for (const [name, weight] of yield* countMentions(withPreviousSummary(input))) {
    const [isHere, isThere] = [has(name), baselineHas(name)]
    if (isHere) covered += weight
    if (isThere) needed += weight
    if (isThere && !isHere) missing.push(name)
    yield name.length
  }
  return [...constraints, ...(covered < needed - 1e-9 ? missing : [])]
}

/** Prepends the previous summary as a user message: a new summary must cover it as well. */
const withPreviousSummary = ({ messages, previous }: VerifyInput): readonly SummaryMessage[] =>
  previous === undefined ? messages : [{ id: '', sequence: 0, at: 0, role: 'user', content: previous }, ...messages]

const otherSpeaker = /^(?:Assistant|Tool|Note): /
const speakerLabel = /^[\p{L}\p{N}][^:\n]{0,39}: /u

/** Finds user constraints that the built-in summary has and a text lacks, each with its sentence. */
function* findMissingConstraints(
  text: string,
  { messages, previous, baseline }: VerifyInput,
): Work<readonly { readonly clause: string; readonly line: string }[]> {
  const hasConstraint = yield* createConstraintFinder(text)
  const baselineHasConstraint = yield* createConstraintFinder(baseline)
  const missing: { clause: string; line: string }[] = []
  const collect = function* (content: string, label: string): Work<void> {
    for (const { text: sentence } of yield* splitSentencesInSteps(content)) {
      for (const { kind, text: clause } of yield* findAnchorsInSteps(sentence))
        if (kind === 'constraint' && baselineHasConstraint(clause) && !hasConstraint(clause))
          missing.push({ clause, line: `${label}${sentence.replace(/^[-*•#>\s]+/, '').replace(/\s+/g, ' ')}` })
      yield sentenceWork
    }
  }
  let isOther = false
  for (const line of (previous ?? '').split('\n')) {
    if (speakerLabel.test(line)) isOther = otherSpeaker.test(line)
    if (!isOther) yield* collect(line, '')
  }
  for (const message of messages.filter(isBinding)) {
    yield* collect(message.content, message.role === 'user' ? 'User: ' : 'Note: ')
    yield message.content.length
  }
  const harmless: typeof missing = []
  for (const constraint of missing)
    if ((yield* findInjectionsInSteps(constraint.line)).length === 0) harmless.push(constraint)
  return harmless
}

/** Weighs names and numbers by the speakers and the number of their mentions. */
function* countMentions(messages: readonly SummaryMessage[]): Work<ReadonlyMap<string, number>> {
  const mentions = new Map<string, number>()
  for (const message of messages) {
    for (const anchor of yield* findAnchorsInSteps(message.content))
      if (isNameable(anchor) && !isCompoundWord(anchor))
        mentions.set(anchor.text, (mentions.get(anchor.text) ?? 0) + mentionWeight(message))
    yield message.content.length
  }
  return new Map([...mentions].map(([name, sum]) => [name, Math.log(1 + sum)]))
}

/** Adds missing constraints and names of the source to a model's summary, one per line, as far as the target allows. */
export function* repairSummary(candidate: string, input: VerifyInput): Work<string> {
  let text = candidate.trim()
  if (text === '' || !fitsTarget(text, input.target)) return text
  const add = function* (line: string): Work<boolean> {
    const isFitting = fitsTarget(`${text}\n${line}`, input.target)
    if (isFitting) text = `${text}\n${line}`
    yield text.length
    return isFitting
  }
  for (const { line } of (yield* findMissingConstraints(text, input)).slice(0, maxAddedConstraints)) yield* add(line)
  const names = yield* missingNames(text, yield* rankNames(withPreviousSummary(input), []))
  for (const name of names.slice(0, maxAddedNames))
    if (!(yield* add(`Also: ${describeName(name, input)}.`))) yield* add(`Also: ${name.text}.`)
  const rest = (yield* missingNames(text, names)).map((name) => name.text)
  const withRest = (count: number): string =>
    count === 0 ? text : `${text}\nAlso: ${rest.slice(0, count).join(', ')}.`
  const fits = function* (count: number): Work<boolean> {
    yield text.length
    return fitsTarget(withRest(count), input.target)
  }
  return yield* fillToMinimum(withRest(yield* findLargestInSteps(rest.length, fits)), input)
}

const weighSentence = (sentence: string): number =>
  1 + 0.2 * contentTerms(sentence).length + findAnchors(sentence).length * 4

/** Words before a name that describe it, such as "order number" before `BK-20418`. */
function describeName({ text, sources: [source] }: NamedEntity, input: VerifyInput): string {
  const content = withPreviousSummary(input).find(({ id }) => id === source?.message)?.content ?? ''
  const before = content.slice(0, source?.span?.[0] ?? 0).slice(-60)
  const [lead = ''] = /(?:[\p{L}’'-]{1,20} ){1,6}$/u.exec(before) ?? []
  const words = lead.trim().split(' ')
  const first = words.findIndex((word) => contentTerms(word).length > 0)
  const description = first < 0 ? text : `${words.slice(first).join(' ')} ${text}`
  return findInjections(description).length > 0 ? text : description
}

/** Adds lines of the built-in summary until the text has the minimum length. */
function* fillToMinimum(text: string, input: VerifyInput): Work<string> {
  const minimum = minWords(input)
  let result = text
  let words = countWords(text)
  for (const line of input.baseline.split('\n')) {
    if (words >= minimum) break
    yield result.length
    if (result.includes(line) || !fitsTarget(`${result}\n${line}`, input.target)) continue
    result = `${result}\n${line}`
    words += countWords(line)
  }
  return result
}
