import type { Incoming } from '../../domain/chat.ts'
import { type About, aboutIn, isBlank, type Message } from '../../domain/entry.ts'
import { MemoryError } from '../../domain/error.ts'
import { formatKey, type Key, personKey } from '../../domain/key.ts'
import type { Tokenizer } from '../../domain/ports.ts'
import { internalsOf, type Memory } from '../../memory.ts'
import { messageCost } from '../../text/cost.ts'
import { keyFor } from '../auth/identity.ts'
import { readJson } from '../http/body.ts'
import { Refusal, traceOf } from '../http/httpError.ts'
import type { Exchange } from '../http/requestContext.ts'
import { keyIn } from '../http/router.ts'
import type { Home } from '../memoryRegistry.ts'
import type { Ask, Dialect, Heard, Sent } from '../protocols/protocol.ts'
import { withTalk } from '../protocols/request.ts'
import { findReceipt, keepReceipt, receiptId } from '../receipts.ts'
import type { Answer, Call } from '../upstreams/backend.ts'
import { buildReceipt, buildRelayRecord, buildTurnRecord } from './accounting.ts'
import { appendMessages } from './appendMessages.ts'
import { isAuxiliaryRequest } from './auxiliaryRequest.ts'
import { branchOff, readMessageAt } from './branches.ts'
import { checkConversationExists, conversationKey } from './conversation.ts'
import { buildPrompt, buildUnstoredPrompt, clientPrompt, newestTurn } from './outgoingPrompt.ts'
import { recentMessagesNeeded, reconcileHistory } from './reconcileHistory.ts'
import { type RelayOptions, relayReply } from './relay.ts'
import { storeReply } from './storeReply.ts'
import type { Turn, TurnRequest } from './turn.ts'
import { readHeader, readTurnHeaders } from './turnHeaders.ts'

/** Handles a request for a model reply. */
export async function handleTurn(context: Exchange, dialect: Dialect): Promise<void> {
  const request = await parseTurnRequest(context, dialect)
  const { key } = request
  if (key === undefined) return relayWithoutMemory(request, 'none')
  const { memories, lanes } = context.house
  const startedAt = performance.now()
  // Taken before anything else is awaited, so that turns are stored in the order in which they arrived.
  const release = await lanes.acquire(formatKey(key))
  try {
    if (request.ask.conversation !== undefined) await checkConversationExists(memories, key)
    const fileFaults = await ingestFiles(request, key)
    const resolved = await resolveMemory(request, key)
    await memories.using(resolved.memory, async () => {
      const ingested = await ingestTurn(request, key, resolved)
      release()
      if (ingested === undefined) return relayWithoutMemory(request, 'auxiliary')
      const turn = startTurn(request, resolved, ingested, { fileFaults, startedAt })
      setTurnHeaders(turn)
      try {
        turn.answer = await callUpstream(turn)
        await relayReply(turn.answer, context.client, relayOptions(turn))
      } finally {
        context.onTurn(buildTurnRecord(turn))
      }
    })
  } finally {
    release()
  }
}

/** Parses the body and resolves the session's key, which the credential must allow. */
async function parseTurnRequest(context: Exchange, dialect: Dialect): Promise<TurnRequest> {
  const { house, request, credential } = context
  const path = keyIn(context.params)
  // A foreign key is refused before the body is read.
  if (credential !== undefined) keyFor({ path, credential })
  const body = await readJson(request, house.largest.body)
  const ask = dialect.read(body, house.tokenizer)
  const header = readHeader(request.headers, 'x-threadkeep-key')
  const named = keyFor({ path, header, session: ask.session, credential, defaultScope: house.defaultScope })
  const key = named === undefined || ask.conversation === undefined ? named : conversationKey(named, ask.conversation)
  const isSessionFromBody = path === undefined && header === undefined && ask.conversation === undefined
  const headers = readTurnHeaders(request.headers)
  const sessionsDisabled = key !== undefined && key.id !== '' && !house.memories.hasSessions
  const storeDisabled = headers.storeDisabled || sessionsDisabled
  return { context, dialect, ask, key, isSessionFromBody, headers, storeDisabled }
}

/** Indexes files sent to a tenant. Refuses files sent to a session; an unreadable file still reaches the model. */
async function ingestFiles({ context, ask, storeDisabled }: TurnRequest, key: Key): Promise<readonly string[]> {
  const { takeFile } = context.house
  if (ask.files.length === 0) return []
  if (key.id !== '')
    throw new Refusal(400, 'files_not_allowed', 'File uploads not allowed for ephemeral sessions', 'messages')
  if (storeDisabled || takeFile === undefined) return []
  const faults: string[] = []
  for (const { name, type, bytes } of ask.files) {
    if (bytes === undefined) continue
    try {
      await takeFile(key.scope, { name, type, bytes })
    } catch (error) {
      if (!(error instanceof MemoryError)) throw error
      faults.push(`file ${error.code}`)
    }
  }
  return faults
}

/** Resolves the memory of a session, and begins a new session from its template. */
async function resolveMemory({ context, headers, storeDisabled }: TurnRequest, key: Key): Promise<Home> {
  const { memories } = context.house
  // With storage disabled, never begin a session from a template.
  const template = storeDisabled ? undefined : headers.template
  return memories.atHand(key, template) ?? (await memories.of(key, template))
}

/** Reconciles the history, stores the new messages and builds the prompt. Returns undefined for an auxiliary request. */
async function ingestTurn(request: TurnRequest, key: Key, { memory, preamble }: Home): Promise<Ingested | undefined> {
  const { context, headers, storeDisabled } = request
  const head = await internalsOf(memory).sessions.head(key, recentMessagesNeeded(request.ask.said.length))
  if (isAuxiliaryRequest(request.ask, head)) return undefined
  const metadata = aboutIn(head.derived)
  if (storeDisabled) checkNotTransferred(key, metadata)
  const person = resolvePerson(memory, key, headers.person ?? metadata?.person)
  const { ask, prefill } = splitPrefill(request.ask, memory.tokenizer)
  const continuesAfter = ask.previous === undefined ? undefined : await findReply(memory, key, ask.previous)
  const input = { memory, key, dialect: request.dialect, ask, preamble, person }
  return context.traced.memory('search_memory', key.scope, async (): Promise<Ingested> => {
    if (ask.said.length === 0)
      return { key, prefill, prompt: clientPrompt(input, 'messages'), relation: 'exact', ...nothingStored }
    const change = await reconcileHistory(
      {
        memory,
        key,
        messages: ask.said,
        continuesAfter,
        isRetry: headers.isRetry,
        isSingleConversation: !request.isSessionFromBody,
      },
      head,
    )
    const { stored, newFrom, cutFrom, relation } = change
    if (storeDisabled) {
      const prompt = await buildUnstoredPrompt(input, stored, newFrom)
      return { key, prefill, prompt, relation, ...nothingStored }
    }
    if (cutFrom !== undefined) await branchOff(memory, key, cutFrom)
    const kept = cutFrom === undefined ? stored : stored.filter(({ sequence }) => sequence < cutFrom)
    const appended = await appendMessages(memory, key, ask.said.slice(newFrom), change.isHeadCurrent ? head : undefined)
    const prompt = await buildPrompt(input, lastMessages(kept, appended.stored, newestTurn(ask).length))
    const question = (appended.stored.at(-1) ?? kept.at(-1))?.sequence ?? 0
    return { key, prefill, prompt, relation, epoch: appended.epoch, question, appended: appended.stored.length }
  })
}

/** The ingested part of a turn. */
type Ingested = Pick<Turn, 'key' | 'prefill' | 'prompt' | 'relation' | 'epoch' | 'question' | 'appended'>

const nothingStored = { epoch: undefined, question: 0, appended: 0 } as const

function checkNotTransferred(key: Key, metadata: About | undefined): void {
  if (metadata?.movedTo === undefined) return
  const to = `${key.scope}:${metadata.movedTo}`
  throw new MemoryError('moved', `Session ${formatKey(key)} was transferred to ${to}. Use that key.`, {
    to,
    param: 'key',
  })
}

/** The person speaking, when the profile reads a person's memory; throws for an invalid name. */
function resolvePerson({ profile }: Memory, { scope }: Key, person: string | undefined): string | undefined {
  if (person === undefined || !profile.sees.includes('person')) return undefined
  personKey(scope, person)
  return person
}

/** Separates the start of the reply that a client sent for the model to continue; its tokens count as overhead. */
function splitPrefill(ask: Ask, tokenizer: Tokenizer): { readonly ask: Ask; readonly prefill: Sent | undefined } {
  const prefill = ask.said.at(-1)
  if (prefill?.role !== 'assistant' || prefill.calls !== undefined || isBlank(prefill.content))
    return { ask, prefill: undefined }
  const owed = ask.owed + messageCost(tokenizer, prefill)
  return { ask: withTalk(ask, { said: ask.said.slice(0, -1), owed }), prefill }
}

/** Sequence number of the stored reply that `previous_response_id` names. */
async function findReply(memory: Memory, key: Key, responseId: string): Promise<number> {
  const receipt = await findReceipt(internalsOf(memory).sessions, key, { response: responseId })
  const id = JSON.stringify(responseId.slice(0, 80))
  if (receipt?.sequence == null)
    throw responseNotFound(
      `There is no response ${id} in this session. Continue from one of its own, or send the conversation as input.`,
    )
  // An edit of the conversation may have cut the reply into a branch.
  if ((await readMessageAt(memory, key, receipt.sequence)) !== undefined) return receipt.sequence
  throw responseNotFound(
    `Response ${id} is no longer part of this session: the conversation continued from an earlier one.`,
  )
}

const responseNotFound = (message: string): Refusal =>
  new Refusal(404, 'previous_response_not_found', message, 'previous_response_id')

/** The last `count` messages of a session, given its stored messages and those just appended. */
function lastMessages(stored: readonly Message[], appended: readonly Message[], count: number): readonly Message[] {
  const missing = count - appended.length
  if (missing === 0) return appended
  return missing < 0 ? appended.slice(-missing) : [...stored.slice(-missing), ...appended]
}

function startTurn(
  request: TurnRequest,
  memory: Home,
  ingested: Ingested,
  { fileFaults, startedAt }: { readonly fileFaults: readonly string[]; readonly startedAt: number },
): Turn {
  const { degraded, ledger } = ingested.prompt
  return {
    ...ingested,
    request,
    memory,
    receiptId: receiptId(ingested.key),
    degraded: [
      ...(degraded === undefined ? [] : [degraded]),
      ...(ledger?.degraded.map(({ step, why }) => `${step} ${why}`) ?? []),
      ...fileFaults,
    ],
    memoryMs: performance.now() - startedAt,
    firstByteMs: undefined,
    answer: undefined,
    reply: undefined,
  }
}

function setTurnHeaders({ request, memory, prompt, epoch, receiptId, degraded }: Turn): void {
  const { client } = request.context
  client.tell('x-threadkeep-memory', request.storeDisabled ? 'read-only' : 'on')
  client.tell('x-threadkeep-tokens', `${prompt.tokens}/${memory.memory.profile.budget}`)
  client.tell('x-threadkeep-profile', memory.profile)
  if (epoch !== undefined) client.tell('x-threadkeep-receipt', receiptId)
  if (degraded.length > 0) client.tell('x-threadkeep-degraded', degraded.join('; ').replace(/[^\x20-\x7e]/g, '?'))
}

async function callUpstream({ request, key, prompt }: Turn): Promise<Answer> {
  const { context, ask, storeDisabled } = request
  const { house, credential } = context
  const answer = await house.backend.ask(upstreamCall(request, prompt.body, prompt.tokens))
  if (!storeDisabled)
    house.models?.heard(key, ask.model, answer.from, context.request.headers, credential !== undefined)
  return answer
}

function upstreamCall({ context, dialect }: TurnRequest, body: Call['body'], tokens: number): Call {
  const { headers } = context.request
  const traceHeaders = context.traced.headers
  return {
    dialect: dialect.name,
    body,
    spent: tokens,
    headers: Object.keys(traceHeaders).length === 0 ? headers : { ...headers, ...traceHeaders },
    isGuarded: context.credential !== undefined,
    signal: context.client.signal,
  }
}

const relayOptions = (turn: Turn): RelayOptions => ({
  dialect: turn.request.dialect,
  streams: turn.request.ask.streams,
  onFirstByte: () => {
    turn.firstByteMs = performance.now() - turn.request.context.began
  },
  onReply: (reply) => storeReplyAndReceipt(turn, reply),
  rewriteBody: turn.request.headers.addReceiptToBody ? (text) => addReceiptId(text, turn.receiptId) : undefined,
})

/** Stores the reply and its receipt. A failure is reported, and the client still gets its reply. */
async function storeReplyAndReceipt(turn: Turn, reply: Heard): Promise<void> {
  const { request, key, memory, epoch, question, prompt, prefill } = turn
  const { house, traced, id } = request.context
  turn.reply = reply
  if (epoch === undefined) return
  const message = prefill === undefined ? reply.reply : joinPrefill(prefill, reply.reply)
  try {
    const stored = await traced.memory('create_memory', key.scope, () =>
      house.lanes.run(formatKey(key), () =>
        storeReply(memory.memory, key, { reply: message, question, epoch, ledger: prompt.ledger }),
      ),
    )
    if (stored === undefined) return
    const receipt = buildReceipt(house.prices, turn, stored.message)
    await keepReceipt(internalsOf(memory.memory).sessions, stored.key, receipt)
  } catch (error) {
    house.onFault(id, traceOf(error))
  }
}

/** The client's prefill and the model's continuation are one reply. */
const joinPrefill = (prefill: Sent, reply: Incoming): Incoming => ({
  ...reply,
  content: prefill.content + (typeof reply.content === 'string' ? reply.content : ''),
})

/** Adds the receipt's id to a JSON body, for clients that cannot read headers. */
const addReceiptId = (text: string, receipt: string): string =>
  JSON.stringify({ ...(JSON.parse(text) as object), threadkeep: { receipt } })

/** Relays a request that memory takes no part in. */
async function relayWithoutMemory(request: TurnRequest, reason: 'none' | 'auxiliary'): Promise<void> {
  const { context, dialect, ask } = request
  const { client, house } = context
  client.tell('x-threadkeep-memory', reason)
  // References that only memory can resolve are removed.
  const body = reason === 'auxiliary' ? dialect.write(ask, [], 0) : ask.body
  const answer = await house.backend.ask(upstreamCall(request, body, 0))
  let reply: Heard | undefined
  let firstByteMs: number | undefined
  try {
    await relayReply(answer, client, {
      dialect,
      streams: ask.streams,
      allowAnyResponse: reason === 'none',
      onFirstByte: () => {
        firstByteMs = performance.now() - context.began
      },
      onReply: async (received) => {
        reply = received
      },
    })
  } finally {
    context.onTurn(buildRelayRecord(request, answer, firstByteMs, reply?.usage))
  }
}
