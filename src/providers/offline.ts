import { continuationNotice } from '../context/anthropic.ts'
import { framingTexts } from '../context/composeContext.ts'
import { MemoryError } from '../domain/error.ts'
import type { ChatMessage } from '../domain/ledger.ts'
import type { Model, ModelRequest } from '../domain/ports.ts'
import { clip } from '../text/clip.ts'
import { isQuestion, splitSentences } from '../text/sentences.ts'
import { extractTerms } from '../text/words.ts'
import { findSmallTalkReply, smallTalkReplies } from './smallTalk.ts'

type Match = { readonly statement: Statement; readonly index: number; readonly score: number }

const userQuoteIntro = 'From what you told me: '
const mixedQuoteIntro = 'From this conversation: '
/** Said in the first reply that is not a quote. */
const noModelNotice =
  'No language model is configured, so I can only quote what I remember. ' +
  'For real answers, name a model server with --upstream or OPENAI_BASE_URL.'
const notedReply = 'Noted.'
const unknownReply = 'I remember nothing about this.'
const plainReplies: readonly string[] = [notedReply, unknownReply, ...smallTalkReplies]
/** Opening words of this model's own replies, which are never quoted. */
const quoteIntros = [userQuoteIntro, mixedQuoteIntro]
const isOwnReply = (line: string): boolean =>
  quoteIntros.some((intro) => line.startsWith(intro)) || hasSaidNotice(line) || plainReplies.includes(line.trim())
const hasSaidNotice = (line: string): boolean => line.includes(noModelNotice.slice(0, 32))

const maxQuotes = 3
/** Quotes must score at least this share of the best score. */
const minScoreRatio = 0.6

/**
 * Creates the built-in model, which needs no network: it answers by quoting statements from the messages that match the
 * question.
 *
 * @example
 * for await (const word of offlineModel().reply({ messages })) process.stdout.write(word)
 */
export function offlineModel(): Model {
  return {
    name: 'threadkeep-offline',
    async *reply(request: ModelRequest, signal?: AbortSignal) {
      for (const word of composeReply(request.messages).match(/\S+\s*/g) ?? []) {
        if (signal?.aborted)
          throw new MemoryError('aborted', 'The reply was stopped by the caller.', { cause: signal.reason })
        yield word
      }
    },
  }
}

function composeReply(messages: readonly ChatMessage[]): string {
  const questionIndex = messages.findLastIndex((message) => message.role === 'user' && !isMemoryBlock(message))
  const question = messages[questionIndex]?.content ?? ''
  const smallTalk = findSmallTalkReply(question)
  if (smallTalk !== undefined) return withNotice(smallTalk, messages)
  if (isTelling(question)) return withNotice(notedReply, messages)
  const statements = messages.flatMap((message, index) =>
    index === questionIndex ? [] : extractStatements(message, isOwnReply),
  )
  const quotes = selectQuotes(question, withoutRepeats(statements, question))
  if (quotes.length === 0 && aboutUser.test(question)) quotes.push(...newestStatements(statements))
  if (quotes.length === 0) return withNotice(unknownReply, messages)
  const intro = quotes.every((quote) => quote.author === 'user') ? userQuoteIntro : mixedQuoteIntro
  return intro + quotes.map((quote) => `"${formatStatement(quote)}"`).join(' ')
}

/** A question about everything that the user has told. */
const aboutUser = /\b(?:about me|über mich|sobre m(?:í|im)|sur moi|over mij)(?!\p{L})/iu

const newestStatements = (statements: readonly Statement[]): readonly Statement[] =>
  statements
    .filter(({ author, isQuestion, text }) => author === 'user' && !isQuestion && isTelling(text))
    .slice(-maxQuotes)
    .toReversed()

/** Adds the notice unless an earlier reply has it. Later replies stand for one that is out of sight. */
function withNotice(reply: string, messages: readonly ChatMessage[]): string {
  const isKnown = messages.some(({ role, content }) => {
    const lines = role === 'user' && !content?.startsWith('<memory') ? [] : (content ?? '').split('\n')
    return lines.some((line) => hasSaidNotice(line) || plainReplies.includes(line.replace(/^Assistant: /, '').trim()))
  })
  return isKnown ? reply : `${reply} ${noModelNotice}`
}

/** Verbs with which a message asks for something without a question mark. */
const requestVerb =
  /^(?:please |bitte |por favor |s'il te plaît )?(?:tell|show|remind|list|describe|summari[sz]e|give|repeat|recall|find|search|explain|name|quote|say|erzähl|sag|zeig|nenn|dime|cuéntame|muéstrame|dis|dites|raconte|montre|vertel|zeg|toon|noem|diga|diz|conta|mostra)\w*\b/iu
/** A shorter message may be a search for its words. */
const minToldWords = 3

/** True for a message that tells something and asks for nothing. */
const isTelling = (message: string): boolean =>
  !isQuestion(message) &&
  !message.includes('?') &&
  !requestVerb.test(message.trim()) &&
  message.trim().split(/\s+/).length >= minToldWords

const formatStatement = ({ speaker, text }: Statement): string => (speaker === '' ? text : `${speaker}: ${text}`)

/** Removes repeated statements and those that the question itself contains. */
function withoutRepeats(statements: readonly Statement[], question: string): Statement[] {
  const inQuestion = extractStatements({ role: 'user', content: question }, isOwnReply)
  const seen = new Set(inQuestion.map(({ text }) => text.toLowerCase()))
  return statements.filter((statement) => {
    const text = statement.text.toLowerCase()
    if (seen.has(text)) return false
    seen.add(text)
    return true
  })
}

/**
 * Selects the statements that share the rarest words with the question, newest first, because a later one may correct
 * an earlier one.
 */
function selectQuotes(question: string, candidates: readonly Statement[]): Statement[] {
  const statements = candidates.filter(({ text, isQuestion }) => !isQuestion && !requestVerb.test(text))
  const questionTerms = new Set(extractTerms(question))
  const sharedTerms = statements.map(
    (statement) => new Set(extractTerms(formatStatement(statement)).filter((term) => questionTerms.has(term))),
  )
  const frequency = new Map<string, number>()
  for (const term of sharedTerms.flatMap((terms) => [...terms])) frequency.set(term, (frequency.get(term) ?? 0) + 1)
  const rarity = (term: string): number => Math.log(1 + statements.length / (frequency.get(term) ?? 1))
  const matches = statements.map((statement, index): Match => {
    const score = [...(sharedTerms[index] ?? [])].reduce((sum, term) => sum + rarity(term), 0)
    return { statement, index, score: score * weightOf(statement) }
  })
  const best = matches.filter(({ score }) => score > 0).sort((a, b) => b.score - a.score || b.index - a.index)
  const minScore = (best[0]?.score ?? 0) * minScoreRatio
  const quotes = best.slice(0, maxQuotes).filter(({ score }) => score >= minScore)
  const newest = quotes.reduce((last, { index }) => Math.max(last, index), -1)
  const correction = newest < 0 ? -1 : findCorrection(question, statements, newest)
  const indexes = quotes.map(({ index }) => index).sort((a, b) => b - a)
  return [...(correction < 0 ? [] : [correction]), ...indexes]
    .slice(0, maxQuotes)
    .map((index) => statements[index] as Statement)
}

/** Statements after a quote among which its correction is looked for. */
const maxCorrectionDistance = 12
const namingWords = /\b(?:name|call)/i
const renamingWords = /\brename/i
const changeWords = /\b(?:now|instead|no longer|any ?more|actually|changed|switched|replaced|moved|sold)\b/i
const pronounWords = /\b(?:he|him|his|she|her|hers|it|its|they|them|their)\b/i

/** Finds the newest statement that may correct a quote without naming its subject, such as "We renamed her Tofu". */
function findCorrection(question: string, statements: readonly Statement[], quoted: number): number {
  const quote = statements[quoted]?.text ?? ''
  const isAboutName = namingWords.test(question) || namingWords.test(quote)
  return statements.findLastIndex(
    ({ text, author }, index) =>
      index > quoted &&
      index <= quoted + maxCorrectionDistance &&
      author === 'user' &&
      pronounWords.test(text) &&
      (changeWords.test(text) || (isAboutName && renamingWords.test(text))),
  )
}

/** Weighs statements of the model less than those of the user. */
const weightOf = ({ author }: Statement): number => (author === 'model' ? 0.5 : 1)

/** A sentence of a message, together with following sentences that refer to it. */
type Statement = {
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
  continuationNotice,
  ...Object.values(framingTexts).flatMap(({ before, after, recalled }) => `${before}${after}\n${recalled}`.split('\n')),
])
const pronouns: ReadonlySet<string> = new Set(
  "he she it they his her its their him them he's she's it's they're".split(' '),
)

/** Checks for a message that carries recalled memory instead of a turn of the conversation. */
const isMemoryBlock = (message: ChatMessage): boolean =>
  message.role === 'system' || (message.role === 'user' && /^<memory\b[^>\n]*>\n/.test(message.content))

/**
 * Extracts the statements of a message in order. Of a memory block only quoted lines count; model passages for which
 * `isOwnReply` is true are left out.
 */
function extractStatements(message: ChatMessage, isOwnReply: (text: string) => boolean): Statement[] {
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

/** Extracts lines such as `User: text` and `[returns.txt] text` from a memory block, with those that continue them. */
function extractQuotedLines(lines: readonly string[]): Passage[] {
  const passages: Passage[] = []
  let last: Passage | undefined
  for (const line of lines) {
    const [, label, text] =
      /^\[([^\]]{1,255})\] (.+)$/su.exec(line) ??
      /^(?:\([^()]{1,20}\) )?([\p{L}\p{N}][^:]{0,79}): (.+)$/su.exec(line) ??
      []
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

/** Checks for headings, instructions and empty lines. The label of a file passage is no heading: text follows it. */
const isHeading = (line: string): boolean => /^\s*(?:$|[#-]|\[(?![^\]]{1,255}\] \S)|IMPORTANT|<\/?memory)/.test(line)

/** Splits a text into statements of bounded length; a sentence that begins with a pronoun joins the one before. */
function splitStatements(text: string): string[] {
  const statements: string[] = []
  for (const sentence of splitSentences(text).flatMap((found) => splitLongSentence(found.text))) {
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
