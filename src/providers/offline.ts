import { MemoryError } from '../domain/error.ts'
import type { ChatMessage } from '../domain/ledger.ts'
import type { Ask, Model } from '../domain/ports.ts'
import { termsOf } from '../text/words.ts'
import { isBlock, type Statement, statementsOf } from './statements.ts'

type Match = { readonly statement: Statement; readonly place: number; readonly score: number }

const told = 'From what you told me: '
const said = 'From this conversation: '
const nothing =
  'No language model is configured, so I can only quote what I remember, and I remember nothing about this. I have noted your message. ' +
  'For real answers, name a model server with --upstream or OPENAI_BASE_URL.'
const isOwn = (line: string): boolean => [told, said, nothing.slice(0, 32)].some((opening) => line.startsWith(opening))
const mostQuotes = 3

/**
 * The built-in model: answers without any network by quoting what the messages shown hold on the question.
 *
 * @example
 * for await (const word of offlineModel().reply({ messages })) process.stdout.write(word)
 */
export function offlineModel(): Model {
  return {
    name: 'threadkeep-offline',
    async *reply(ask: Ask, signal?: AbortSignal) {
      for (const word of answer(ask.messages).match(/\S+\s*/g) ?? []) {
        if (signal?.aborted)
          throw new MemoryError('aborted', 'The reply was stopped by the caller.', { cause: signal.reason })
        yield word
      }
    },
  }
}

function answer(messages: readonly ChatMessage[]): string {
  const asked = messages.findLastIndex((message) => message.role === 'user' && !isBlock(message))
  const question = messages[asked]?.content ?? ''
  const known = messages.flatMap((message, at) => (at === asked ? [] : statementsOf(message, isOwn)))
  const quotes = choose(question, withoutEchoes(known, question))
  if (quotes.length === 0) return nothing
  const opening = quotes.every((quote) => quote.by === 'user') ? told : said
  return opening + quotes.map((quote) => `"${wording(quote)}"`).join(' ')
}

const wording = ({ speaker, text }: Statement): string => (speaker === '' ? text : `${speaker}: ${text}`)

/** Leaves out what the question itself says and what was there before. */
function withoutEchoes(known: readonly Statement[], question: string): Statement[] {
  const seen = new Set(statementsOf({ role: 'user', content: question }, isOwn).map(({ text }) => plain(text)))
  return known.filter((statement) => {
    const text = plain(statement.text)
    if (seen.has(text)) return false
    seen.add(text)
    return true
  })
}

const plain = (text: string): string => text.toLowerCase()

/** The statements that share most rare words with the question, in the order in which they were made. */
function choose(question: string, known: readonly Statement[]): Statement[] {
  const wanted = new Set(termsOf(question))
  const shared = known.map((statement) => new Set(termsOf(wording(statement)).filter((term) => wanted.has(term))))
  const uses = new Map<string, number>()
  for (const term of shared.flatMap((terms) => [...terms])) uses.set(term, (uses.get(term) ?? 0) + 1)
  const rarity = (term: string): number => Math.log(1 + known.length / (uses.get(term) ?? 1))
  const matches = known.map((statement, place): Match => {
    const score = [...(shared[place] ?? [])].reduce((sum, term) => sum + rarity(term), 0)
    return { statement, place, score: score * trust(statement) }
  })
  // Of equals the later one counts, because people change their minds.
  const best = matches.filter(({ score }) => score > 0).sort((a, b) => b.score - a.score || b.place - a.place)
  const enough = (best[0]?.score ?? 0) * 0.6
  return best
    .slice(0, mostQuotes)
    .filter(({ score }) => score >= enough)
    .sort((a, b) => a.place - b.place)
    .map(({ statement }) => statement)
}

/** A question tells little, and what a model said is not what the user said. */
const trust = ({ isQuestion, by }: Statement): number => (isQuestion ? 0.25 : by === 'model' ? 0.5 : 1)
