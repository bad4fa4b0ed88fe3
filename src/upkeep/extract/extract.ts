import { findFacts } from '../../text/facts.ts'
import type { Sentence } from '../../text/sentences.ts'
import { isStopword, splitWords } from '../../text/words.ts'
import { runSync, type Work } from '../work.ts'
import type { FactCandidate, FactMessage, TextFact } from './fields.ts'
import { findPreference } from './preferences.ts'
import { findConstraint, findDecision, findImportantFact, findImportantNumber, stripReminder } from './statements.ts'
import { type Clause, statedClauses, type UserLine, userLines, userSentences } from './userText.ts'

/** The least important facts beyond this number are dropped. */
const maxFactsPerMessage = 40

/**
 * Extracts facts from user messages with the built-in rules: preferences, constraints, decisions, important facts,
 * sources, document structure and names. Quoted, pasted or recalled text is ignored, and so are messages of other
 * roles. The rules cover English; in other languages they find URLs, names and numbers that are marked as important.
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

const documentWord =
  '(?:document|paper|report|essay|thesis|dissertation|article|doc|docs|book|novel|readme|proposal|page|presentation|outline|manual|guide|review|manuscript|plan|deck|site|website|post|chapter)'
const partWord = '(sections?|chapters?|parts?|headings?|slides?|pages?)'
const announcedInSentence = new RegExp(
  `\\b(?:(?:my|the|our|this|a|an) (?:[\\w-]+ ){0,2}?${documentWord} (?:(?:should|must|will|shall|needs to|has to|is going to) )?(?:have|has|include|includes|contain|contains|consist of|consists of|be (?:structured|divided|split|organi[sz]ed) (?:as|into|in)|is (?:structured|divided|split|organi[sz]ed) (?:as|into|in)) ` +
    `(?:the |these |following |\\w{1,6} ){0,3}?${partWord}(?: for| on| about| called| named| like| such as| titled|:| -)?:? |` +
    `^\\W{0,4}(?:(?:document|paper|report|essay|thesis|article|book|page|proposed|planned|final) )?(?:structure|outline|table of contents|toc|sections|chapters)\\W{0,2}: ?)`,
  'i',
)
const announcesList = /\b(?:outline|structure|sections|chapters|table of contents|toc)\b[^.!?]{0,60}:?\W{0,3}$/i
const listItem = /^\s{0,12}(?:[-*+•]|\d{1,2}[.)]|#{1,6}|[IVX]{1,4}[.)])\s+(.{2,80})$/
const maxItemChars = 60
const minItems = 2
const maxItems = 40

/** Finds the structure of a document: sections, chapters or parts in a sentence or in an outline below one. */
function findStructures(lines: readonly UserLine[]): readonly TextFact[] {
  const structures: TextFact[] = []
  for (let index = 0; index < lines.length; index++) {
    const line = lines[index] as UserLine
    if (!line.isOwn) continue
    const found = structureInSentence(line) ?? structureBelowLine(lines, index)
    if (found !== undefined) structures.push(found)
  }
  return structures
}

function structureInSentence({ text, start }: UserLine): TextFact | undefined {
  const match = announcedInSentence.exec(text)
  if (match === null) return undefined
  const from = match.index + match[0].length
  const list = /^[^.;!?\n]*/.exec(text.slice(from))?.[0].trimEnd() ?? ''
  const items = splitItems(list)
  return items.length < minItems
    ? undefined
    : structureFact(structureKey(match[1] ?? text), items, start + from, start + from + list.length)
}

function splitItems(list: string): string[] {
  const items = list
    .split(/,\s*(?:and\s|&\s)?|\s(?:and|&|→|->|then)\s|\s?[→|]\s?/)
    .map((part) => part.replace(/^[\s"'“*_]+|[\s"'”*_:]+$/g, ''))
  const isList = items.every((part) => part.length <= maxItemChars && part.split(' ').length <= 6)
  return isList ? items.filter((part) => part !== '').slice(0, maxItems) : []
}

/** Finds the list or headings after a line such as `Here is the outline:`. */
function structureBelowLine(lines: readonly UserLine[], index: number): TextFact | undefined {
  const head = lines[index] as UserLine
  if (!announcesList.test(head.text)) return undefined
  const items: string[] = []
  let last = head
  for (let at = index + 1; at < lines.length && items.length < maxItems; at++) {
    const line = lines[at] as UserLine
    if (line.text.trim() === '') continue
    const name = line.isOwn ? listItem.exec(line.text)?.[1]?.replace(/^[*_]+|[*_:.\s]+$/g, '') : undefined
    if (name === undefined || name === '') break
    items.push(name)
    last = line
  }
  return items.length < minItems
    ? undefined
    : structureFact(structureKey(head.text), items, head.start, last.start + last.text.trimEnd().length)
}

const structureFact = (key: string, value: string[], from: number, to: number): TextFact => ({
  field: 'document_structure',
  key,
  value,
  importance: 7,
  from,
  to,
})

/** Names the parts by the word used, or `sections`. */
function structureKey(words: string): string {
  const named = /\b(chapter|part|slide|page)s?\b/i.exec(words)?.[1]?.toLowerCase()
  return named === undefined ? 'sections' : `${named}s`
}

const isUrl = /^(?:https?|ftp|wss?):\/\/[^\s/]/i
const sourceList = /^\W{0,4}(?:[a-z]+ )?(?:sources?|references?|links?|urls?)(?: urls?)?: (.+)$/i

/** Finds URLs, and listed sources without a scheme, such as a DOI. */
function findUrls({ text, start }: Sentence): readonly TextFact[] {
  const facts: TextFact[] = []
  for (const fact of findFacts(text)) if (isUrl.test(fact.text)) facts.push(urlFact(fact.text, start + fact.start))
  if (facts.length > 0) return facts
  const list = sourceList.exec(text)?.[1] ?? ''
  const offset = start + text.length - list.length
  for (const { 0: word, index } of list.matchAll(/[^\s,;]{3,200}/g)) {
    const name = word.replace(/[.!?)]+$/, '')
    if (/^[\w(][^\s]*[\d./]/.test(name) && !/^\d+$/.test(name)) facts.push(urlFact(name, offset + index))
  }
  return facts
}

const urlFact = (value: string, from: number): TextFact => ({
  field: 'source_urls',
  key: '',
  value,
  importance: 5,
  from,
  to: from + value.length,
})

const capitalised =
  /(?<![\p{L}\p{N}\p{M}_./@#:'’-])\p{Lu}[\p{L}\p{M}\p{N}]*(?:[-'’&][\p{L}\p{N}]+)*(?: (?:of |the |de |van |von |der |del |di |da |al )?\p{Lu}[\p{L}\p{M}\p{N}]*(?:[-'’&][\p{L}\p{N}]+)*){0,4}(?![\p{L}\p{N}_@/]|[.:][\p{L}\p{N}])/gu
const camelCase = /^\p{Lu}?\p{Ll}+\p{Lu}/u
const commonWords = new Set(
  `monday tuesday wednesday thursday friday saturday sunday january february march april may june july august september october november december
  english german french spanish american british european god ok tv pm am hi hey hello thanks christmas easter halloween thanksgiving mr mrs ms dr sir
  mom dad mum grandma grandpa bro lol omg wow btw fyi asap diy faq pdf url api json html css sql i'm i've i'd i'll internet web`.split(
    /\s+/,
  ),
)
/** Text before a word that does not start a sentence. */
const midSentence = /[\p{L}\p{N},)][’'”"]?\s$/u
const maxNames = 20

/**
 * Finds names of people, places, organisations and products. A capital at the start of a sentence is no evidence unless
 * the name also occurs inside another sentence. Headings are ignored, and in languages other than English single words
 * too.
 */
function findNames(sentences: readonly Sentence[]): readonly TextFact[] {
  const isEnglish = looksEnglish(sentences)
  const found = new Map<string, TextFact>()
  for (const { text, start } of sentences) {
    if (isHeading(text)) continue
    for (const { 0: match, index } of text.matchAll(capitalised)) {
      const { name, offset } = trimCommonWords(match)
      const position = index + offset
      const isSure =
        camelCase.test(name) || (midSentence.test(text.slice(0, position)) && (isEnglish || name.includes(' ')))
      if (!isSure || found.has(name) || !isName(name)) continue
      found.set(name, {
        field: 'entities',
        key: '',
        value: name,
        importance: 3,
        from: start + position,
        to: start + position + name.length,
      })
      if (found.size >= maxNames) return [...found.values()]
    }
  }
  return [...found.values()]
}

/** Removes common words at both ends and a possessive suffix. */
function trimCommonWords(match: string): { readonly name: string; readonly offset: number } {
  const words = match.split(' ')
  let first = 0
  while (first < words.length && isCommonWord(words[first] ?? '')) first++
  let last = words.length
  while (last > first && isCommonWord(words[last - 1] ?? '')) last--
  const offset = words.slice(0, first).reduce((sum, word) => sum + word.length + 1, 0)
  return {
    name: words
      .slice(first, last)
      .join(' ')
      .replace(/['’]s?$/, ''),
    offset: Math.min(offset, match.length),
  }
}

const isCommonWord = (word: string): boolean =>
  commonWords.has(word.toLowerCase().replace(/days$/, 'day')) ||
  isStopword(word.toLowerCase().replace('’', "'")) ||
  word.length < 2

/** Excludes words in capitals: they are emphasis or technical terms. */
const isName = (name: string): boolean => name.length > 1 && /\p{Ll}/u.test(name)

function isHeading(text: string): boolean {
  const words = text.split(/\s+/).filter((word) => /^\p{L}{4}/u.test(word))
  return /^\s*#/.test(text) || (words.length > 2 && words.every((word) => /^\p{Lu}/u.test(word)))
}

function looksEnglish(sentences: readonly Sentence[]): boolean {
  const words = sentences.slice(0, 20).flatMap(({ text }) => splitWords(text.slice(0, 400)))
  return words.filter(isStopword).length * 7 >= words.length
}
