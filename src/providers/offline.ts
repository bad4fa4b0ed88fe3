import { MemoryError } from '../domain/error.ts'
import type { ChatMessage } from '../domain/ledger.ts'
import type { Ask, Model } from '../domain/ports.ts'
import { termsOf } from '../text/words.ts'
import { extractStatements, isMemoryBlock, type Statement } from './statements.ts'

type Match = { readonly statement: Statement; readonly index: number; readonly score: number }

const userQuoteIntro = 'From what you told me: '
const mixedQuoteIntro = 'From this conversation: '
const noMatchReply =
  'No language model is configured, so I can only quote what I remember, and I remember nothing about this. I have noted your message. ' +
  'For real answers, name a model server with --upstream or OPENAI_BASE_URL.'
/** Opening words of this model's own replies, which are never quoted. */
const ownIntros = [userQuoteIntro, mixedQuoteIntro, noMatchReply.slice(0, 32)]
const isOwnReply = (line: string): boolean => ownIntros.some((intro) => line.startsWith(intro))

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
    async *reply(request: Ask, signal?: AbortSignal) {
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
  const statements = messages.flatMap((message, index) =>
    index === questionIndex ? [] : extractStatements(message, isOwnReply),
  )
  const quotes = selectQuotes(question, withoutRepeats(statements, question))
  if (quotes.length === 0) return noMatchReply
  const intro = quotes.every((quote) => quote.author === 'user') ? userQuoteIntro : mixedQuoteIntro
  return intro + quotes.map((quote) => `"${formatStatement(quote)}"`).join(' ')
}

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

/** Selects the statements that share the rarest words with the question, in their original order. */
function selectQuotes(question: string, statements: readonly Statement[]): Statement[] {
  const questionTerms = new Set(termsOf(question))
  const sharedTerms = statements.map(
    (statement) => new Set(termsOf(formatStatement(statement)).filter((term) => questionTerms.has(term))),
  )
  const frequency = new Map<string, number>()
  for (const term of sharedTerms.flatMap((terms) => [...terms])) frequency.set(term, (frequency.get(term) ?? 0) + 1)
  const rarity = (term: string): number => Math.log(1 + statements.length / (frequency.get(term) ?? 1))
  const matches = statements.map((statement, index): Match => {
    const score = [...(sharedTerms[index] ?? [])].reduce((sum, term) => sum + rarity(term), 0)
    return { statement, index, score: score * weightOf(statement) }
  })
  // Among equal scores the later statement wins, because it may correct the earlier one.
  const best = matches.filter(({ score }) => score > 0).sort((a, b) => b.score - a.score || b.index - a.index)
  const minScore = (best[0]?.score ?? 0) * minScoreRatio
  return best
    .slice(0, maxQuotes)
    .filter(({ score }) => score >= minScore)
    .sort((a, b) => a.index - b.index)
    .map(({ statement }) => statement)
}

/** Weighs questions and model statements less than statements of the user. */
const weightOf = ({ isQuestion, author }: Statement): number => (isQuestion ? 0.25 : author === 'model' ? 0.5 : 1)
