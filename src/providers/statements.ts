import { opener } from '../context/anthropic.ts'
import { wordsOf } from '../context/overhead.ts'
import type { ChatMessage } from '../domain/ledger.ts'
import { clip } from '../text/clip.ts'
import { sentencesOf } from '../text/sentences.ts'
import { isQuestion } from '../text/signals.ts'

/** A sentence of a message, together with following sentences that refer to it. */
export type Statement = {
  readonly text: string
  readonly author: 'user' | 'model' | 'other'
  /** The name of the author when it is neither the user nor the model; otherwise ''. */
  readonly speaker: string
  readonly isQuestion: boolean
}

type Passage = Pick<Statement, 'text' | 'author' | 'speaker'>

/** Longer sentences are split. */
const maxStatementChars = 300
const authorByLabel: Readonly<Record<string, Statement['author']>> = {
  User: 'user',
  Assistant: 'model',
  Tool: 'model',
  System: 'model',
}
/** Lines that frame the memory in a prompt. */
const framingLines: ReadonlySet<string> = new Set([
  opener,
  ...Object.values(wordsOf).flatMap(({ before, after, recalled }) => `${before}${after}\n${recalled}`.split('\n')),
])
const pronouns: ReadonlySet<string> = new Set(
  "he she it they his her its their him them he's she's it's they're".split(' '),
)

/** Checks for a message that carries recalled memory instead of a turn of the conversation. */
export const isMemoryBlock = (message: ChatMessage): boolean =>
  message.role === 'system' ||
  (message.role === 'user' && Object.values(wordsOf).some(({ recalled }) => message.content.startsWith(recalled)))

/**
 * Extracts the statements of a message in order. Of a memory block only quoted lines count; model passages for which
 * `isOwnReply` is true are left out.
 */
export function extractStatements(message: ChatMessage, isOwnReply: (text: string) => boolean): Statement[] {
  const content = message.content ?? ''
  const passages: Passage[] = isMemoryBlock(message)
    ? extractQuotedLines(content.split(/\r\n|\r|\n/))
    : [{ text: content, author: message.role === 'user' ? 'user' : 'model', speaker: '' }]
  return passages
    .filter(({ text, author }) => !framingLines.has(text) && !(author === 'model' && isOwnReply(text)))
    .flatMap(({ text, author, speaker }) =>
      splitStatements(text).map((sentence) => ({ text: sentence, author, speaker, isQuestion: isQuestion(sentence) })),
    )
}

/** Extracts lines such as `User: text` from a memory block, and the lines that continue them. */
function extractQuotedLines(lines: readonly string[]): Passage[] {
  const passages: Passage[] = []
  let last: Passage | undefined
  for (const line of lines) {
    const [, label, text] = /^(?:\([^()]{1,20}\) )?([\p{L}\p{N}][^:]{0,79}): (.+)$/su.exec(line) ?? []
    if (isHeading(line)) last = undefined
    else if (label !== undefined && text !== undefined) last = toPassage(label, text)
    // A line that ends with a colon is the date heading of the lines below it.
    else if (last !== undefined) last = line.endsWith(':') ? undefined : { ...last, text: line }
    if (last !== undefined) passages.push(last)
  }
  return passages
}

function toPassage(label: string, text: string): Passage {
  const author = Object.hasOwn(authorByLabel, label) ? authorByLabel[label] : undefined
  return author === undefined ? { text, author: 'other', speaker: label } : { text, author, speaker: '' }
}

/** Checks for headings, instructions and empty lines. */
const isHeading = (line: string): boolean => /^\s*(?:$|[#[-]|IMPORTANT)/.test(line)

/** Splits a text into statements of bounded length; a sentence that begins with a pronoun joins the one before. */
function splitStatements(text: string): string[] {
  const statements: string[] = []
  for (const sentence of sentencesOf(text).flatMap((found) => splitLongSentence(found.text))) {
    const last = statements.at(-1)
    const beginsWithPronoun = pronouns.has(sentence.split(' ', 1)[0]?.toLowerCase() ?? '')
    const joinsLast =
      last !== undefined &&
      beginsWithPronoun &&
      !isQuestion(last) &&
      !isQuestion(sentence) &&
      last.length + 1 + sentence.length <= maxStatementChars
    if (joinsLast) statements[statements.length - 1] = `${last} ${sentence}`
    else statements.push(sentence)
  }
  return statements
}

function splitLongSentence(sentence: string): string[] {
  const parts: string[] = []
  let rest = sentence
  while (rest.length > maxStatementChars) {
    const space = rest.lastIndexOf(' ', maxStatementChars)
    if (space <= 0) return [...parts, clip(rest, maxStatementChars - 1, '…')]
    parts.push(rest.slice(0, space))
    rest = rest.slice(space + 1)
  }
  return [...parts, rest]
}
