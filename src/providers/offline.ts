import { continuationNotice } from '../context/anthropic.ts'
import { framingTexts } from '../context/composeContext.ts'
import { checkOptions } from '../domain/checkOptions.ts'
import { anyFunction, MemoryError } from '../domain/error.ts'
import type { ChatMessage } from '../domain/ledger.ts'
import type { Model, ModelRequest } from '../domain/ports.ts'
import { type Pause, runInSlices, type Work } from '../domain/work.ts'
import { TopK } from '../search/topK.ts'
import { clip } from '../text/clip.ts'
import { isQuestion, splitSentencesInSteps } from '../text/sentences.ts'
import { extractTerms } from '../text/words.ts'
import { findSmallTalkReply, smallTalkReplies } from './smallTalk.ts'

const escapePattern = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')

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

/** The beginning and the end of a longer question, this many characters in all, tell what it asks. */
const maxQuestionChars = 16_384
/** Characters of a prompt that are read for quotes: those of memory first, then those of the newest messages. */
const maxReadChars = 2_000_000
const maxQuotes = 3
/** Quotes must score at least this share of the best score. */
const minScoreRatio = 0.6

/** Options of `offlineModel`. */
export type OfflineModelOptions = {
  /** Lets other work run while a long prompt is read. Default: no pauses. */
  readonly pause?: Pause | undefined
}

/**
 * Creates the built-in model, which needs no network: it answers by quoting statements from the messages that match the
 * question. Of a prompt with more than 2,000,000 characters, it reads the recalled memory and the newest messages.
 *
 * @example
 * for await (const word of offlineModel().reply({ messages })) process.stdout.write(word)
 */
export function offlineModel(options: OfflineModelOptions = {}): Model {
  checkOptions<OfflineModelOptions>('offlineModel', options, { pause: anyFunction })
  const { pause = () => undefined } = options
  return {
    name: 'threadkeep-offline',
    async *reply(request: ModelRequest, signal?: AbortSignal) {
      const reply = await runInSlices(composeReplyInSteps(request.messages), pause)
      for (const word of reply.match(/\S+\s*/g) ?? []) {
        if (signal?.aborted)
          throw new MemoryError('aborted', 'The reply was stopped by the caller.', { cause: signal.reason })
        yield word
      }
    },
  }
}

function* composeReplyInSteps(messages: readonly ChatMessage[]): Work<string> {
  const questionIndex = messages.findLastIndex((message) => message.role === 'user' && !isMemoryBlock(message))
  const question = readEnds(messages[questionIndex]?.content ?? '')
  const smallTalk = findSmallTalkReply(question)
  if (smallTalk !== undefined) return yield* withNoticeInSteps(smallTalk, messages)
  if (isTelling(question)) return yield* withNoticeInSteps(notedReply, messages)
  const statements: Statement[] = []
  for (const message of readMessages(messages, questionIndex))
    for (const statement of yield* extractStatementsInSteps(message, isOwnReply)) statements.push(statement)
  const others = yield* withoutRepeatsInSteps(statements, question)
  const quotes = yield* selectQuotesInSteps(question, others)
  if (quotes.length === 0 && aboutUser.test(question)) quotes.push(...newestStatements(statements))
  if (quotes.length === 0) return yield* withNoticeInSteps(unknownReply, messages)
  const intro = quotes.every((quote) => quote.author === 'user') ? userQuoteIntro : mixedQuoteIntro
  return intro + quotes.map((quote) => `"${formatStatement(quote)}"`).join(' ')
}

function readEnds(question: string): string {
  if (question.length <= maxQuestionChars) return question
  return `${question.slice(0, maxQuestionChars / 2)}\n${question.slice(-maxQuestionChars / 2)}`
}

/** Returns what is read of the messages besides the question, in their order. */
function readMessages(messages: readonly ChatMessage[], questionIndex: number): readonly ChatMessage[] {
  const others = messages.filter((_, index) => index !== questionIndex)
  const conversation = others.filter((message) => !isMemoryBlock(message))
  const contents = new Map<ChatMessage, string>()
  let left = maxReadChars
  for (const message of [...others.filter(isMemoryBlock), ...conversation.toReversed()]) {
    const content = (message.content ?? '').slice(0, left)
    left -= content.length
    contents.set(message, content)
  }
  return others.map((message) => ({ ...message, content: contents.get(message) ?? '' }))
}

/** A question about everything that the user has told. */
const aboutUser = /\b(?:about me|über mich|sobre m(?:í|im)|sur moi|over mij)(?!\p{L})/iu

const newestStatements = (statements: readonly Statement[]): readonly Statement[] =>
  statements
    .filter(({ author, isQuestion, text }) => author === 'user' && !isQuestion && isTelling(text))
    .slice(-maxQuotes)
    .toReversed()

/** Characters of an earlier reply that are searched: replies of this model are short. */
const maxReplyChars = 65_536
/** Characters searched at a time, and those that two searches have in common. */
const searchedChars = 65_536
const overlapChars = 1_024
const plainReplyLine = new RegExp(`^(?:Assistant: )?(?:${plainReplies.map(escapePattern).join('|')})[^\\S\\n]*$`, 'm')

/** Adds the notice unless an earlier reply has it. Later replies stand for one that is out of sight. */
function* withNoticeInSteps(reply: string, messages: readonly ChatMessage[]): Work<string> {
  for (const { role, content } of messages) {
    const text = content ?? ''
    const isMemory = role === 'system' || text.startsWith('<memory')
    if (role === 'user' && !isMemory) yield 1
    else if (yield* hasOwnReplyInSteps(isMemory ? text : text.slice(0, maxReplyChars))) return reply
  }
  return `${reply} ${noModelNotice}`
}

/** Looks for a reply of this model among the lines of a text. */
function* hasOwnReplyInSteps(text: string): Work<boolean> {
  for (let start = 0; start < text.length; start += searchedChars) {
    const end = start + searchedChars + overlapChars
    const part = text.slice(start, end)
    if (hasSaidNotice(part)) return true
    // Lines of which only a part is here are whole in the search before or after.
    const firstLine = start === 0 ? 0 : `${part}\n`.indexOf('\n') + 1
    const lines = part.slice(firstLine, end < text.length ? part.lastIndexOf('\n') + 1 : undefined)
    if (plainReplyLine.test(lines)) return true
    yield part.length
  }
  return false
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
function* withoutRepeatsInSteps(statements: readonly Statement[], question: string): Work<Statement[]> {
  const inQuestion = yield* extractStatementsInSteps({ role: 'user', content: question }, isOwnReply)
  const seen = new Set(inQuestion.map(({ text }) => text.toLowerCase()))
  const unique: Statement[] = []
  for (const statement of statements) {
    const text = statement.text.toLowerCase()
    if (!seen.has(text)) unique.push(statement)
    seen.add(text)
    yield statementWork
  }
  return unique
}

/**
 * Selects the statements that share the rarest words with the question, newest first, because a later one may correct
 * an earlier one.
 */
function* selectQuotesInSteps(question: string, candidates: readonly Statement[]): Work<Statement[]> {
  const questionTerms = new Set(extractTerms(question))
  const statements: Statement[] = []
  const sharedTerms: (readonly string[])[] = []
  const frequency = new Map<string, number>()
  for (const statement of candidates) {
    yield statementWork
    if (statement.isQuestion || requestVerb.test(statement.text)) continue
    const text = formatStatement(statement)
    const terms = [...new Set(extractTerms(text).filter((term) => questionTerms.has(term)))]
    for (const term of terms) frequency.set(term, (frequency.get(term) ?? 0) + 1)
    statements.push(statement)
    sharedTerms.push(terms)
    yield text.length
  }
  const rarity = (term: string): number => Math.log(1 + statements.length / (frequency.get(term) ?? 1))
  const matches = new TopK(maxQuotes)
  for (const [index, terms] of sharedTerms.entries()) {
    const score = terms.reduce((sum, term) => sum + rarity(term), 0) * weightOf(statements[index] as Statement)
    if (score > 0) matches.push(index, score)
    yield terms.length
  }
  const best = matches.sorted()
  const minScore = (best[0]?.score ?? 0) * minScoreRatio
  const indexes = best.flatMap(({ row, score }) => (score >= minScore ? [row] : [])).sort((a, b) => b - a)
  const [newest = -1] = indexes
  const correction = newest < 0 ? -1 : findCorrection(question, statements, newest)
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
  const found = statements
    .slice(quoted + 1, quoted + 1 + maxCorrectionDistance)
    .findLastIndex(
      ({ text, author }) =>
        author === 'user' &&
        pronounWords.test(text) &&
        (changeWords.test(text) || (isAboutName && renamingWords.test(text))),
    )
  return found < 0 ? found : quoted + 1 + found
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
/** A statement costs as much work as this many characters, besides its own. */
const statementWork = 16
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
function* extractStatementsInSteps(message: ChatMessage, isOwnReply: (text: string) => boolean): Work<Statement[]> {
  const content = message.content ?? ''
  const passages: readonly Passage[] = isMemoryBlock(message)
    ? yield* extractQuotedLinesInSteps(content)
    : [{ text: content, author: message.role === 'user' ? 'user' : 'model', speaker: '' }]
  const statements: Statement[] = []
  for (const { text, author, speaker } of passages) {
    if (framingLines.has(text) || (author === 'model' && isOwnReply(text))) continue
    for (const sentence of yield* splitStatementsInSteps(text)) {
      statements.push({ text: sentence, author, speaker, isQuestion: isQuestion(sentence) })
      yield statementWork
    }
    yield statementWork
  }
  return statements
}

/** Extracts lines such as `User: text` and `[returns.txt] text` from a memory block, with those that continue them. */
function* extractQuotedLinesInSteps(content: string): Work<readonly Passage[]> {
  const passages: Passage[] = []
  let last: Passage | undefined
  for (const line of readLines(content)) {
    yield statementWork
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

/** Lists the lines of a text one by one: splitting megabytes of line breaks at once takes long. */
function* readLines(text: string): Generator<string> {
  let start = 0
  for (const lineEnd of text.matchAll(/\r\n?|\n/g)) {
    yield text.slice(start, lineEnd.index)
    start = lineEnd.index + lineEnd[0].length
  }
  yield text.slice(start)
}

function toPassage(label: string, text: string): Passage {
  const author = Object.hasOwn(authorByLabel, label) ? authorByLabel[label] : undefined
  return author === undefined ? { text, author: 'other', speaker: label } : { text, author, speaker: '' }
}

/** Checks for headings, instructions and empty lines. The label of a file passage is no heading: text follows it. */
const isHeading = (line: string): boolean => /^\s*(?:$|[#-]|\[(?![^\]]{1,255}\] \S)|IMPORTANT|<\/?memory)/.test(line)

/** Splits a text into statements of bounded length; a sentence that begins with a pronoun joins the one before. */
function* splitStatementsInSteps(text: string): Work<readonly string[]> {
  const statements: string[] = []
  for (const found of yield* splitSentencesInSteps(text)) {
    for (const sentence of splitLongSentence(found.text)) addStatement(statements, sentence)
    yield statementWork
  }
  return statements
}

function addStatement(statements: string[], sentence: string): void {
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
