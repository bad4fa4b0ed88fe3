import type { Source } from '../domain/entry.ts'
import { type Anchor, type AnchorKind, anchorsIn, isCompound } from '../text/anchors.ts'
import { earlierOf } from './summarise/earlier.ts'
import { largest } from './summarise/pack.ts'
import { piecesOf } from './summarise/pieces.ts'
import { constraintsIn, finderIn } from './summarise/presence.ts'
import { render } from './summarise/render.ts'
import { smuggledIn, withoutQuotations } from './summarise/smuggled.ts'
import { isNamed, mentionOf, namesOf, unnamedIn } from './summarise/tail.ts'
import { countWords, isWithin, type Target, type Told } from './summarise/told.ts'
import { finished, type Work } from './work.ts'

/** Something that must survive and does not, and the message that still holds it. */
export type Loss = { readonly kind: AnchorKind; readonly text: string; readonly source: Source }

export type Checked =
  | { readonly ok: true }
  | {
      readonly ok: false
      readonly why: 'empty' | 'too short' | 'longer' | 'invented' | 'uncovered' | 'echo' | 'over target' | 'markup'
      readonly detail: string
    }

/** What a model was given, what the built-in summary of it says, and the instructions it was given with it. */
export type Given = {
  readonly messages: readonly Told[]
  readonly previous: string | undefined
  readonly baseline: string
  readonly prompt: string
  readonly target: Target
}

/** So many words in the order of the instructions are no accident. */
const echoed = 8
/** So many constraints are added at most: who sets more has not written them for one summary. */
const mended = 32

/** Everything that must survive and is not in a text, each with the message that still holds it. */
export const lossesOf = (text: string, messages: readonly Told[]): readonly Loss[] =>
  finished(findingLosses(text, messages))

/** The same as work that may be interrupted. */
export function* findingLosses(text: string, messages: readonly Told[]): Work<readonly Loss[]> {
  const [has, keeps] = [finderIn(text), constraintsIn(text)]
  const seen = new Set<string>()
  const losses: Loss[] = []
  for (const message of messages) {
    for (const { kind, text: wanted, start, end } of anchorsIn(message.content)) {
      const key = `${kind} ${wanted}`
      if (seen.has(key) || (kind === 'constraint' && !binds(message))) continue
      seen.add(key)
      if (!(kind === 'constraint' ? keeps(wanted) : has(wanted)))
        losses.push({ kind, text: wanted, source: { message: message.id, span: [start, end] } })
    }
    yield message.content.length
  }
  return losses
}

/** Whose constraints hold: what an assistant advises or a page demands binds nobody. */
const binds = ({ role }: Told): boolean => role === 'user' || role === 'system'

/** Whether a model's summary may stand: against its source and against what the built-in summary of the same source covers. */
export const verify = (candidate: string, given: Given): Checked => finished(verifying(candidate, given))

/** The same as work that may be interrupted. */
export function* verifying(candidate: string, given: Given): Work<Checked> {
  const text = candidate.trim()
  const source = sourceOf(given)
  if (text === '') return refuse('empty', 'nothing was written')
  if (isMarkup(text)) return refuse('markup', 'it is HTML, JSON or code instead of prose')
  if (!isWithin(text, given.target)) return refuse('over target', `it has ${countWords(text)} words`)
  if (text.length >= source.length || countWords(text) >= countWords(source))
    return refuse('longer', 'it is no shorter than what it sums up')
  const echo = echoIn(text, given.prompt, source)
  if (echo !== undefined) return refuse('echo', echo)
  yield source.length
  const invented = inventedIn(text, source, given.messages)
  if (invented !== undefined) return refuse('invented', invented)
  yield source.length
  const uncovered = yield* uncoveredIn(text, given)
  if (uncovered !== undefined) return refuse('uncovered', uncovered)
  return countWords(text) < leastOf(given) ? refuse('too short', `it has ${countWords(text)} words`) : { ok: true }
}

const refuse = (why: Extract<Checked, { ok: false }>['why'], detail: string): Checked => ({ ok: false, why, detail })

/** The fewest words a summary may have: those of its target, if there are so many to say. */
const leastOf = ({ target, baseline }: Given): number => Math.min(target.words?.[0] ?? 0, countWords(baseline))

/** Whether a model has said so little that what could be added would not be its summary any more. */
export const saysNothing = (candidate: string, given: Given): boolean =>
  countWords(candidate) < Math.min(leastOf(given), countWords(given.baseline)) / 2

const sourceOf = ({ messages, previous }: Pick<Given, 'messages' | 'previous'>): string =>
  [previous ?? '', ...messages.map(({ name, content }) => (name === undefined ? content : `${name}: ${content}`))]
    .join('\n')
    .trim()

/** Of a text that begins as data or code, or is full of tags. */
function isMarkup(text: string): boolean {
  if (/^(?:\{|\[\s*[[{"]|```|~~~|<!doctype|<\?xml|<[a-z][^<>|\n]{0,200}>)/i.test(text)) return true
  return (text.match(/<\/?[a-z][^<>\n]{0,200}>/gi)?.length ?? 0) >= 3
}

/** The instructions repeated, or words to the model that reads the summary, unless they are quoted. */
function echoIn(text: string, prompt: string, source: string): string | undefined {
  const bare = withoutQuotations(text)
  const [order] = smuggledIn(bare)
  if (order !== undefined) return bare.slice(...order)
  const asked = gramsOf(prompt)
  if (asked.size === 0) return undefined
  const said = gramsOf(source)
  for (const gram of gramsOf(text)) if (asked.has(gram) && !said.has(gram)) return gram
  return undefined
}

function gramsOf(text: string): ReadonlySet<string> {
  const words = text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []
  return new Set(
    Array.from({ length: Math.max(0, words.length - echoed + 1) }, (_, at) => words.slice(at, at + echoed).join(' ')),
  )
}

/** The first name, number or date that nobody has said. */
function inventedIn(text: string, source: string, messages: readonly Told[]): string | undefined {
  const has = finderIn(source.toLowerCase())
  const atoms = new Set([...atomsOf(source), ...messages.flatMap(({ at }) => atomsOf(new Date(at).toUTCString()))])
  const numbers = new Set((source.match(/\d[\d.,'’_]*/g) ?? []).map(digitsOf))
  const isSaid = ({ kind, text: name }: Anchor): boolean => {
    if (has(name.toLowerCase())) return true
    // The same day or number may be written in another way.
    if (kind === 'date') return atomsOf(name).every((atom) => atoms.has(atom))
    return kind === 'number' && (name.match(/\d[\d.,'’_]*/g) ?? []).every((number) => numbers.has(digitsOf(number)))
  }
  const isClaim = (anchor: Anchor): boolean =>
    anchor.kind !== 'name' && anchor.kind !== 'constraint' && !isCompound(anchor)
  return anchorsIn(text).find((anchor) => isClaim(anchor) && !isSaid(anchor))?.text
}

const digitsOf = (number: string): string => number.replace(/\D/g, '')
/** Words of three letters and numbers: `September 3rd`, `3 Sep.` and `03/09` have most in common. */
const atomsOf = (text: string): string[] =>
  (text.toLowerCase().match(/\d+|\p{L}{3,}/gu) ?? []).map((atom) =>
    /^\d/.test(atom) ? String(Number(atom)) : atom.slice(0, 3),
  )

/** The first thing of weight that the built-in summary covers and this text does not, if it covers less. */
function* uncoveredIn(text: string, given: Given): Work<string | undefined> {
  const [constraint] = yield* missingConstraints(text, given)
  if (constraint !== undefined) return constraint.clause
  const [has, baselineHas] = [finderIn(text), finderIn(given.baseline)]
  let [covered, needed] = [0, 0]
  let missing: string | undefined
  for (const [name, weight] of yield* mentionsIn(heldBy(given))) {
    const [isHere, isThere] = [has(name), baselineHas(name)]
    if (isHere) covered += weight
    if (isThere) needed += weight
    if (isThere && !isHere) missing ??= name
  }
  return covered < needed - 1e-9 ? missing : undefined
}

/** What a summary must cover: the messages, and the earlier summary as if the user had said it. */
const heldBy = ({ messages, previous }: Given): readonly Told[] =>
  previous === undefined ? messages : [{ id: '', sequence: 0, at: 0, role: 'user', content: previous }, ...messages]

/** Constraints of the user that the built-in summary keeps and a text does not, each with its sentence and who has said it. */
function* missingConstraints(
  text: string,
  { messages, previous, baseline }: Given,
): Work<readonly { readonly clause: string; readonly line: string }[]> {
  const [kept, keptByBaseline] = [constraintsIn(text), constraintsIn(baseline)]
  const earlier = earlierOf(previous === undefined ? undefined : { text: previous, sources: [] }).pieces.filter(
    ({ isPerson }) => isPerson,
  )
  const missing: { clause: string; line: string }[] = []
  for (const piece of [...earlier, ...(yield* piecesOf(messages.filter(binds), 0))]) {
    for (const { kind, text: clause } of anchorsIn(piece.text))
      if (kind === 'constraint' && keptByBaseline(clause) && !kept(clause))
        missing.push({ clause, line: render([piece], []) })
    yield piece.text.length
  }
  return missing
}

/** Names and numbers that count, with how much: by who said them and how often. */
function* mentionsIn(messages: readonly Told[]): Work<ReadonlyMap<string, number>> {
  const mentions = new Map<string, number>()
  for (const message of messages) {
    for (const anchor of anchorsIn(message.content))
      if (isNamed(anchor) && !isCompound(anchor))
        mentions.set(anchor.text, (mentions.get(anchor.text) ?? 0) + mentionOf(message))
    yield message.content.length
  }
  return new Map([...mentions].map(([name, sum]) => [name, Math.log(1 + sum)]))
}

/** A model's summary with the sentences and names of the source that it misses, as far as the target allows. */
export const mend = (candidate: string, given: Given): string => finished(mending(candidate, given))

/** The same as work that may be interrupted. */
export function* mending(candidate: string, given: Given): Work<string> {
  let text = candidate.trim()
  if (text === '' || !isWithin(text, given.target)) return text
  for (const { line } of (yield* missingConstraints(text, given)).slice(0, mended))
    if (isWithin(`${text}\n${line}`, given.target)) text = `${text}\n${line}`
  const names = unnamedIn(text, yield* namesOf(heldBy(given), []))
  const withNames = (count: number): string => (count === 0 ? text : `${text}\n${render([], names.slice(0, count))}`)
  return filled(withNames(largest(names.length, (count) => isWithin(withNames(count), given.target))), given)
}

/** With lines of the built-in summary that it does not have, until it is as long as it should be. */
function filled(text: string, given: Given): string {
  let result = text
  for (const line of given.baseline.split('\n')) {
    if (countWords(result) >= leastOf(given)) break
    if (!result.includes(line) && isWithin(`${result}\n${line}`, given.target)) result = `${result}\n${line}`
  }
  return result
}
