import type { Work } from '../../domain/work.ts'
import { type Anchor, findAnchorsInSteps } from '../../text/anchors.ts'
import { isQuestion } from '../../text/sentences.ts'
import { phoneForms, type Value } from '../../text/values.ts'
import { splitWords } from '../../text/words.ts'
import { createTextFinder } from './coverage.ts'
import type { SummaryMessage } from './summary.ts'
import { type Clause, contentTerms, splitClauses } from './valueClauses.ts'

/** A clause of the source with its speaker and its position in the conversation. */
export type SourceClause = Clause & {
  readonly message: number
  readonly speaker: string
  /** Said by a user or a named speaker, not by a program. */
  readonly isPerson: boolean
  readonly isQuestion: boolean
  /** Content words and names of the clause, and of the clause before it if it means nothing without that. */
  readonly context: ReadonlySet<string>
  /** The same of the whole sentence. */
  readonly wideContext: ReadonlySet<string>
}

/** Values of a source in normal form. */
export type ValueIndex = {
  /** Dimensions in which each number occurs: '' without a unit, `part` inside an identifier or date. */
  readonly dimensions: ReadonlyMap<string, ReadonlySet<string>>
  readonly keys: ReadonlySet<string>
  readonly phones: ReadonlySet<string>
  readonly years: ReadonlySet<string>
}

/** The source of a summary, indexed for the comparison with its claims. */
export type SourceIndex = {
  readonly clauses: readonly SourceClause[]
  readonly words: ReadonlySet<string>
  /** True for a source in German: capitals do not mark names. */
  readonly capitalisesNouns: boolean
  /** Lower-case words of proper names and speakers. */
  readonly names: ReadonlySet<string>
  /** These, and words that only occur with a capital: names at the start of a sentence. */
  readonly possibleNames: ReadonlySet<string>
  readonly has: (text: string) => boolean
  /** Names, paths and identifiers without their separators. */
  readonly compact: ReadonlySet<string>
  readonly values: ValueIndex
}

/** An answer with fewer content words is understood from its question. */
const maxAnswerTerms = 3

/** Indexes a source: the previous summary, if any, and the messages. */
export function* indexSource(messages: readonly SummaryMessage[], previous: string | undefined): Work<SourceIndex> {
  const clauses: SourceClause[] = []
  const words = new Set<string>()
  const anchors: Anchor[] = []
  const turns = [
    ...(previous === undefined ? [] : [{ text: previous, speaker: '', isPerson: true }]),
    ...messages.map(({ role, name, content }) => ({
      text: content,
      speaker: name?.toLowerCase() ?? '',
      isPerson: role === 'user' || role === 'system' || name !== undefined,
    })),
  ]
  for (const [message, { text, speaker, isPerson }] of turns.entries()) {
    for (const word of splitWords(`${speaker} ${text}`)) words.add(word)
    yield text.length
    for (const anchor of yield* findAnchorsInSteps(text)) anchors.push(anchor)
    const own = yield* splitClauses(text)
    yield text.length
    addClauses(clauses, own, { message, speaker, isPerson })
    yield text.length
  }
  const source = turns.map(({ text, speaker }) => `${speaker} ${text}`).join('\n')
  const names = nameWords(source, anchors, messages)
  yield source.length
  const possibleNames = new Set([...names, ...onlyCapitalised(source, clauses)])
  yield source.length
  const values = clauses.flatMap((clause) => clause.values)
  return {
    clauses,
    words,
    names,
    possibleNames,
    capitalisesNouns: capitalisesNouns(source),
    has: yield* createTextFinder(source.toLowerCase()),
    compact: new Set(anchors.map(({ text }) => compactForm(text))),
    values: indexValues(values, messages, source),
  }
}

/** Adds the clauses of a message with their contexts. */
function addClauses(
  clauses: SourceClause[],
  own: readonly Clause[],
  origin: Pick<SourceClause, 'message' | 'speaker' | 'isPerson'>,
): void {
  let wideContext = new Set<string>()
  let sentence = -1
  for (const clause of own) {
    const context = contextOf(clause, clauses.at(-1))
    if (clause.sentence !== sentence) wideContext = new Set()
    sentence = clause.sentence
    for (const word of context) wideContext.add(word)
    clauses.push({ ...clause, ...origin, isQuestion: isQuestion(clause.text), context, wideContext })
  }
}

/** A clause without content words, or a short answer, is understood from the clause before it. */
function contextOf({ terms, names }: Clause, before: SourceClause | undefined): ReadonlySet<string> {
  const isAnswer = terms.size === 0 || (before?.isQuestion === true && terms.size < maxAnswerTerms)
  return new Set([...terms, ...names, ...(isAnswer && before !== undefined ? [...before.terms, ...before.names] : [])])
}

/** Words of the names in a text; in German, where all nouns have capitals, only those of speakers. */
function nameWords(
  source: string,
  anchors: readonly Anchor[],
  messages: readonly SummaryMessage[],
): ReadonlySet<string> {
  const speakers = messages.flatMap(({ name }) => (name === undefined ? [] : [name.toLowerCase()]))
  if (capitalisesNouns(source)) return new Set(speakers)
  const names = anchors.filter(
    ({ kind, text }) => kind === 'name' || (kind === 'identifier' && /^\p{Lu}\p{L}+$/u.test(text)),
  )
  return new Set([
    ...speakers,
    ...names.flatMap(({ text }) => splitWords(text)).filter((word) => contentTerms(word).length > 0),
  ])
}

function onlyCapitalised(source: string, clauses: readonly SourceClause[]): readonly string[] {
  if (capitalisesNouns(source)) return []
  const lowerCase = new Set(source.match(/(?<![\p{L}])\p{Ll}\p{L}+/gu))
  return clauses.flatMap(({ names }) =>
    [...names].filter((name) => contentTerms(name).length > 0 && !lowerCase.has(name)),
  )
}

/** Letters and digits of a name, for the comparison of notations. */
export const compactForm = (text: string): string => text.toLowerCase().replace(/[^\p{L}\p{N}]/gu, '')

function indexValues(values: readonly Value[], messages: readonly SummaryMessage[], source: string): ValueIndex {
  const dimensions = new Map<string, Set<string>>()
  const keys = new Set<string>()
  const phones = new Set<string>()
  const addNumber = (amount: number, dimension: string): void => {
    const known = dimensions.get(String(amount))
    if (known === undefined) dimensions.set(String(amount), new Set([dimension]))
    else known.add(dimension)
  }
  for (const value of values) {
    for (const key of value.keys) keys.add(key)
    for (const amount of value.amounts ?? []) addNumber(amount, value.dimension ?? '')
    if (value.digits !== undefined) for (const form of phoneForms(value.digits)) phones.add(form)
    if (value.kind === 'time') for (const hour of value.text.match(/\d+/g) ?? []) addNumber(Number(hour), 'clock')
    if (value.kind === 'date') for (const key of value.keys) keys.add(key.replace(/^\d{4}-(?=\d\d-)/, '--'))
    if (value.kind === 'date') for (const key of value.keys) keys.add(key.slice(0, -3))
  }
  // Digits inside identifiers and dates may be cited without the rest.
  for (const [digits] of source.matchAll(/\d{1,15}/g))
    if (!dimensions.has(String(Number(digits)))) addNumber(Number(digits), 'part')
  for (const { at } of messages) {
    const date = new Date(at).toISOString().slice(0, 10)
    for (const key of [date, `-${date.slice(4)}`, date.slice(0, 7), `weekday:${new Date(at).getUTCDay()}`])
      keys.add(key)
  }
  const years = new Set([
    ...Array.from(source.matchAll(/(?<!\d)(?:19|20)\d\d(?!\d)/g), ({ 0: year }) => year),
    ...messages.map(({ at }) => String(new Date(at).getUTCFullYear())),
  ])
  return { dimensions, keys, phones, years }
}

/** True for texts in German and texts in title case, where a capital does not mark a name. */
export function capitalisesNouns(text: string): boolean {
  const words = text.match(/(?<=[\p{Ll},] )\p{L}{3,}/gu) ?? []
  return words.filter((word) => /^\p{Lu}/u.test(word)).length > 0.3 * words.length
}
