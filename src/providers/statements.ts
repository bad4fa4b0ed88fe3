import { opener } from '../context/anthropic.ts'
import { wordsOf } from '../context/fees.ts'
import type { ChatMessage } from '../domain/ledger.ts'
import { clip } from '../text/clip.ts'
import { isQuestion } from '../text/question.ts'
import { sentencesOf } from '../text/sentences.ts'

/** Something said in the messages shown: a sentence, with the sentences that only make sense after it. */
export type Statement = {
  readonly text: string
  readonly by: 'user' | 'model' | 'other'
  readonly speaker: string
  readonly isQuestion: boolean
}

type Passage = Pick<Statement, 'text' | 'by' | 'speaker'>

/** The most characters a statement may have; longer sentences come in pieces. */
const longest = 300
const titles: Readonly<Record<string, Statement['by']>> = {
  User: 'user',
  Assistant: 'model',
  Tool: 'model',
  System: 'model',
}
const framing: ReadonlySet<string> = new Set([
  opener,
  ...Object.values(wordsOf).flatMap(({ before, after, recalled }) => `${before}${after}\n${recalled}`.split('\n')),
])
const pronouns: ReadonlySet<string> = new Set([
  'he',
  'she',
  'it',
  'they',
  'his',
  'her',
  'its',
  'their',
  'him',
  'them',
  "he's",
  "she's",
  "it's",
  "they're",
])

/** Whether a message is memory put before the question rather than something its role said. */
export const isBlock = (message: ChatMessage): boolean =>
  message.role === 'system' ||
  (message.role === 'user' && Object.values(wordsOf).some(({ recalled }) => message.content.startsWith(recalled)))

/**
 * All that a message says, in its order; of a block of memory only what somebody is quoted with. What the model said and
 * `isOwn` knows by its beginning is left out.
 */
export function statementsOf(message: ChatMessage, isOwn: (text: string) => boolean): Statement[] {
  const content = message.content ?? ''
  const by = message.role === 'user' ? 'user' : 'model'
  const passages: Passage[] = isBlock(message)
    ? quoted(content.split(/\r\n|\r|\n/))
    : [{ text: content, by, speaker: '' }]
  return passages
    .filter(({ text, by }) => !framing.has(text) && !(by === 'model' && isOwn(text)))
    .flatMap(({ text, by, speaker }) =>
      sentences(text).map((sentence) => ({ text: sentence, by, speaker, isQuestion: isQuestion(sentence) })),
    )
}

/** The lines of a block that somebody is quoted with, such as `User: text`, and those that go on with what they said. */
function quoted(lines: readonly string[]): Passage[] {
  const passages: Passage[] = []
  let last: Passage | undefined
  for (const line of lines) {
    const [, label, text] = /^(?:\([^()]{1,20}\) )?([\p{L}\p{N}][^:]{0,79}): (.+)$/su.exec(line) ?? []
    if (isHeading(line)) last = undefined
    else if (label !== undefined && text !== undefined) last = passageOf(label, text)
    // A line that only ends with a colon is the date above what was said on that day.
    else if (last !== undefined) last = line.endsWith(':') ? undefined : { ...last, text: line }
    if (last !== undefined) passages.push(last)
  }
  return passages
}

function passageOf(label: string, text: string): Passage {
  const by = Object.hasOwn(titles, label) ? titles[label] : undefined
  return by === undefined ? { text, by: 'other', speaker: label } : { text, by, speaker: '' }
}

/** Headings, instructions and empty lines: what stands around memory. */
const isHeading = (line: string): boolean => /^\s*(?:$|[#[-]|IMPORTANT)/.test(line)

/** Sentences of bounded length; one that begins with a pronoun stays with the one it refers to. */
function sentences(text: string): string[] {
  const units: string[] = []
  for (const sentence of sentencesOf(text).flatMap(({ text }) => piecesOf(text))) {
    const last = units.at(-1)
    const refers = pronouns.has(sentence.split(' ', 1)[0]?.toLowerCase() ?? '')
    const joins =
      last !== undefined &&
      refers &&
      !isQuestion(last) &&
      !isQuestion(sentence) &&
      last.length + 1 + sentence.length <= longest
    if (joins) units[units.length - 1] = `${last} ${sentence}`
    else units.push(sentence)
  }
  return units
}

function piecesOf(sentence: string): string[] {
  const pieces: string[] = []
  let rest = sentence
  while (rest.length > longest) {
    const space = rest.lastIndexOf(' ', longest)
    if (space <= 0) return [...pieces, clip(rest, longest - 1, '…')]
    pieces.push(rest.slice(0, space))
    rest = rest.slice(space + 1)
  }
  return [...pieces, rest]
}
