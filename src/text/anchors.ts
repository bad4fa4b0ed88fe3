import { findFacts } from './facts.ts'
import { sentencesOf } from './sentences.ts'

export type AnchorKind = 'url' | 'path' | 'identifier' | 'number' | 'date' | 'name' | 'constraint'

/** Something that has to survive to the letter, and where it stands: `text.slice(start, end)`. */
export type Anchor = { readonly kind: AnchorKind; readonly text: string; readonly start: number; readonly end: number }

/** A longer run of letters and joints is a blob, and a longer sentence none that a person has said. */
const longest = { run: 300, sentence: 1_200 }

/**
 * URLs, paths, identifiers, numbers of four digits or more and amounts, dates, proper names and negated constraints, in
 * the order they begin. What lies inside another one is left out, except inside a constraint, which is a clause.
 *
 * @example
 * anchorsIn('Never deploy src/app.ts on Fridays.').map((anchor) => anchor.text) // ['Never deploy src/app.ts on Fridays', 'src/app.ts']
 */
export function anchorsIn(text: string): readonly Anchor[] {
  const exact = outermost([...factsIn(text), ...amountsIn(text), ...datesIn(text), ...runsIn(text)])
  return [...exact, ...namesIn(text, exact), ...constraintsIn(text)].sort(byPlace)
}

/** Two common words with a hyphen or a slash between them, `well-known` or `and/or`: more often prose than the name of a thing. */
export const isCompound = ({ kind, text }: Pick<Anchor, 'kind' | 'text'>): boolean =>
  (kind === 'identifier' || kind === 'path') && /^[A-Za-z]+[-/][A-Za-z]+$/.test(text)

const byPlace = (left: Anchor, right: Anchor): number => left.start - right.start || right.end - left.end

function outermost(anchors: readonly Anchor[]): Anchor[] {
  let reached = -1
  return [...anchors].sort(byPlace).filter(({ end }) => {
    if (end <= reached) return false
    reached = end
    return true
  })
}

const anchor = (kind: AnchorKind, text: string, start: number): Anchor => ({
  kind,
  text,
  start,
  end: start + text.length,
})

const isDate = (fact: string): boolean =>
  /^(?:\d{4}[-/.]\d{1,2}(?:[-/.]\d{1,2})?|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}|\d{1,2}:\d{2}(?::\d{2})?)$/.test(fact)
const hasFourDigits = (fact: string): boolean => fact.replace(/[.,'’_]/g, '').search(/\d{4}/) >= 0

/** What `findFacts` knows how to delimit; error messages and attributes are sentences and markup, not names. */
function factsIn(text: string): Anchor[] {
  const found: Anchor[] = []
  for (const { text: fact, start } of findFacts(text)) {
    const kind = kindOfFact(fact)
    if (kind !== undefined) found.push(anchor(kind, fact, start))
  }
  return found
}

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

const amountsIn = (text: string): Anchor[] =>
  Array.from(text.matchAll(amount), ({ 0: found, index }) => anchor('number', found, index))

const month =
  '(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)'
const day = '\\d{1,2}(?:st|nd|rd|th)?'
const date = new RegExp(
  `\\b\\d{4}-\\d\\d-\\d\\d[T ]\\d\\d:\\d\\d(?::\\d\\d(?:\\.\\d{1,9})?)?(?:Z|[+-]\\d\\d:?\\d\\d)?\\b|(?<![\\w.,])(?:${day} (?:of )?${month}\\b(?:\\.?,? \\d{4}\\b)?|\\d{1,2}(?::\\d{2})? ?[ap]\\.?m\\b)|\\b${month}\\.? (?:${day}(?:,? \\d{4})?|\\d{4})\\b`,
  'gi',
)

const datesIn = (text: string): Anchor[] =>
  Array.from(text.matchAll(date), ({ 0: found, index }) => anchor('date', found, index))

/** Letters and digits with what joins them; each run is looked at once, so that no text makes this slow. */
const run = /[\w@~$./-]{2,}/g
const windowsPath = /(?<!\w)[A-Za-z]:\\(?:[\w.-]{1,80}\\){0,20}[\w.-]{1,80}/g
const extension =
  /\w\.(?:[cm]?[jt]sx?|json|mdc?|txt|ya?ml|toml|ini|env|lock|py|rb|go|rs|java|kt|swift|c|h|cc|cpp|cs|php|sh|sql|html?|s?css|vue|svg|png|jpe?g|gif|pdf|csv|xml|log|zip|gz)$/i

function runsIn(text: string): Anchor[] {
  const found = Array.from(text.matchAll(windowsPath), ({ 0: path, index }) => anchor('path', path, index))
  for (const { 0: whole, index } of text.matchAll(run)) {
    if (whole.length > longest.run) continue
    const lead = leadOf(whole, text.charAt(index - 1))
    const name = whole.slice(lead).replace(/[-.@$~/]+$/, '')
    const kind = kindOfRun(name)
    if (kind !== undefined) found.push(anchor(kind, name, index + lead))
  }
  return found
}

/** How much before a name does not belong to it: a dash, the dot of a call, the stroke of `</div>` or of a pattern, the letter of `\n`. */
function leadOf(whole: string, before: string): number {
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

/** `app.config` is one name; `e.g`, `U.S` and `end.Next` are not. */
function isDotted(name: string): boolean {
  const parts = name.split('.')
  if (parts.every((part) => part.length < 2)) return false
  return !(parts.length === 2 && /^[a-z]+$/.test(parts[0] ?? '') && /^[A-Z]/.test(parts[1] ?? ''))
}

const proper = /\p{Lu}[\p{Ll}\p{M}]+(?:['’-]\p{Lu}?\p{Ll}+)?(?: \p{Lu}[\p{Ll}\p{M}]+(?:['’-]\p{Lu}?\p{Ll}+)?){0,3}/gu
const unnamed = new RegExp(`^(?:${month}|(?:mon|tues|wednes|thurs|fri|satur|sun)day|i|i['’]\\w+)$`, 'i')

/** A capital inside a sentence, or two capitalised words together; a best effort, since a first word is always capitalised. */
function namesIn(text: string, exact: readonly Anchor[]): Anchor[] {
  const found: Anchor[] = []
  let next = 0
  for (const { 0: name, index } of text.matchAll(proper)) {
    while (next < exact.length && (exact[next] as Anchor).end <= index) next++
    const isInside = (exact[next]?.start ?? Number.POSITIVE_INFINITY) < index + name.length
    const isFirst = !/[\p{Ll}\d,;] ["'(“‘]?$/u.test(text.slice(Math.max(0, index - 3), index))
    if (!isInside && !(isFirst && !name.includes(' ')) && !unnamed.test(name)) found.push(anchor('name', name, index))
  }
  return found
}

// What makes a clause a constraint. "I never went" and "we don't know" forbid nothing, so it takes an order or a duty.
const hint = /\b(?:no|not|never|avoid|only|without|except|unless|forbidden|prohibited|limits)\b|n['’]?t\b/i
const order =
  /^(?:(?:and|but|so|also|please|then|just|remember|always|important|note|rule)[,:]? ){0,3}(?:never|don['’]?t|do not|avoid|no|only|not) (?!\w+$)\w|^(?:please )?(?:never|don['’]?t|do not|avoid) \w/i
const duty =
  /\b(?:(?:must|should|shall|may|can|could|will|needs?|ought) (?:not|never|only|no longer)|(?:must|should|shall|need)n['’]t|(?:has|have|is|are) (?:never|only|not) to|not allowed|forbidden|prohibited|off[- ]limits|under no circumstances)\b/i
const command =
  /^(?:please |always |just |then |and |also )?(?:use|make|keep|write|add|run|deploy|build|create|change|update|remove|fix|refactor|implement|show|give|send|put|leave|answer|reply|respond|call|store|save|return|ensure|stick|stay|let['’]s|be)\b/i
const restriction = /\b(?:without|except|unless|only|not|never|no)\b/i
/** Sayings that begin like an order. */
const saying =
  /^(?:\w+,? ){0,3}(?:no (?:problem|worries|doubt|one|idea|way|need|matter|thanks|clue|wonder|rush|pressure|big|kidding|luck|regrets|such|other|further|specific)|not (?:sure|just|really|yet|only|at|much|bad|too|that|to|so|as|a)|never mind|don['’]?t (?:know|worry|mention|forget|get me)|only (?:if|when|a|the|one|then|because|thing))\b/i

const isConstraint = (clause: string): boolean =>
  (order.test(clause) && !saying.test(clause) && !/\b(?:needed|found|available)$/i.test(clause)) ||
  duty.test(clause) ||
  (command.test(clause) && restriction.test(clause))

/** Of every sentence the first clause that forbids or restricts, without its last stop; questions do neither. */
function constraintsIn(text: string): Anchor[] {
  const found: Anchor[] = []
  for (const sentence of sentencesOf(text)) {
    if (sentence.text.length > longest.sentence || !hint.test(sentence.text) || /\?["'”’)]*$/.test(sentence.text))
      continue
    const clause = clausesOf(sentence.text).find(({ text: clause }) => isConstraint(clause))
    if (clause !== undefined) found.push(anchor('constraint', clause.text, sentence.start + clause.start))
  }
  return found
}

const mark = /^(?:[-*+>•#]{1,6} |\d{1,3}[.)] |["'“‘([])*/
const joint = /[,:;(] |\s[-–—] |\b(?:but|and|so) (?=(?:please )?(?:never|do not|don['’]?t|avoid|only)\b)/gi
/** Where a clause is over: what follows gives the reason, or is about something else. */
const end =
  /;|(?:,|\s[-–—]) (?=(?:because|since|as|my|our|i|we|it|they|he|she|you|this|that|there|thanks|thank|which|then|but|ok|okay)\b)/gi

/** The clauses of a sentence, each from its start or from after a comma, a colon, a dash or a "but". */
function clausesOf(sentence: string): { readonly text: string; readonly start: number }[] {
  const body = sentence.replace(/[\s.!;:,…"”')\]]+$/, '')
  const starts = [
    mark.exec(body)?.[0].length ?? 0,
    ...Array.from(body.matchAll(joint), ({ 0: joint, index }) => index + joint.length),
  ]
  const ends = Array.from(body.matchAll(end), ({ index }) => index)
  return starts.flatMap((start) => {
    const clause = body.slice(start, ends.find((place) => place > start) ?? body.length).trimEnd()
    return clause === '' || clause !== clause.trimStart() ? [] : [{ text: clause, start }]
  })
}
