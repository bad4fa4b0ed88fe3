import type { Tokens } from '../../domain/entry.ts'
import { formatKey, isInScope, type Key } from '../../domain/key.ts'
import { LruCache } from '../../domain/lruCache.ts'
import type { Store } from '../../domain/ports.ts'
import { countExisting } from '../../domain/session.ts'
import { internalsOf, type Memory } from '../../memory.ts'
import { yieldToEventLoop } from '../../stores/yieldToEventLoop.ts'
import { countPromptOverhead } from '../../text/cost.ts'
import type { ParsedRequest } from '../protocols/protocol.ts'
import { toSystemMessage } from '../protocols/request.ts'
import type { UpstreamResponse } from '../upstreams/backend.ts'
import type { OutgoingPrompt } from './outgoingPrompt.ts'
import { type PromptDigest, SentPrompts } from './sentPrompts.ts'

/** The parts of a turn that are measured. */
type MeasuredTurn = {
  readonly request: { readonly parsed: ParsedRequest; readonly storeDisabled: boolean }
  readonly key: Key
  readonly resolved: { readonly memory: Memory }
  readonly prompt: OutgoingPrompt
  /** Conversation of the session, and the sequence number of the question in it. */
  readonly branch: number | undefined
  readonly question: number
  /** Undefined when nothing was stored. */
  readonly epoch: number | undefined
}

/** Token counts of a turn that are measured while its upstream works. */
export type TurnMeasurement = {
  /** Tokens of the client's whole conversation, as it would be sent without memory. */
  readonly history: Tokens
  /** Tokens at the beginning of the prompt that the previous prompt of the session began with too. */
  readonly cacheable: Tokens
}

type PendingMeasurement = TurnMeasurement & {
  readonly digest: PromptDigest
  /** Upstream of the previous prompt. */
  readonly upstream: string | undefined
}

/** Sum of the stored messages of a conversation, up to a sequence number. */
type ConversationSize = {
  readonly epoch: number
  readonly last: number
  /** Stored messages of the session up to `last`. */
  readonly messages: number
  readonly tokens: Tokens
}

/** Conversations whose size is kept. */
const maxConversations = 10_000
const messagesPerPage = 500

/** Measures turns against the prompts and messages before them. */
export class TurnMeter {
  private readonly prompts = new SentPrompts()
  private readonly sizes = new LruCache<string, ConversationSize>({ maxEntries: maxConversations })

  /** Measures a turn whose prompt is being sent. */
  async measure(turn: MeasuredTurn): Promise<PendingMeasurement> {
    const { prompt, key, resolved } = turn
    const { tokenizer } = resolved.memory
    const history = await this.measureHistory(turn)
    const toMeasure = { body: prompt.body, tokenizer, countTools: () => countTools(turn) }
    const { digest, commonTokens, upstream } = await this.prompts.measure(formatKey(key), toMeasure)
    return { history, cacheable: Math.min(commonTokens, prompt.tokens), digest, upstream }
  }

  /** Completes a measurement with the response to the prompt. A refused prompt is not in the provider's cache. */
  complete({ request, key }: MeasuredTurn, pending: PendingMeasurement, response: UpstreamResponse): TurnMeasurement {
    const { history, cacheable, digest, upstream } = pending
    if (response.status < 400 && !request.storeDisabled) this.prompts.record(formatKey(key), digest, response.upstream)
    return { history, cacheable: upstream === response.upstream ? cacheable : 0 }
  }

  /** Drops what is known about a session, or about a tenant with all its sessions. */
  forget(target: { readonly key: string } | { readonly scope: string }): void {
    this.prompts.forget(target)
    this.sizes.deleteWhere((name) => {
      const session = name.slice(0, name.indexOf('\n'))
      return 'key' in target ? session === target.key : isInScope(session, target.scope)
    })
  }

  /** Tokens of the conversation in full. A client that leaves its history to memory would have to send all of it. */
  private async measureHistory({ prompt, key, branch, question, epoch, resolved }: MeasuredTurn): Promise<Tokens> {
    const { tokens, ledger, history } = prompt
    if (history !== undefined || ledger === undefined) return history ?? tokens
    const { sessions } = internalsOf(resolved.memory)
    const last = epoch === undefined ? Number.MAX_SAFE_INTEGER : question
    const stored = await this.countMessages(sessions, key, branch, last)
    return tokens - ledger.spent + stored + resolved.memory.tokenizer.overhead.reply
  }

  /** Sums the messages of a conversation up to a sequence number, from where the last turn has stopped. */
  private async countMessages(store: Store, key: Key, branch: number | undefined, last: number): Promise<Tokens> {
    const name = `${formatKey(key)}\n${branch ?? ''}`
    // The turn has read the session and stored its question: whatever the store has cached is new enough.
    const revision = 0
    const { epoch, gaps, lastSequence } = await store.readHead(key, 0, revision)
    const known = this.sizes.get(name)
    // A late reply fills the gap that was kept for it.
    const isCurrent =
      known !== undefined &&
      known.epoch === epoch &&
      known.last <= last &&
      countExisting(gaps, 1, known.last) <= known.messages
    let size = isCurrent ? known : { epoch, last: 0, messages: 0, tokens: 0 }
    for (const end = Math.min(last, lastSequence); size.last < end; await yieldToEventLoop()) {
      const page = await store.readMessages(key, {
        after: size.last,
        before: end + 1,
        limit: messagesPerPage,
        revision,
      })
      const own = page.filter((message) => message.branch === branch)
      size = {
        epoch,
        last: page.length < messagesPerPage ? end : (page.at(-1)?.sequence ?? end),
        messages: size.messages + page.length,
        tokens: own.reduce((sum, message) => sum + message.tokens, size.tokens),
      }
    }
    this.sizes.set(name, size)
    return size.tokens
  }
}

/** Tokens of the tools: those of the request beyond its messages and instructions. */
function countTools({ request: { parsed }, resolved }: MeasuredTurn): Tokens {
  if (!parsed.hasTools) return 0
  const instructions = parsed.instructions.map(toSystemMessage)
  return Math.max(0, parsed.promptOverheadTokens - countPromptOverhead(resolved.memory.tokenizer, instructions, []))
}
