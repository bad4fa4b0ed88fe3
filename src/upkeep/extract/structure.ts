import type { Noted } from './found.ts'
import type { Line } from './spoken.ts'

const document =
  '(?:document|paper|report|essay|thesis|dissertation|article|doc|docs|book|novel|readme|proposal|page|presentation|outline|manual|guide|review|manuscript|plan|deck|site|website|post|chapter)'
const parts = '(sections?|chapters?|parts?|headings?|slides?|pages?)'
const announced = new RegExp(
  `\\b(?:(?:my|the|our|this|a|an) (?:[\\w-]+ ){0,2}?${document} (?:(?:should|must|will|shall|needs to|has to|is going to) )?(?:have|has|include|includes|contain|contains|consist of|consists of|be (?:structured|divided|split|organi[sz]ed) (?:as|into|in)|is (?:structured|divided|split|organi[sz]ed) (?:as|into|in)) ` +
    `(?:the |these |following |\\w{1,6} ){0,3}?${parts}(?: for| on| about| called| named| like| such as| titled|:| -)?:? |` +
    `^\\W{0,4}(?:(?:document|paper|report|essay|thesis|article|book|page|proposed|planned|final) )?(?:structure|outline|table of contents|toc|sections|chapters)\\W{0,2}: ?)`,
  'i',
)
const announcing = /\b(?:outline|structure|sections|chapters|table of contents|toc)\b[^.!?]{0,60}:?\W{0,3}$/i
const item = /^\s{0,12}(?:[-*+•]|\d{1,2}[.)]|#{1,6}|[IVX]{1,4}[.)])\s+(.{2,80})$/
const longestItem = 60
const fewest = 2
const most = 40

/** How a document is to be built: its sections, chapters or parts, in a sentence or as an outline below one. */
export function structuresIn(lines: readonly Line[]): readonly Noted[] {
  const noted: Noted[] = []
  for (let place = 0; place < lines.length; place++) {
    const line = lines[place] as Line
    if (!line.isOwn) continue
    const found = inSentence(line) ?? belowLine(lines, place)
    if (found !== undefined) noted.push(found)
  }
  return noted
}

function inSentence({ text, start }: Line): Noted | undefined {
  const match = announced.exec(text)
  if (match === null) return undefined
  const from = match.index + match[0].length
  const list = /^[^.;!?\n]*/.exec(text.slice(from))?.[0].trimEnd() ?? ''
  const items = itemsOf(list)
  return items.length < fewest
    ? undefined
    : structure(keyOf(match[1] ?? text), items, start + from, start + from + list.length)
}

function itemsOf(list: string): string[] {
  const items = list
    .split(/,\s*(?:and\s|&\s)?|\s(?:and|&|→|->|then)\s|\s?[→|]\s?/)
    .map((part) => part.replace(/^[\s"'“*_]+|[\s"'”*_:]+$/g, ''))
  const isList = items.every((part) => part.length <= longestItem && part.split(' ').length <= 6)
  return isList ? items.filter((part) => part !== '').slice(0, most) : []
}

/** The list or the headings that follow a line such as `Here is the outline:`. */
function belowLine(lines: readonly Line[], place: number): Noted | undefined {
  const head = lines[place] as Line
  if (!announcing.test(head.text)) return undefined
  const items: string[] = []
  let last = head
  for (let at = place + 1; at < lines.length && items.length < most; at++) {
    const line = lines[at] as Line
    if (line.text.trim() === '') continue
    const name = line.isOwn ? item.exec(line.text)?.[1]?.replace(/^[*_]+|[*_:.\s]+$/g, '') : undefined
    if (name === undefined || name === '') break
    items.push(name)
    last = line
  }
  return items.length < fewest
    ? undefined
    : structure(keyOf(head.text), items, head.start, last.start + last.text.trimEnd().length)
}

const structure = (key: string, value: string[], from: number, to: number): Noted => ({
  field: 'document_structure',
  key,
  value,
  importance: 7,
  from,
  to,
})

/** Headings are sections; chapters, parts and slides are what they are called. */
function keyOf(words: string): string {
  const named = /\b(chapter|part|slide|page)s?\b/i.exec(words)?.[1]?.toLowerCase()
  return named === undefined ? 'sections' : `${named}s`
}
