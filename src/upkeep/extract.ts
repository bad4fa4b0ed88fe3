import type { Sentence } from '../text/sentences.ts'
import { type Clause, clausesOf } from './extract/clauses.ts'
import { factIn, numberThatMatters, remindedOf } from './extract/facts.ts'
import type { Found, Noted, Told } from './extract/found.ts'
import { namesIn, urlsIn } from './extract/names.ts'
import { preferenceIn } from './extract/preferences.ts'
import { linesSpoken, sentencesSpoken } from './extract/spoken.ts'
import { constraintIn, decisionIn } from './extract/statements.ts'
import { structuresIn } from './extract/structure.ts'
import { finished, type Work } from './work.ts'

export { type Field, type Found, fields, type Told } from './extract/found.ts'

/** The most that is kept of one message; what matters least goes first. */
const most = 40

/**
 * What users say that must not be forgotten, by the built-in rules: preferences, constraints, decisions, facts, sources, the
 * structure of a document, names. Only what users say in their own words counts: nothing that is quoted, pasted or
 * recalled, and nothing a tool, a system or an assistant has said. The rules know English; of other languages they
 * find URLs, names and numbers that are said to be important.
 *
 * @example
 * extractFacts([{ id: 'm1', role: 'user', content: 'I prefer dark mode.', at: 0 }])
 * // [{ field: 'user_preferences', key: 'theme', value: 'dark', importance: 9, at: 0, source: { message: 'm1', span: [0, 18] } }]
 */
export const extractFacts = (messages: readonly Told[]): readonly Found[] => finished(extracting(messages))

/** The same as work that may be interrupted. */
export function* extracting(messages: readonly Told[]): Work<readonly Found[]> {
  const found: Found[] = []
  for (const { id, role, content, at } of messages) {
    if (role !== 'user') continue
    for (const { from, to, ...noted } of notedIn(content))
      found.push({ ...noted, at, source: { message: id, span: [from, to] } })
    yield content.length
  }
  return found
}

function notedIn(content: string): readonly Noted[] {
  const lines = linesSpoken(content)
  const sentences = sentencesSpoken(lines)
  const structures = structuresIn(lines)
  const noted: Noted[] = [...structures]
  for (const sentence of sentences) {
    noted.push(...urlsIn(sentence))
    for (const clause of clausesOf(sentence))
      noted.push(...statedIn(clause, content.slice(clause.end, clause.end + 120)))
  }
  return foremost([...noted, ...namesOutside(structures, sentences)])
}

/** The title of a section is nobody's name. */
const namesOutside = (structures: readonly Noted[], sentences: readonly Sentence[]): readonly Noted[] =>
  namesIn(sentences).filter((name) => !structures.some(({ from, to }) => from <= name.from && name.to <= to))

/** A clause is taken for one thing: `remember that I prefer tabs` is a preference before it is a fact. */
function statedIn(clause: Clause, after: string): readonly Noted[] {
  const reminded = remindedOf(clause)
  const found =
    preferenceIn(reminded) ??
    constraintIn(reminded) ??
    decisionIn(clause) ??
    factIn(clause, after) ??
    numberThatMatters(clause)
  return found === undefined ? [] : [found]
}

function foremost(noted: readonly Noted[]): readonly Noted[] {
  const kept =
    noted.length > most
      ? [...noted].sort((a, b) => b.importance - a.importance || a.from - b.from).slice(0, most)
      : [...noted]
  return kept.sort((a, b) => a.from - b.from || b.importance - a.importance)
}
