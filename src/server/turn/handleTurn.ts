import type { MessageInput } from '../../domain/chat.ts'
import { findMetadata, isBlank, type Message, type SessionMetadata } from '../../domain/entry.ts'
import { MemoryError } from '../../domain/error.ts'
import { formatKey, type Key, personKey } from '../../domain/key.ts'
import type { Tokenizer } from '../../domain/ports.ts'
import { internalsOf, type Memory } from '../../memory.ts'
import { countMessageTokens } from '../../text/cost.ts'
import { resolveKey } from '../auth/identity.ts'
import { readJson } from '../http/body.ts'
import { describeFault, HttpError } from '../http/httpError.ts'
import type { RequestContext } from '../http/requestContext.ts'
import { queryStringOf, readPathKey } from '../http/router.ts'
import type { ResolvedMemory } from '../memoryRegistry.ts'
import type { ClientMessage, ModelReply, ParsedRequest, Protocol } from '../protocols/protocol.ts'
import { overrideConversation } from '../protocols/request.ts'
import { findReceipt, newReceiptId, storeReceipt } from '../receipts.ts'
import type { UpstreamRequest, UpstreamResponse } from '../upstreams/backend.ts'
import { buildReceipt, buildRelayRecord, buildTurnRecord } from './accounting.ts'
import { isAuxiliaryRequest } from './auxiliaryRequest.ts'
import { branchOff, readMessageAt } from './branches.ts'
import { checkConversationExists, conversationKey } from './conversation.ts'
import { buildPrompt, buildUnstoredPrompt, clientPrompt, newestTurn, type PromptInput } from './outgoingPrompt.ts'
import { recentMessagesNeeded, reconcileHistory } from './reconcileHistory.ts'
import { type RelayOptions, relayReply } from './relay.ts'
import { appendMessages, storeReply } from './storeMessages.ts'
import type { Turn, TurnRequest } from './turn.ts'
import { readHeader, readTurnHeaders } from './turn.ts'

/** Handles a request for a model reply. */
export async function handleTurn(context: RequestContext, protocol: Protocol): Promise<void> {
  const request = await parseTurnRequest(context, protocol)
  const { key } = request
  if (key === undefined) return relayWithoutMemory(request, 'none')
  const { memories, sessionLocks } = context.server
  const startedAt = performance.now()
  // Taken before anything else is awaited, so that turns are stored in the order in which they arrived.
  const release = await sessionLocks.acquire(formatKey(key))
  try {
    if (request.parsed.conversationId !== undefined) await checkConversationExists(memories, key)
    const fileFaults = await ingestFiles(request, key)
    const resolved = await resolveMemory(request, key)
    await memories.using(resolved.memory, async () => {
      const ingested = await ingestTurn(request, key, resolved)
      release()
      if (ingested === undefined) return relayWithoutMemory(request, 'auxiliary')
      const turn = startTurn(request, resolved, ingested, { fileFaults, startedAt })
      setTurnHeaders(turn)
      try {
        turn.upstreamResponse = await callUpstream(turn)
        await relayReply(turn.upstreamResponse, context.client, relayOptions(turn))
      } finally {
        context.onTurn(buildTurnRecord(turn))
      }
    })
  } finally {
    release()
  }
}

/** Parses the body and resolves the session's key, which the credential must allow. */
async function parseTurnRequest(context: RequestContext, protocol: Protocol): Promise<TurnRequest> {
  const { server, request, credential } = context
  const path = readPathKey(context.params)
  // A foreign key is refused before the body is read.
  if (credential !== undefined) resolveKey({ path, credential })
  const body = await readJson(request, server.maxBytes.body)
  const parsed = protocol.parseRequest(body, server.tokenizer)
  const header = readHeader(request.headers, 'x-threadkeep-key')
  const named = resolveKey({
    path,
    header,
    sessionHint: parsed.sessionHint,
    credential,
    defaultScope: server.defaultScope,
  })
  const key =
    named === undefined || parsed.conversationId === undefined ? named : conversationKey(named, parsed.conversationId)
  const isSessionFromBody = path === undefined && header === undefined && parsed.conversationId === undefined
  const headers = readTurnHeaders(request.headers)
  const sessionsDisabled = key !== undefined && key.id !== '' && !server.memories.hasSessions
  const storeDisabled = headers.storeDisabled || sessionsDisabled
  return { context, protocol, parsed, key, isSessionFromBody, headers, storeDisabled }
}

/** Indexes files sent to a tenant. Refuses files sent to a session; an unreadable file still reaches the model. */
async function ingestFiles({ context, parsed, storeDisabled }: TurnRequest, key: Key): Promise<readonly string[]> {
  const { indexFile } = context.server
  if (parsed.files.length === 0) return []
  if (key.id !== '')
    throw new HttpError(400, 'files_not_allowed', 'File uploads not allowed for ephemeral sessions', 'messages')
  if (storeDisabled || indexFile === undefined) return []
  const faults: string[] = []
  for (const { name, mediaType, bytes } of parsed.files) {
    if (bytes === undefined) continue
    try {
      await indexFile(key.scope, { name, type: mediaType, bytes })
    } catch (error) {
      if (!(error instanceof MemoryError)) throw error
      faults.push(`file ${error.code}`)
    }
  }
  return faults
}

/** Resolves the memory of a session, and begins a new session from its template. */
async function resolveMemory({ context, headers, storeDisabled }: TurnRequest, key: Key): Promise<ResolvedMemory> {
  const { memories } = context.server
  // With storage disabled, never begin a session from a template.
  const template = storeDisabled ? undefined : headers.template
  return memories.resolveCached(key, template) ?? (await memories.resolve(key, template))
}

/**
 * Reconciles the history, stores the new messages and builds the prompt. Returns undefined for an auxiliary request.
 */
async function ingestTurn(
  request: TurnRequest,
  key: Key,
  { memory, preamble }: ResolvedMemory,
): Promise<Ingested | undefined> {
  const { context, headers, storeDisabled } = request
  const head = await internalsOf(memory).sessions.readHead(key, recentMessagesNeeded(request.parsed.messages.length))
  if (isAuxiliaryRequest(request.parsed, head)) return undefined
  const metadata = findMetadata(head.derived)
  if (storeDisabled) checkNotTransferred(key, metadata)
  const person = resolvePerson(memory, key, headers.person ?? metadata?.person)
  const { parsed, prefill } = splitPrefill(request.parsed, memory.tokenizer)
  const continuesAfter =
    parsed.previousResponseId === undefined ? undefined : await findReply(memory, key, parsed.previousResponseId)
  const input: PromptInput = { memory, key, protocol: request.protocol, request: parsed, preamble, person }
  return context.trace.recordOperation('search_memory', key.scope, async (): Promise<Ingested> => {
    if (parsed.messages.length === 0)
      return { key, prefill, prompt: clientPrompt(input, 'messages'), relation: 'exact', ...nothingStored }
    const change = await reconcileHistory(
      {
        memory,
        key,
        messages: parsed.messages,
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
    const appended = await appendMessages(
      memory,
      key,
      parsed.messages.slice(newFrom),
      change.isHeadCurrent ? head : undefined,
    )
    const prompt = await buildPrompt(input, lastMessages(kept, appended.stored, newestTurn(parsed).length))
    const question = (appended.stored.at(-1) ?? kept.at(-1))?.sequence ?? 0
    return { key, prefill, prompt, relation, epoch: appended.epoch, question, appended: appended.stored.length }
  })
}

/** The ingested part of a turn. */
type Ingested = Pick<Turn, 'key' | 'prefill' | 'prompt' | 'relation' | 'epoch' | 'question' | 'appended'>

const nothingStored = { epoch: undefined, question: 0, appended: 0 } as const

function checkNotTransferred(key: Key, metadata: SessionMetadata | undefined): void {
  if (metadata?.movedTo === undefined) return
  const to = `${key.scope}:${metadata.movedTo}`
  throw new MemoryError('moved', `Session ${formatKey(key)} was transferred to ${to}. Use that key.`, {
    to,
    param: 'key',
  })
}

/** The person speaking, when the profile reads a person's memory; throws for an invalid name. */
function resolvePerson({ profile }: Memory, { scope }: Key, person: string | undefined): string | undefined {
  if (person === undefined || !profile.scopes.includes('person')) return undefined
  personKey(scope, person)
  return person
}

/** Separates the start of the reply that a client sent for the model to continue; its tokens count as overhead. */
function splitPrefill(
  request: ParsedRequest,
  tokenizer: Tokenizer,
): { readonly parsed: ParsedRequest; readonly prefill: ClientMessage | undefined } {
  const prefill = request.messages.at(-1)
  if (prefill?.role !== 'assistant' || prefill.toolCalls !== undefined || isBlank(prefill.content))
    return { parsed: request, prefill: undefined }
  const promptOverheadTokens = request.promptOverheadTokens + countMessageTokens(tokenizer, prefill)
  const messages = request.messages.slice(0, -1)
  return { parsed: overrideConversation(request, { messages, promptOverheadTokens }), prefill }
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

const responseNotFound = (message: string): HttpError =>
  new HttpError(404, 'previous_response_not_found', message, 'previous_response_id')

/** The last `count` messages of a session, given its stored messages and those just appended. */
function lastMessages(stored: readonly Message[], appended: readonly Message[], count: number): readonly Message[] {
  const missing = count - appended.length
  if (missing === 0) return appended
  return missing < 0 ? appended.slice(-missing) : [...stored.slice(-missing), ...appended]
}

function startTurn(
  request: TurnRequest,
  memory: ResolvedMemory,
  ingested: Ingested,
  { fileFaults, startedAt }: { readonly fileFaults: readonly string[]; readonly startedAt: number },
): Turn {
  const { degraded, ledger } = ingested.prompt
  return {
    ...ingested,
    request,
    resolved: memory,
    receiptId: newReceiptId(ingested.key),
    degraded: [
      ...(degraded === undefined ? [] : [degraded]),
      ...(ledger?.degraded.map(({ step, why }) => `${step} ${why}`) ?? []),
      ...fileFaults,
    ],
    memoryMs: performance.now() - startedAt,
    firstByteMs: undefined,
    upstreamResponse: undefined,
    reply: undefined,
  }
}

function setTurnHeaders({ request, resolved, prompt, epoch, receiptId, degraded }: Turn): void {
  const { client } = request.context
  client.setHeader('x-threadkeep-memory', request.storeDisabled ? 'read-only' : 'on')
  client.setHeader('x-threadkeep-tokens', `${prompt.tokens}/${resolved.memory.profile.budget}`)
  client.setHeader('x-threadkeep-profile', resolved.profileHeader)
  if (epoch !== undefined) client.setHeader('x-threadkeep-receipt', receiptId)
  if (degraded.length > 0) client.setHeader('x-threadkeep-degraded', degraded.join('; ').replace(/[^\x20-\x7e]/g, '?'))
}

async function callUpstream({ request, key, prompt }: Turn): Promise<UpstreamResponse> {
  const { context, parsed, storeDisabled } = request
  const { server, credential } = context
  const response = await server.backend.send(upstreamCall(request, prompt.body, prompt.tokens))
  if (!storeDisabled)
    server.upkeepModels?.record(key, parsed.model, response.upstream, context.request.headers, credential !== undefined)
  return response
}

function upstreamCall(
  { context, protocol }: TurnRequest,
  body: UpstreamRequest['body'],
  tokens: number,
): UpstreamRequest {
  const { headers } = context.request
  const traceHeaders = context.trace.headers
  return {
    endpoint: protocol.name,
    body,
    promptTokens: tokens,
    headers: Object.keys(traceHeaders).length === 0 ? headers : { ...headers, ...traceHeaders },
    query: queryStringOf(context.request),
    withholdClientKey: context.credential !== undefined,
    signal: context.client.signal,
  }
}

const relayOptions = (turn: Turn): RelayOptions => ({
  protocol: turn.request.protocol,
  streams: turn.request.parsed.isStreaming,
  onFirstByte: () => {
    turn.firstByteMs = performance.now() - turn.request.context.startedAt
  },
  onReply: (reply) => storeReplyAndReceipt(turn, reply),
  rewriteBody: turn.request.headers.addReceiptToBody ? (text) => addReceiptId(text, turn.receiptId) : undefined,
})

/** Stores the reply and its receipt. A failure is reported, and the client still gets its reply. */
async function storeReplyAndReceipt(turn: Turn, reply: ModelReply): Promise<void> {
  const { request, key, resolved, epoch, question, prompt, prefill } = turn
  const { server, trace, id } = request.context
  turn.reply = reply
  if (epoch === undefined) return
  const message = prefill === undefined ? reply.message : joinPrefill(prefill, reply.message)
  try {
    const stored = await trace.recordOperation('create_memory', key.scope, () =>
      server.sessionLocks.run(formatKey(key), () =>
        storeReply(resolved.memory, key, { reply: message, question, epoch, ledger: prompt.ledger }),
      ),
    )
    if (stored === undefined) return
    const receipt = buildReceipt(server.prices, turn, stored.message)
    await storeReceipt(internalsOf(resolved.memory).sessions, stored.key, receipt)
  } catch (error) {
    server.onFault(id, describeFault(error))
  }
}

/** The client's prefill and the model's continuation are one reply. */
const joinPrefill = (prefill: ClientMessage, reply: MessageInput): MessageInput => ({
  ...reply,
  content: prefill.content + (typeof reply.content === 'string' ? reply.content : ''),
})

/** Adds the receipt's id to a JSON body, for clients that cannot read headers. */
const addReceiptId = (text: string, receipt: string): string =>
  JSON.stringify({ ...(JSON.parse(text) as object), threadkeep: { receipt } })

/** Relays a request that memory takes no part in. */
async function relayWithoutMemory(request: TurnRequest, reason: 'none' | 'auxiliary'): Promise<void> {
  const { context, protocol, parsed } = request
  const { client, server } = context
  client.setHeader('x-threadkeep-memory', reason)
  // References that only memory can resolve are removed.
  const body = reason === 'auxiliary' ? protocol.buildRequest(parsed, [], 0) : parsed.body
  const response = await server.backend.send(upstreamCall(request, body, 0))
  let reply: ModelReply | undefined
  let firstByteMs: number | undefined
  try {
    await relayReply(response, client, {
      protocol,
      streams: parsed.isStreaming,
      allowAnyResponse: reason === 'none',
      onFirstByte: () => {
        firstByteMs = performance.now() - context.startedAt
      },
      onReply: async (received) => {
        reply = received
      },
    })
  } finally {
    context.onTurn(buildRelayRecord(request, response, firstByteMs, reply?.usage))
  }
}
