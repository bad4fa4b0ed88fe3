import { runSync, type Work } from '../../domain/work.ts'
import type { Sentence } from '../../text/sentences.ts'
import { type Clause, statedClauses } from './clauses.ts'
import type { FactCandidate, FactMessage, TextFact } from './fields.ts'
import type { LanguageRules } from './languages/language.ts'
import { english, likelyLanguages } from './languages/languages.ts'
import { findNames } from './names.ts'
import { userLines, userSentences } from './ownText.ts'
import { foldText, trimPhrase } from './phrases.ts'
import { findPreference } from './preferences.ts'
import { isBareReminder, stripReminder } from './reminders.ts'
import {
  findContact,
  findCountOrTitle,
  findLabelled,
  findOwned,
  findPairs,
  findRelatives,
  findReplaced,
  findRevision,
  findStatement,
  isChange,
} from './slots.ts'
import {
  findChoice,
  findConstraint,
  findDecision,
  findHabit,
  findPersonalFact,
  findUses,
  isCritical,
  rawFact,
} from './statements.ts'
import { findStructures } from './structures.ts'
import { findUrls } from './urls.ts'

/** The least important facts beyond this number are dropped. */
const maxFactsPerMessage = 40

/**
 * Extracts facts from user messages with the built-in rules: preferences, constraints, decisions, important facts,
 * sources, document structure and names. Quoted, pasted or recalled text is ignored, and so are messages of other
 * roles. The rules cover English, German, French, Spanish, Portuguese and Dutch; in other languages they find URLs and
 * names.
 *
 * @example
 * extractFacts([{ id: 'm1', role: 'user', content: 'I prefer dark mode.', at: 0 }])
 * // [{ field: 'user_preferences', key: 'theme', value: 'dark', importance: 9, at: 0, source: { message: 'm1', span: [0, 18] } }]
 */
export const extractFacts = (messages: readonly FactMessage[]): readonly FactCandidate[] =>
  runSync(extractFactsInSteps(messages))

/** `extractFacts` as interruptible work. */
export function* extractFactsInSteps(messages: readonly FactMessage[]): Work<readonly FactCandidate[]> {
  return (yield* extractInSteps(messages)).map(({ fact }) => fact)
}

/**
 * Extracts only what the user asks to remember: `remember that …`, or the statement before `please remember that`,
 * which may be in the message before.
 */
export function* extractRemindersInSteps(messages: readonly FactMessage[]): Work<readonly FactCandidate[]> {
  return (yield* extractInSteps(messages)).flatMap(({ fact, isReminder }) => (isReminder ? [fact] : []))
}

type Extracted = { readonly fact: FactCandidate; readonly isReminder: boolean }

function* extractInSteps(messages: readonly FactMessage[]): Work<readonly Extracted[]> {
  const facts: Extracted[] = []
  let language = english
  let previous: FactMessage | undefined
  for (const message of messages) {
    if (message.role !== 'user') continue
    const read = yield* readMessage(message.content, language)
    language = read.language
    facts.push(...read.facts.map((fact) => toExtracted(fact, message)))
    if (read.remindsOfPrevious && previous !== undefined) {
      const reminded = yield* readMessage(previous.content, language, true)
      for (const fact of reminded.facts) if (fact.isReminder) facts.push(toExtracted(fact, previous))
    }
    previous = message
  }
  return facts
}

const toExtracted = ({ from, to, isReminder, ...fact }: TextFact, { id, at }: FactMessage): Extracted => ({
  fact: { ...fact, at, source: { message: id, span: [from, to] } },
  isReminder: isReminder === true,
})

type ReadMessage = {
  readonly language: LanguageRules
  readonly facts: readonly TextFact[]
  /** The message asks to remember what was said before it. */
  readonly remindsOfPrevious: boolean
}

/** Finds the facts of a message. With `isReminded`, all its statements are to be remembered. */
function* readMessage(content: string, expected: LanguageRules, isReminded = false): Work<ReadMessage> {
  const lines = yield* userLines(content)
  const sentences = yield* userSentences(lines)
  const structures = findStructures(lines)
  yield content.length
  const readings: ReadMessage[] = []
  for (const language of likelyLanguages(foldText(sentences.map(({ text }) => text).join(' ')), expected))
    readings.push(yield* readStatements(sentences, content, language, isReminded))
  // Of equally likely languages, the one whose rules find most.
  const stated = readings.reduce((best, other) => (other.facts.length > best.facts.length ? other : best))
  const names = findNames(sentences, stated.language).filter(
    (name) => !structures.some(({ from, to }) => from <= name.from && name.to <= to),
  )
  const facts = mostImportant([...structures, ...sentences.flatMap(findUrls), ...stated.facts, ...names])
  return { ...stated, facts }
}

/** Finds the facts of a message's statements with the rules of a language. */
function* readStatements(
  sentences: readonly Sentence[],
  content: string,
  language: LanguageRules,
  isReminded: boolean,
): Work<ReadMessage> {
  const { clauses, remindsOfPrevious } = yield* markReminders(sentences, content, language, isReminded)
  const facts: TextFact[] = []
  for (const clause of clauses) {
    facts.push(...factsInClause(clause, language, content.slice(clause.end, clause.end + 120)))
    yield clauseChars + clause.text.length
  }
  return { language, facts, remindsOfPrevious }
}

/** Work per clause beside its characters: dozens of rules are tried on it. */
const clauseChars = 100

type RemindedClause = Clause & { isReminder: boolean }

/** Starts of clauses that explain a request rather than say what to remember. */
const remark = /^(?:since|because|so|as|which|while|who|where|when|if|it|this|that|weil|damit|car|porque|want|omdat)\b/i

/** Lists the stated clauses and marks those that the user asks to remember. */
function* markReminders(
  sentences: readonly Sentence[],
  content: string,
  language: LanguageRules,
  isReminded: boolean,
): Work<{ readonly clauses: readonly RemindedClause[]; readonly remindsOfPrevious: boolean }> {
  const clauses: RemindedClause[] = []
  let remindsOfPrevious = false
  let isListed = false
  let lastEnd = 0
  for (const sentence of sentences) {
    // A list after `Remember:` ends at an empty line.
    if (/\n\s*\n/.test(content.slice(lastEnd, sentence.start))) isListed = false
    const rest = stripReminder(sentence, language)
    const stated = statedClauses(rest ?? sentence, content, language)
    const earlier = clauses.length
    for (const clause of stated) {
      if (isBareReminder(clause, language)) {
        remindsOfPrevious ||= clauses.length === 0
        remindStatementBefore(clauses, earlier)
        continue
      }
      const reminded = rest === undefined ? stripReminder({ ...clause, text: clause.folded }, language) : undefined
      const [inner] = reminded === undefined ? [clause] : statedClauses(reminded, content, language)
      const isRemark = clauses.length > earlier && remark.test(clause.folded)
      const isReminder = !isRemark && (isReminded || isListed || rest !== undefined || reminded !== undefined)
      if (inner !== undefined) clauses.push({ ...inner, isReminder })
    }
    isListed ||= rest !== undefined && rest.text.trim() === ''
    lastEnd = sentence.end
    yield clauseChars + sentence.text.length
  }
  return { clauses, remindsOfPrevious }
}

/** Marks the clauses of the same sentence before a bare reminder; without any, the last one of an earlier sentence. */
function remindStatementBefore(clauses: RemindedClause[], sentenceStart: number): void {
  for (const clause of clauses.slice(Math.min(sentenceStart, clauses.length - 1))) clause.isReminder = true
}

/** Share of a clause to be remembered that its facts must hold; otherwise it is kept as it is. */
const minStatementShare = 0.6

/** Classifies a clause: `remember that I prefer tabs` is a preference, not an important fact. */
function factsInClause(clause: RemindedClause, rules: LanguageRules, after: string): readonly TextFact[] {
  const isRevision = isChange(clause, rules)
  const replaces = findReplaced(clause)
  const found = findSlotFacts(clause, rules, isRevision, after)
  const isWhole = found.reduce((sum, { from, to }) => sum + to - from, 0) >= minStatementShare * clause.text.length
  const isPhrase = /[\p{L}\p{N}]\s+[\p{L}\p{N}]/u.test(clause.text)
  const facts = clause.isReminder && !isWhole && isPhrase ? [rawFact(clause, trimPhrase(clause.text), 8)] : found
  return facts.map((fact) => ({
    ...fact,
    ...(isRevision && { revises: true as const }),
    ...(replaces !== undefined && { replaces }),
    ...(clause.isReminder && {
      isReminder: true as const,
      importance: Math.max(fact.importance, isCritical(clause, after) ? 9 : 7),
    }),
  }))
}

function findSlotFacts(clause: Clause, rules: LanguageRules, isRevision: boolean, after: string): readonly TextFact[] {
  const said = findPreference(clause, rules) ?? findConstraint(clause, rules) ?? findContact(clause)
  if (said !== undefined) return [said]
  const uses = findUses(clause, rules)
  const pairs = findPairs(clause)
  // Host, port and version may change one by one, so each has its own slot.
  if (pairs.length > 1 || (pairs.length > 0 && uses.length > 0)) return [...uses, ...pairs]
  const single =
    findStatement(clause, rules) ??
    findRevision(clause, rules) ??
    findOwned(clause, rules) ??
    findLabelled(clause, rules) ??
    findCountOrTitle(clause) ??
    findDecision(clause, rules, isRevision) ??
    findHabit(clause, rules)
  if (single !== undefined) return [single]
  if (uses.length > 0) return uses
  const other = findChoice(clause) ?? (rules.code === 'en' ? findPersonalFact(clause, after) : undefined)
  return other === undefined ? [...pairs, ...findRelatives(clause, rules, after)] : [other]
}

function mostImportant(facts: readonly TextFact[]): readonly TextFact[] {
  const selected =
    facts.length > maxFactsPerMessage
      ? [...facts].sort((a, b) => b.importance - a.importance || a.from - b.from).slice(0, maxFactsPerMessage)
      : [...facts]
  return selected.sort((a, b) => a.from - b.from || b.importance - a.importance)
}
