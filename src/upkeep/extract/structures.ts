import type { TextFact } from './fields.ts'
import type { UserLine } from './ownText.ts'

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
export function findStructures(lines: readonly UserLine[]): readonly TextFact[] {
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
    .map((part) => part.replace(/^[\s"'“*_]+/, '').replace(/(?<![\s"'”*_:])[\s"'”*_:]+$/, ''))
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
    const item = line.isOwn ? listItem.exec(line.text)?.[1] : undefined
    const name = item?.replace(/^[*_]+/, '').replace(/(?<![*_:.\s])[*_:.\s]+$/, '')
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
