import { splitFencedLines } from '../text/fences.ts'
import type { SelectableMessage } from './selectPassages.ts'

/** Share of the lines of a message that show work, from 0 to 1, and its weight among other messages. */
export type WorkShare = { readonly share: number; readonly weight: number }

/** Values of a line as a sign of work. Code alone is a weak sign: answers to questions contain it, too. */
const signs = { change: 1, toolOutput: 0.7, code: 0.15, prose: 0 }
/** A message counts by its lines up to a maximum, so that one long paste does not decide. More lines are not read. */
const maxWeight = 100
const maxLinesRead = 400
/** Number of recent messages that decide. */
const recentMessages = 30
/** Share of work at which the score reaches 1. Coding sessions have 0.24 and more, chats with code at most 0.16. */
const fullShare = 0.4
const minScore = 0.5

/**
 * Decides whether a session is work on files, of which selected lines are shown, or a conversation, of which messages
 * are recalled. A question about the past is always answered by recall.
 *
 * @example
 * isWork([{ role: 'assistant', text: 'Read file: src/app.ts' }], 'Fix it.') // true
 */
export const isWork = (messages: readonly SelectableMessage[], question = ''): boolean =>
  !asksAboutPast(question) && scoreWork(messages.slice(-recentMessages).map(measureWork)) >= minScore

/** Combines the shares of recent messages into one score from 0 to 1: long messages count more. */
export function scoreWork(shares: readonly WorkShare[]): number {
  let weights = 0
  let sum = 0
  for (const { share, weight } of shares) {
    weights += weight
    sum += share * weight
  }
  return weights === 0 ? 0 : Math.min(1, sum / weights / fullShare)
}

/** Measures the share of lines of a message that are changes of code, name files or were written by a tool. */
export function measureWork({ role, text }: SelectableMessage): WorkShare {
  let lines = 0
  let sum = 0
  for (const { start, end, fence } of splitFencedLines(text.slice(0, maxLinesRead * maxLineChars))) {
    if (lines >= maxLinesRead) break
    const line = text.slice(start, Math.min(end, start + maxLineChars))
    if (line.trim() === '') continue
    lines++
    if (isChange(line, fence !== 'none')) sum += signs.change
    else if (role === 'tool') sum += signs.toolOutput
    else sum += fence === 'none' ? signs.prose : signs.code
  }
  return { share: lines === 0 ? 0 : sum / lines, weight: Math.min(lines, maxWeight) }
}

/** The rest of longer lines is not read. */
const maxLineChars = 240

const diffLine = /^(?:[-+](?:\s|$)|@@ |diff --git )/
const url = /\bhttps?:\/\/\S+/g
/** Candidates for paths; they do not overlap, so matching is linear. */
const run = /[\w@~./-]{4,}/g
const hasLetter = (text = ''): boolean => /[A-Za-z]/.test(text)

/** Recognises a path of three parts with letters; `and/or` and `1/2/2024` are none. */
function isDeepPath(name: string): boolean {
  const parts = name.split('/')
  return parts.some((middle, index) => {
    const [before, after] = [parts[index - 1], parts[index + 1]]
    if (!hasLetter(middle) || middle.includes('~')) return false
    return hasLetter(before?.split(/[@~]/).at(-1)) && hasLetter(after?.split(/[@~]/)[0])
  })
}

const fileName =
  /[\w-]\.(?:[cm]?[jt]sx?|json|mdc?|ya?ml|toml|ini|lock|py|ipynb|rb|go|rs|java|kt|swift|cc|cpp|hpp|cs|php|sh|sql|html?|s?css|vue|svelte|xml|tex|csv)$/i

const isChange = (line: string, isFenced: boolean): boolean => (isFenced && diffLine.test(line)) || namesFile(line)

function namesFile(line: string): boolean {
  const text = line.includes('://') ? line.replace(url, '') : line
  if (!/[./]\w/.test(text)) return false
  const runs = text.match(run) ?? []
  return runs.some((name) => isDeepPath(name) || fileName.test(name.replace(/(?<![./-])[./-]+$/, '')))
}

const pastQuestion = new RegExp(
  [
    String.raw`\b(?:have|had|did|was) i\b`,
    String.raw`\b(?:remind me|do you (?:remember|recall))\b`,
    String.raw`\b(?:i|we) (?:talked|spoke|discussed|decided|agreed|mentioned|said|told|chose|asked|brought up)\b`,
    String.raw`\b(?:last (?:time|week|month|year|session)|previous (?:session|conversation|chat)|yesterday|weeks? ago|months? ago)\b`,
  ].join('|'),
  'i',
)
/** A longer request is more than a question. */
const maxQuestionChars = 400

/** Recognises English questions about what was said or done before. */
const asksAboutPast = (question: string): boolean => question.length <= maxQuestionChars && pastQuestion.test(question)
