import { linesOf } from '../../text/fences.ts'
import { type Sentence, sentencesOf } from '../../text/sentences.ts'

/** A line of a message with its place; `isOwn` is false for what the user quotes or has pasted from elsewhere. */
export type Line = { readonly text: string; readonly start: number; readonly isOwn: boolean }

/** The lines of what a user has written, each marked as the user's own words or not. */
export function linesSpoken(content: string): readonly Line[] {
  const text = withoutTagged(content)
  const lines: Line[] = []
  let isOver = false
  for (const { start, end, fence } of linesOf(text)) {
    const line = text.slice(start, end)
    const before = lines.at(-1)?.text ?? ''
    isOver ||= fence === 'none' && (quotesTheRest.test(line) || (header.test(line) && header.test(before)))
    lines.push({ text: line, start, isOwn: !isOver && fence === 'none' && !isPasted(line) })
  }
  return lines
}

/** A longer sentence is no prose: a blob without spaces, or nothing but signs. */
const longestSentence = 2_000
/** Nobody writes more in one message: what comes after is a paste. */
const mostSentences = 2_000

/** The sentences of the user's own lines, with their places in the message. */
export const sentencesSpoken = (lines: readonly Line[]): readonly Sentence[] =>
  lines
    .filter(({ isOwn }) => isOwn)
    .flatMap(({ text, start: offset }) =>
      unquoted(sentencesOf(text)).map(({ text, start, end }) => ({ text, start: start + offset, end: end + offset })),
    )
    .filter(({ text }) => text.length <= longestSentence)
    .slice(0, mostSentences)

/** Leaves out the sentences of a line that begin inside a quotation. */
function unquoted(sentences: readonly Sentence[]): readonly Sentence[] {
  let isOpen = false
  return sentences.filter(({ text }) => {
    const began = isOpen
    isOpen = leavesOpen(text, began)
    return !began
  })
}

/** Whether a quotation is open after a text, if one was open before it or not. The mark after a number means inches. */
export function leavesOpen(text: string, isOpen = false): boolean {
  let open = isOpen
  for (const { 0: mark } of text.matchAll(/(?<!\d)"|[“”„]/g)) open = mark === '"' ? !open : mark !== '”'
  return open
}

const tag = /<memory\b|^[ \t]{0,40}<([a-z][\w-]{0,30})(?=[\s/>])[^>\n]{0,300}>/gim
const closingTag = /<\/([a-z][\w-]{0,30})\s{0,9}>/gi

/**
 * The text with blanks for recalled memory and for everything inside tags that begin a line: pages, documents, reminders.
 * Memory that nobody closes goes on to the end, because to believe it would be worse than to miss what follows.
 */
function withoutTagged(content: string): string {
  if (!content.includes('<')) return content
  const closings = closingsIn(content)
  let kept = ''
  let reached = 0
  tag.lastIndex = 0
  for (let match = tag.exec(content); match !== null; match = tag.exec(content)) {
    const after = match.index + match[0].length
    const closing = nextClosing(closings.get(match[1]?.toLowerCase() ?? 'memory'), after)
    const end = closing ?? (match[1] === undefined ? content.length : after)
    kept += `${content.slice(reached, match.index)}\n${' '.repeat(end - match.index - 2)}\n`
    reached = end
    tag.lastIndex = end
  }
  return kept + content.slice(reached)
}

type Closings = { readonly ends: number[]; next: number }

/** Where the closing tags of each name end; collected once, so that many openings cost no more than one. */
function closingsIn(content: string): ReadonlyMap<string, Closings> {
  const closings = new Map<string, Closings>()
  for (const { 0: whole, 1: name = '', index } of content.matchAll(closingTag)) {
    const known = closings.get(name.toLowerCase()) ?? { ends: [], next: 0 }
    known.ends.push(index + whole.length)
    closings.set(name.toLowerCase(), known)
  }
  return closings
}

function nextClosing(closings: Closings | undefined, after: number): number | undefined {
  if (closings === undefined) return undefined
  while ((closings.ends[closings.next] ?? Number.POSITIVE_INFINITY) <= after) closings.next++
  return closings.ends[closings.next]
}

/** The headings that memory is shown under, and the usual ways to announce somebody else's words: nothing after them is the user's. */
const quotesTheRest =
  /^\s{0,9}(?:#{1,3} (?:Background Context \(INTERNAL|Conversation Context$|Recalled from earlier)|\[(?:RECALLED FROM EARLIER|SYSTEM MESSAGE|IMPORTANT DATA|CONVERSATION SUMMARY|RECENT MESSAGES)|-{2,} ?(?:original|forwarded) message|begin forwarded message)|(?:wrote|writes|said|says|replied|answered):\s{0,9}$/i
const header = /^(?:from|to|cc|sent|date|subject): \S/i

const pasted: readonly RegExp[] = [
  // quotations, rows of tables, shell prompts, markup
  /^\s{0,40}(?:[>|❯]|\$ |<[!/a-z])/i,
  // JSON
  /^\s*(?:[{}[\]]{1,4},?\s*$|[{[]\s*["{[]|["'][\w .-]{1,60}["']\s{0,9}:)/,
  // logs and stack traces
  /^\s*\[?(?:\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\d\d:\d\d:\d\d|(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL)\b\]?[\s:])/,
  /^\s*(?:at \S.{0,200}[:(]\d|File ".{1,200}", line \d|Traceback )/,
  // code without a fence
  /[;{}]\s*$/,
  /^\s*(?:(?:const|let|var)\s[^=\n]{1,80}=|(?:import|from)\s.{1,200}\b(?:from|import)\s|(?:async )?(?:def|function|class|fn|func)\s\w{1,60}\s?[({:<]|[\w.[\]'"]{1,60} [+-]?= \S|@\w{1,60}\()/,
  /^\s*(?:SELECT|INSERT INTO|CREATE TABLE|DELETE FROM)\s/,
  // a transcript
  /^\s*\W{0,2}(?:assistant|ai|bot|system|tool|human|user|chatgpt|claude|gemini|copilot)\W{0,2}:/i,
]
const label = /^\s*(\p{Lu}[\p{L}-]{1,20})(?: \p{Lu}[\p{L}-]{1,20})?: (?:["“]|(?:I|[Mm]y|[Ww]e|[Oo]ur)\b)/u
const ownLabels =
  /^(?:also|background|context|correction|edit|fyi|goal|important|info|me|myself|note|preferences?|ps|remember|reminder|update)$/i

/** Whether a line is something else than prose of the user. `Ana: I live in Oslo` is Ana's. */
function isPasted(line: string): boolean {
  if (pasted.some((pattern) => pattern.test(line))) return true
  const name = label.exec(line)?.[1]
  return name !== undefined && !ownLabels.test(name)
}
