import { runSync, type Work } from '../domain/work.ts'
import { bySpan, findFactsInSteps, outermost } from './facts.ts'
import { splitSentencesInSteps } from './sentences.ts'

/** Kind of a text that must be preserved. */
export type AnchorKind = 'url' | 'path' | 'identifier' | 'number' | 'date' | 'name' | 'constraint'

/** Text that must be preserved verbatim: `text.slice(start, end)`. */
export type Anchor = { readonly kind: AnchorKind; readonly text: string; readonly start: number; readonly end: number }

/** Longer runs are blobs, and longer sentences are not prose; both are skipped. */
const maxRunCharacters = 300
const maxSentenceCharacters = 1_200

/**
 * Finds URLs, paths, identifiers, numbers of at least four digits, amounts, dates, proper names and negated
 * constraints, ordered by start. Anchors nested in another one are dropped, except in a constraint, which is a whole
 * clause.
 *
 * @example
 * findAnchors('Never deploy src/app.ts on Fridays.').map((anchor) => anchor.text) // ['Never deploy src/app.ts on Fridays', 'src/app.ts']
 */
export const findAnchors = (text: string): readonly Anchor[] => runSync(findAnchorsInSteps(text))

/** `findAnchors` as interruptible work. */
export function* findAnchorsInSteps(text: string): Work<readonly Anchor[]> {
  const found: Anchor[] = []
  // One by one: a text may have more anchors than a call can have arguments.
  for (const anchor of yield* findFactAnchors(text)) found.push(anchor)
  for (const find of [findAmounts, findDates]) {
    for (const anchor of find(text)) found.push(anchor)
    yield text.length
  }
  for (const anchor of yield* findRuns(text)) found.push(anchor)
  const exact = outermost(found)
  const names = findNames(text, exact)
  yield text.length
  const constraints = yield* findConstraints(text)
  return [...exact, ...names, ...constraints].sort(bySpan)
}

/**
 * Recognises two words joined by a hyphen or slash, such as `well-known` or `and/or`: usually prose, not an identifier.
 */
export const isCompoundWord = ({ kind, text }: Pick<Anchor, 'kind' | 'text'>): boolean =>
  (kind === 'identifier' || kind === 'path') && /^[A-Za-z]+[-/][A-Za-z]+$/.test(text)

const createAnchor = (kind: AnchorKind, text: string, start: number): Anchor => ({
  kind,
  text,
  start,
  end: start + text.length,
})

const isDate = (fact: string): boolean =>
  /^(?:\d{4}[-/.]\d{1,2}(?:[-/.]\d{1,2})?|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}|\d{1,2}:\d{2}(?::\d{2})?)$/.test(fact)
const hasFourDigits = (fact: string): boolean => fact.replace(/[.,'’_]/g, '').search(/\d{4}/) >= 0

/** Selects the results of `findFacts` that are names; error messages and attributes are sentences and markup. */
function* findFactAnchors(text: string): Work<Anchor[]> {
  const found: Anchor[] = []
  for (const { text: fact, start } of yield* findFactsInSteps(text)) {
    const kind = kindOfFact(fact)
    if (kind !== undefined) found.push(createAnchor(kind, fact, start))
    yield factWork
  }
  return found
}

/** Determining the kind of a fact costs as much work as this many characters. */
const factWork = 8

function kindOfFact(fact: string): AnchorKind | undefined {
  if (/^[a-z]{2,5}:\/\//i.test(fact)) return 'url'
  if (/[\s="'()]/.test(fact)) return undefined
  if (fact.includes('@') || /^#[A-Za-z_]/.test(fact) || /^\d+(?:\.\d+){3}|::/.test(fact)) return 'identifier'
  if (!/^[A-Za-z#$€£¥]{0,20}-?\d/.test(fact)) return undefined
  if (isDate(fact)) return 'date'
  if (/^(?:[A-Za-z]{1,20}-\d|#\d|v\d)/i.test(fact) || /^\d+(?:\.\d+){2,}$/.test(fact)) return 'identifier'
  return hasFourDigits(fact) || /^[$€£¥]|%$|\d[A-Za-z]{1,3}$|\d-\d/.test(fact) ? 'number' : undefined
}

const amount =
  /(?<![\w.,])[$€£¥] ?\d[\d.,]{0,30}(?<=\d)(?: ?(?:k|m|bn|million|billion)\b)?|(?<![\w.,])\d[\d.,]{0,30}(?<=\d) ?(?:%|(?:percent|dollars?|euros?|pounds|USD|EUR|GBP|million|billion)\b)/gi

const findAmounts = (text: string): Anchor[] =>
  Array.from(text.matchAll(amount), ({ 0: found, index }) => createAnchor('number', found, index))

const month =
  '(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)'
const day = '\\d{1,2}(?:st|nd|rd|th)?'
const date = new RegExp(
  `\\b\\d{4}-\\d\\d-\\d\\d[T ]\\d\\d:\\d\\d(?::\\d\\d(?:\\.\\d{1,9})?)?(?:Z|[+-]\\d\\d:?\\d\\d)?\\b|(?<![\\w.,])(?:${day} (?:of )?${month}\\b(?:\\.?,? \\d{4}\\b)?|\\d{1,2}(?::\\d{2})? ?[ap]\\.?m\\b)|\\b${month}\\.? (?:${day}(?:,? \\d{4})?|\\d{4})\\b`,
  'gi',
)

const findDates = (text: string): Anchor[] =>
  Array.from(text.matchAll(date), ({ 0: found, index }) => createAnchor('date', found, index))

/** Letters and digits with joining characters. Runs do not overlap, so matching is linear. */
const run = /[\w@~$./-]{2,}/g
const windowsPath = /(?<!\w)[A-Za-z]:\\(?:[\w.-]{1,80}\\){0,20}[\w.-]{1,80}/g
const extension =
  /\w\.(?:[cm]?[jt]sx?|json|mdc?|txt|ya?ml|toml|ini|env|lock|py|rb|go|rs|java|kt|swift|c|h|cc|cpp|cs|php|sh|sql|html?|s?css|vue|svg|png|jpe?g|gif|pdf|csv|xml|log|zip|gz)$/i

/** Runs per step; they are cheap, so that a slice has many. */
const runsPerStep = 512

function* findRuns(text: string): Work<Anchor[]> {
  const found = Array.from(text.matchAll(windowsPath), ({ 0: path, index }) => createAnchor('path', path, index))
  yield text.length
  let runs = 0
  for (const { 0: whole, index } of text.matchAll(run)) {
    if (++runs % runsPerStep === 0) yield 8 * runsPerStep
    if (whole.length > maxRunCharacters) continue
    const lead = countLeadCharacters(whole, text.charAt(index - 1))
    const name = whole.slice(lead).replace(/(?<![-.@$~/])[-.@$~/]+$/, '')
    const kind = kindOfRun(name)
    if (kind !== undefined) found.push(createAnchor(kind, name, index + lead))
  }
  return found
}

/**
 * Counts leading characters that are not part of the name: a dash, the dot of a call, the slash of `</div>`, the `n` of
 * `\n`.
 */
function countLeadCharacters(whole: string, before: string): number {
  const joint = /^(?:-{1,2}(?![A-Za-z-])|-(?!-)|[@$~.](?![\w./])|\/(?![\w.@]))+/.exec(whole)?.[0].length ?? 0
  if (joint > 0 || before === '\\') return Math.max(1, joint)
  return /^[./]/.test(whole) && /[<)\]]/.test(before) ? 1 : 0
}

function kindOfRun(name: string): AnchorKind | undefined {
  if (!/[A-Za-z]/.test(name)) return /^\d{4,}$|^\d[\d.]*(?:[-/_]\d[\d.]*)+$/.test(name) ? 'number' : undefined
  if (/[\w.@~$-]\/[\w.@$~-]|^\/\w{3}/.test(name) || extension.test(name)) return 'path'
  return isIdentifier(name) ? 'identifier' : undefined
}

function isIdentifier(name: string): boolean {
  if (/^--[a-z]/i.test(name) || /[A-Za-z0-9]_[A-Za-z0-9]|^_{1,2}[A-Za-z]{2}/.test(name) || /[a-z0-9][A-Z]/.test(name))
    return true
  if (/^\.[a-z][\w.-]+$/i.test(name) || /^[$@][A-Za-z][\w-]+$/.test(name)) return true
  if (name.includes('@')) return /^[\w.-]+@[\w.-]+$/.test(name)
  if (name.includes('.')) return isDotted(name)
  if (name.includes('-')) return /^[A-Za-z]?[a-z0-9]+(?:-[a-z0-9]+)+$/.test(name) || /\d|-\w+-/.test(name)
  return /^(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,64}$/.test(name)
}

/** Accepts `app.config`; rejects `e.g`, `U.S` and `end.Next`. */
function isDotted(name: string): boolean {
  const parts = name.split('.')
  if (parts.every((part) => part.length < 2)) return false
  return !(parts.length === 2 && /^[a-z]+$/.test(parts[0] ?? '') && /^[A-Z]/.test(parts[1] ?? ''))
}

const properName =
  /\p{Lu}[\p{Ll}\p{M}]+(?:['’-]\p{Lu}?\p{Ll}+)?(?: \p{Lu}[\p{Ll}\p{M}]+(?:['’-]\p{Lu}?\p{Ll}+)?){0,3}/gu
const notAName = new RegExp(`^(?:${month}|(?:mon|tues|wednes|thurs|fri|satur|sun)day|i|i['’]\\w+)$`, 'i')

/** Finds a capitalised word inside a sentence, or several in a row. A best effort: every first word is capitalised. */
function findNames(text: string, exact: readonly Anchor[]): Anchor[] {
  const found: Anchor[] = []
  let next = 0
  for (const { 0: name, index } of text.matchAll(properName)) {
    while (next < exact.length && (exact[next] as Anchor).end <= index) next++
    const isInside = (exact[next]?.start ?? Number.POSITIVE_INFINITY) < index + name.length
    const isFirst = !/[\p{Ll}\d,;] ["'(“‘]?$/u.test(text.slice(Math.max(0, index - 3), index))
    if (!isInside && !(isFirst && !name.includes(' ')) && !notAName.test(name))
      found.push(createAnchor('name', name, index))
  }
  return found
}

// A constraint needs an order or a duty: "I never went" and "we don't know" forbid nothing.
const negationHint = /\b(?:no|not|never|avoid|only|without|except|unless|forbidden|prohibited|limits)\b|n['’]?t\b/i
const order =
  /^(?:(?:and|but|so|also|please|then|just|remember|always|important|note|rule)[,:]? ){0,3}(?:never|don['’]?t|do not|avoid|no|only|not) (?!\w+$)\w|^(?:please )?(?:never|don['’]?t|do not|avoid) \w/i
const duty =
  /\b(?:(?:must|should|shall|may|can|could|will|needs?|ought) (?:not|never|only|no longer)|(?:must|should|shall|need)n['’]t|(?:has|have|is|are) (?:never|only|not) to|not allowed|forbidden|prohibited|off[- ]limits|under no circumstances)\b/i
const command =
  /^(?:please |always |just |then |and |also )?(?:use|make|keep|write|add|run|deploy|build|create|change|update|remove|fix|refactor|implement|show|give|send|put|leave|answer|reply|respond|call|store|save|return|ensure|stick|stay|let['’]s|be)\b/i
const restriction = /\b(?:without|except|unless|only|not|never|no)\b/i
/** Idioms that begin like an order. */
const idiom =
  /^(?:\w+,? ){0,3}(?:no (?:problem|worries|doubt|one|idea|way|need|matter|thanks|clue|wonder|rush|pressure|big|kidding|luck|regrets|such|other|further|specific)|not (?:sure|just|really|yet|only|at|much|bad|too|that|to|so|as|a)|never mind|don['’]?t (?:know|worry|mention|forget|get me)|only (?:if|when|a|the|one|then|because|thing))\b/i

const isConstraint = (clause: string): boolean =>
  (order.test(clause) && !idiom.test(clause) && !/\b(?:needed|found|available)$/i.test(clause)) ||
  duty.test(clause) ||
  (command.test(clause) && restriction.test(clause))

/**
 * Finds the first clause of each sentence that forbids or restricts something, without the final stop; skips questions.
 */
function* findConstraints(text: string): Work<Anchor[]> {
  const found: Anchor[] = []
  for (const sentence of yield* splitSentencesInSteps(text)) {
    yield sentence.text.length
    if (
      sentence.text.length > maxSentenceCharacters ||
      !negationHint.test(sentence.text) ||
      /\?["'”’)]*$/.test(sentence.text)
    )
      continue
    const clause = splitClauses(sentence.text).find(({ text: clause }) => isConstraint(clause))
    if (clause !== undefined) found.push(createAnchor('constraint', clause.text, sentence.start + clause.start))
  }
  return found
}

const leadingMarks = /^(?:[-*+>•#]{1,6} |\d{1,3}[.)] |["'“‘([])*/
const clauseStart = /[,:;(] |\s[-–—] |\b(?:but|and|so) (?=(?:please )?(?:never|do not|don['’]?t|avoid|only)\b)/gi
/** Ends a clause: a reason or another topic follows. */
const clauseEnd =
  /;|(?:,|\s[-–—]) (?=(?:because|since|as|my|our|i|we|it|they|he|she|you|this|that|there|thanks|thank|which|then|but|ok|okay)\b)/gi

/** Splits a sentence into clauses, which start after a comma, a colon, a dash or a "but". */
function splitClauses(sentence: string): { readonly text: string; readonly start: number }[] {
  const body = sentence.replace(/(?<![\s.!;:,…"”')\]])[\s.!;:,…"”')\]]+$/, '')
  const starts = [
    leadingMarks.exec(body)?.[0].length ?? 0,
    ...Array.from(body.matchAll(clauseStart), ({ 0: joint, index }) => index + joint.length),
  ]
  const ends = Array.from(body.matchAll(clauseEnd), ({ index }) => index)
  return starts.flatMap((start) => {
    const clause = body.slice(start, ends.find((index) => index > start) ?? body.length).trimEnd()
    return clause === '' || clause !== clause.trimStart() ? [] : [{ text: clause, start }]
  })
}
