import type { Sentence } from '../../text/sentences.ts'
import { runSync, type Work } from '../work.ts'
import { findStructures } from './documentStructure.ts'
import { findNames, findUrls } from './entities.ts'
import type { FactCandidate, FactMessage, TextFact } from './fields.ts'
import { findPreference } from './preferences.ts'
import { findConstraint, findDecision, findImportantFact, findImportantNumber, stripReminder } from './statements.ts'
import { type Clause, statedClauses, userLines, userSentences } from './userText.ts'

/** The least important facts beyond this number are dropped. */
const maxFactsPerMessage = 40

/**
 * Extracts facts from user messages with the built-in rules: preferences, constraints, decisions, important facts, sources,
 * document structure and names. Quoted, pasted or recalled text is ignored, and so are messages of other roles. The rules
 * cover English; in other languages they find URLs, names and numbers that are marked as important.
 *
 * @example
 * extractFacts([{ id: 'm1', role: 'user', content: 'I prefer dark mode.', at: 0 }])
 * // [{ field: 'user_preferences', key: 'theme', value: 'dark', importance: 9, at: 0, source: { message: 'm1', span: [0, 18] } }]
 */
export const extractFacts = (messages: readonly FactMessage[]): readonly FactCandidate[] =>
  runSync(extractFactsInSteps(messages))

/** `extractFacts` as interruptible work. */
export function* extractFactsInSteps(messages: readonly FactMessage[]): Work<readonly FactCandidate[]> {
  const facts: FactCandidate[] = []
  for (const { id, role, content, at } of messages) {
    if (role !== 'user') continue
    for (const { from, to, ...fact } of factsInText(content))
      facts.push({ ...fact, at, source: { message: id, span: [from, to] } })
    yield content.length
  }
  return facts
}

function factsInText(content: string): readonly TextFact[] {
  const lines = userLines(content)
  const sentences = userSentences(lines)
  const structures = findStructures(lines)
  const facts: TextFact[] = [...structures]
  for (const sentence of sentences) {
    facts.push(...findUrls(sentence))
    for (const clause of statedClauses(sentence))
      facts.push(...factsInClause(clause, content.slice(clause.end, clause.end + 120)))
  }
  return mostImportant([...facts, ...namesOutsideStructures(structures, sentences)])
}

/** Excludes section titles, which are not names. */
const namesOutsideStructures = (structures: readonly TextFact[], sentences: readonly Sentence[]): readonly TextFact[] =>
  findNames(sentences).filter((name) => !structures.some(({ from, to }) => from <= name.from && name.to <= to))

/** Classifies a clause as at most one fact: `remember that I prefer tabs` is a preference, not an important fact. */
function factsInClause(clause: Clause, after: string): readonly TextFact[] {
  const stripped = stripReminder(clause)
  const found =
    findPreference(stripped) ??
    findConstraint(stripped) ??
    findDecision(clause) ??
    findImportantFact(clause, after) ??
    findImportantNumber(clause)
  return found === undefined ? [] : [found]
}

function mostImportant(facts: readonly TextFact[]): readonly TextFact[] {
  const selected =
    facts.length > maxFactsPerMessage
      ? [...facts].sort((a, b) => b.importance - a.importance || a.from - b.from).slice(0, maxFactsPerMessage)
      : [...facts]
  return selected.sort((a, b) => a.from - b.from || b.importance - a.importance)
}
