import type { ChatMessage } from '../domain/ledger.ts'
import { opener } from '../recall/anthropic.ts'
import { wordsOf } from '../recall/fees.ts'

/** Something said in the messages shown: a sentence, with the sentences that only make sense after it. */
export type Statement = { readonly text: string; readonly by: 'user' | 'model' | 'other'; readonly speaker: string; readonly isQuestion: boolean }

type Line = Pick<Statement, 'by' | 'speaker'> & { readonly text: string }

/** The most characters a statement may have; longer ones come in pieces. */
const longest = 300
const titles: Readonly<Record<string, Statement['by']>> = { User: 'user', Assistant: 'model', Tool: 'model', System: 'model' }
const framing: ReadonlySet<string> = new Set([
  opener,
  ...Object.values(wordsOf).flatMap((words) => `${words.before}${words.after}\n${words.recalled}`.split('\n')),
])
const abbreviations: ReadonlySet<string> = new Set(['dr.', 'mr.', 'mrs.', 'ms.', 'prof.', 'st.', 'no.', 'vs.', 'e.g.', 'i.e.'])
const pronouns: ReadonlySet<string> = new Set(['he', 'she', 'it', 'they', 'his', 'her', 'its', 'their', 'him', 'them', "he's", "she's", "it's", "they're"])

/** Whether a message is memory put before the question rather than something its role said. */
export const isBlock = (message: ChatMessage): boolean =>
  message.role === 'system' || (message.role === 'user' && Object.values(wordsOf).some(({ recalled }) => message.content.startsWith(recalled)))

/** All that a message says, in its order; of a block of memory only what somebody is quoted with. Lines of the model's that `isOwn` knows are left out. */
export function statementsOf(message: ChatMessage, isOwn: (line: string) => boolean): Statement[] {
  const content = (message.content ?? '').split(/\r\n|\r|\n/)
  const by = message.role === 'user' ? 'user' : 'model'
  const lines: Line[] = isBlock(message) ? quoted(content) : content.map((text) => ({ text, by, speaker: '' }))
  return lines
    .filter((line) => !framing.has(line.text) && !(line.by === 'model' && isOwn(line.text)))
    .flatMap(({ text, by, speaker }) => sentences(text).map((sentence) => ({ text: sentence, by, speaker, isQuestion: /[?？]["'”’)]?$/.test(sentence) })))
}

/** The lines of a block that somebody is quoted with, such as `User: text`, and those that go on with what they said. */
function quoted(content: readonly string[]): Line[] {
  const lines: Line[] = []
  let last: Line | undefined
  for (const text of content) {
    const [, label, words] = /^(?:\([^()]{1,20}\) )?([\p{L}\p{N}][^:]{0,79}): (.+)$/su.exec(text) ?? []
    if (isHeading(text)) last = undefined
    else if (label !== undefined && words !== undefined) last = lineOf(label, words)
    else if (last !== undefined) last = text.endsWith(':') ? undefined : { ...last, text }
    if (last !== undefined) lines.push(last)
  }
  return lines
}

const lineOf = (label: string, text: string): Line => {
  const by = Object.hasOwn(titles, label) ? titles[label] : undefined
  return by === undefined ? { text, by: 'other', speaker: label } : { text, by, speaker: '' }
}

/** Headings, instructions and empty lines: what stands around memory. (So do dates, which end with a colon.) */
const isHeading = (line: string): boolean => /^\s*(?:$|[#[-]|IMPORTANT)/.test(line) || framing.has(line)

/** A line cut into sentences of bounded length; one that begins with a pronoun stays with the one it refers to. */
function sentences(line: string): string[] {
  const found: string[] = []
  let current = ''
  const end = (): void => {
    if (current !== '') found.push(current)
    current = ''
  }
  for (const word of wordsIn(line)) {
    if (current.length + 1 + word.length > longest) end()
    current = current === '' ? word : `${current} ${word}`
    if (endsSentence(word)) end()
  }
  end()
  return joined(found)
}

const wordsIn = (line: string): string[] =>
  line
    .split(/\s+/)
    .flatMap((word) => word.split(/(?<=[。！？])/u))
    .flatMap((word) => (word.length <= longest ? [word] : pieces(word)))
    .filter((word) => word !== '')

function pieces(word: string): string[] {
  const characters = Array.from(word)
  const count = Math.ceil(characters.length / (longest / 2))
  return Array.from({ length: count }, (_, at) => characters.slice((at * longest) / 2, ((at + 1) * longest) / 2).join(''))
}

const endsSentence = (word: string): boolean => /[.!?…。！？]["'”’)]?$/.test(word) && !abbreviations.has(word.toLowerCase()) && !/^\p{Lu}\.$/u.test(word)

function joined(found: readonly string[]): string[] {
  const units: string[] = []
  for (const sentence of found) {
    const last = units.at(-1)
    const refers = pronouns.has(sentence.split(' ', 1)[0]?.toLowerCase() ?? '')
    if (last !== undefined && refers && !last.endsWith('?') && last.length + 1 + sentence.length <= longest) units[units.length - 1] = `${last} ${sentence}`
    else units.push(sentence)
  }
  return units
}
