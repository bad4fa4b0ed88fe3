import { describeDegradation } from '../../domain/degradation.ts'
import { findMetadata, isBlank } from '../../domain/entry.ts'
import { hasErrorCode, MemoryError } from '../../domain/error.ts'
import { formatKey, type Key, personKey } from '../../domain/key.ts'
import type { Degradation } from '../../domain/ledger.ts'
import type { Tokenizer } from '../../domain/ports.ts'
import type { SessionHead } from '../../domain/session.ts'
import { internalsOf, type Memory } from '../../memory.ts'
import { yieldToEventLoop } from '../../stores/yieldToEventLoop.ts'
import { countMessageTokens } from '../../text/cost.ts'
import { resolveKey } from '../auth/identity.ts'
import { readJson } from '../http/body.ts'
import { describeFault, HttpError } from '../http/httpError.ts'
import type { RequestContext } from '../http/requestContext.ts'
import { queryStringOf, readPathKey } from '../http/router.ts'
import type { ResolvedMemory } from '../memoryRegistry.ts'
import type { ClientMessage, ModelReply, ParsedRequest, Protocol } from '../protocols/protocol.ts'
import { overrideConversation } from '../protocols/request.ts'
import { hasResentHistory, newReceiptId, storeReceipt } from '../receipts.ts'
import type { UpstreamRequest, UpstreamResponse } from '../upstreams/backend.ts'
import { contextWindowOf } from '../upstreams/contextWindows.ts'
import { buildReceipt, buildRelayRecord, buildTurnRecord } from './accounting.ts'
import { isAuxiliaryRequest } from './auxiliaryRequest.ts'
import {
  checkConversationExists,
  checkNotTransferred,
  checkReferences,
  conversationKey,
  findPrevious,
  foreignIds,
  mayUseUpstreamIds,
  type PreviousReply,
  refersToUpstream,
} from './conversation.ts'
import { isLongRequest } from './longRequests.ts'
import { buildPrompt, clientPrompt, type PromptInput } from './outgoingPrompt.ts'
import { type ReconciledHistory, recentMessagesNeeded, reconcileHistory } from './reconcileHistory.ts'
import { type RelayOptions, relayReply } from './relay.ts'
import {
  joinPrefill,
  type ReconciledTurn,
  resumeQuestion,
  rollBackIfRefused,
  storeQuestion,
  storeReply,
} from './storeMessages.ts'
import type { Turn, TurnRequest } from './turn.ts'
import { readHeader, readTurnHeaders, setupDigest } from './turn.ts'

/** Handles a request for a model reply. */
export async function handleTurn(context: RequestContext, protocol: Protocol): Promise<void> {
  const request = await parseTurnRequest(context, protocol)
  const { key } = request
  if (key === undefined) {
    if (!mayUseUpstreamIds(context) && refersToUpstream(request.parsed)) throw foreignIds()
    return relayWithoutMemory(request, 'none')
  }
  const { memories, sessionLocks, activity } = context.server
  const isLong = isLongRequest(context.request)
  const startedAt = performance.now()
  // Taken before anything else is awaited, so that turns are stored in the order in which they arrived.
  const release = await sessionLocks.acquire(formatKey(key))
  try {
    if (isLong) await yieldToEventLoop()
    if (request.parsed.conversationId !== undefined) await checkConversationExists(memories, key)
    const resolved = await resolveMemory(request, key)
    const fileFaults = await ingestFiles(request, key, resolved)
    await memories.using(resolved.memory, async () => {
      const ingested = await ingestTurn(request, key, resolved)
      const closeQuestion =
        ingested?.epoch === undefined ? undefined : activity.openQuestion(formatKey(key), ingested.question)
      release()
      if (isLong) await yieldToEventLoop()
      if (ingested === undefined) return relayWithoutMemory(request, 'auxiliary')
      const turn = startTurn(request, resolved, ingested, { fileFaults, startedAt })
      setTurnHeaders(turn)
      try {
        turn.upstreamResponse = await callUpstream(turn)
        await rollBackIfRefused(turn, turn.upstreamResponse)
        await relayReply(turn.upstreamResponse, context.client, relayOptions(turn))
      } finally {
        closeQuestion?.()
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

/**
 * Indexes files sent to a tenant. Files sent to a session reach the model, unless its profile refuses them. An
 * unreadable file still reaches the model.
 */
async function ingestFiles(
  { context, parsed, storeDisabled }: TurnRequest,
  key: Key,
  { memory }: ResolvedMemory,
): Promise<readonly Degradation[]> {
  const { indexFile } = context.server
  if (parsed.files.length === 0) return []
  if (key.id !== '') {
    if (memory.profile.uploads !== 'refuse') return []
    throw new HttpError(400, 'files_not_allowed', 'File uploads not allowed for ephemeral sessions', 'messages')
  }
  if (storeDisabled || indexFile === undefined) return []
  const faults: Degradation[] = []
  for (const { name, mediaType, bytes } of parsed.files) {
    if (bytes === undefined) continue
    try {
      await indexFile(key.scope, { name, type: mediaType, bytes })
    } catch (error) {
      if (!(error instanceof MemoryError)) throw error
      faults.push({ step: 'file', why: error.code })
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
async function ingestTurn(request: TurnRequest, key: Key, resolved: ResolvedMemory): Promise<Ingested | undefined> {
  const { context, headers, storeDisabled, protocol } = request
  const { memory, preamble } = resolved
  const isLong = isLongRequest(context.request)
  const head = await internalsOf(memory).sessions.readHead(key, recentMessagesNeeded(request.parsed.messages.length))
  if (!refersToUpstream(request.parsed) && isAuxiliaryRequest(request.parsed, head)) return undefined
  const metadata = findMetadata(head.derived)
  if (storeDisabled) checkNotTransferred(key, metadata)
  const person = resolvePerson(memory, key, headers.person ?? metadata?.person)
  const { parsed, prefill } = splitPrefill(request.parsed, memory.tokenizer)
  const contextWindow = contextWindowOf(parsed.model, context.server.contextWindows)
  const { revision } = head
  const input: PromptInput = { memory, key, protocol, request: parsed, preamble, person, contextWindow, revision }
  return context.trace.recordOperation('search_memory', key.scope, async (): Promise<Ingested> => {
    if (parsed.messages.length === 0)
      return { key, prefill, prompt: await clientPrompt(input, 'messages'), relation: 'exact', ...nothingStored }
    if (!mayUseUpstreamIds(context)) await checkReferences(memory, key, parsed.references)
    const previous = await findPrevious(memory, key, parsed.previousResponseId)
    const { change, stored } = await reconcileAndStore(request, key, { memory, parsed, previous }, head)
    const isHeldUpstream = previous?.isStoredUpstream === true || parsed.references.length > 0
    if (isLong) await yieldToEventLoop()
    const prompt = await buildPrompt(input, change, stored, isHeldUpstream)
    const { relation, history } = change
    const resends = context.server.activity.resendsHistory(formatKey(key), headers.client)
    return { key, prefill, prompt, ...nothingStored, ...stored, relation, history, resends }
  })
}

/** The ingested part of a turn. */
type Ingested = Pick<
  Turn,
  | 'key'
  | 'prefill'
  | 'prompt'
  | 'relation'
  | 'history'
  | 'resends'
  | 'branch'
  | 'cutFrom'
  | 'epoch'
  | 'question'
  | 'appended'
>
const nothingStored = {
  history: 'full',
  resends: undefined,
  branch: undefined,
  cutFrom: undefined,
  epoch: undefined,
  question: 0,
  appended: [],
} as const

/** Turns that lose to other servers this often in a row fail; each loss means that another turn was stored. */
const maxStoreAttempts = 200

type TurnToStore = {
  readonly memory: Memory
  readonly parsed: ParsedRequest
  readonly previous: PreviousReply | undefined
}

/**
 * Decides which messages are new and stores them, unless the session has changed since `head` was read: another server
 * may have stored a turn, or ended the session. Then both steps are repeated with the new state.
 */
async function reconcileAndStore(
  request: TurnRequest,
  key: Key,
  turn: TurnToStore,
  head: SessionHead,
): Promise<ReconciledTurn> {
  const { memory, parsed } = turn
  let cutFrom: number | undefined
  for (let current = head, attempts = 1; ; attempts++) {
    const change = await reconcileTurn(request, key, turn, current)
    if (isLongRequest(request.context.request)) await yieldToEventLoop()
    if (request.storeDisabled) return { change, stored: undefined }
    cutFrom ??= change.cutFrom
    try {
      const stored = await storeQuestion(request, key, { memory, parsed, change }, current)
      const isRepeated = stored.appended.length > 0 && stored.question <= current.lastSequence
      return isRepeated
        ? await resumeQuestion(request, key, { memory, parsed, change }, stored)
        : { change, stored: { ...stored, cutFrom } }
    } catch (error) {
      if (!hasErrorCode(error, 'conflict', 'erased') || attempts === maxStoreAttempts) throw error
    }
    current = await internalsOf(memory).sessions.readHead(key, recentMessagesNeeded(parsed.messages.length))
  }
}

/** Decides which messages are new, and remembers whether the client resends its conversation. */
async function reconcileTurn(
  { context, headers, isSessionFromBody }: TurnRequest,
  key: Key,
  { memory, parsed, previous }: TurnToStore,
  head: SessionHead,
): Promise<ReconciledHistory> {
  const { activity, history } = context.server
  const session = formatKey(key)
  let resends = activity.resendsHistory(session, headers.client)
  const change = await reconcileHistory(
    {
      memory,
      key,
      messages: parsed.messages,
      continuesAfter: previous?.message,
      // With a key, a retry is recognised for certain when it is stored.
      isRetry: headers.isRetry && headers.idempotencyKey === undefined,
      isSingleConversation: !isSessionFromBody,
      forcedHistory: headers.history ?? history,
      refersToStored: parsed.references.length > 0,
      digestSetup: () => setupDigest(parsed),
      hasResentBefore: async () => {
        resends ??= await hasResentHistory(internalsOf(memory).sessions, key, headers.client)
        return resends
      },
    },
    head,
  )
  if (change.resends) resends = true
  if (resends !== undefined) activity.rememberHabit(session, headers.client, resends)
  return change
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

function startTurn(
  request: TurnRequest,
  memory: ResolvedMemory,
  ingested: Ingested,
  { fileFaults, startedAt }: { readonly fileFaults: readonly Degradation[]; readonly startedAt: number },
): Turn {
  const { degraded, ledger, isShortened } = ingested.prompt
  return {
    ...ingested,
    request,
    resolved: memory,
    receiptId: newReceiptId(ingested.key),
    degraded: [
      ...(degraded === undefined ? [] : [{ step: degraded, why: '' }]),
      ...(isShortened ? [{ step: 'conversation', why: 'shortened' }] : []),
      ...(ledger?.degraded ?? []),
      ...fileFaults,
    ].map(describeDegradation),
    memoryMs: performance.now() - startedAt,
    firstByteMs: undefined,
    upstreamResponse: undefined,
    measurement: undefined,
    reply: undefined,
    isReplyStored: false,
  }
}

function setTurnHeaders(turn: Turn): void {
  const { request, resolved, prompt, history, epoch, receiptId, degraded } = turn
  const { client } = request.context
  client.setHeader('x-threadkeep-memory', request.storeDisabled ? 'read-only' : 'on')
  client.setHeader('x-threadkeep-tokens', `${prompt.tokens}/${prompt.limit}`)
  client.setHeader('x-threadkeep-history', history)
  client.setHeader('x-threadkeep-profile', resolved.profileHeader)
  if (epoch !== undefined) client.setHeader('x-threadkeep-receipt', receiptId)
  if (degraded.length > 0) setDegradedHeader(turn)
}

const setDegradedHeader = ({ request, degraded }: Turn): void =>
  request.context.client.setHeader('x-threadkeep-degraded', degraded.map(({ code }) => code).join(', '))

/** Sends the prompt, and measures the turn while the upstream works. */
async function callUpstream(turn: Turn): Promise<UpstreamResponse> {
  const { request, key, prompt } = turn
  const { context, parsed, storeDisabled } = request
  const { server, credential } = context
  const sending = server.backend.send(upstreamCall(request, prompt.body, prompt.tokens))
  const measuring = server.meter.measure(turn).catch((error) => server.onFault(context.id, describeFault(error)))
  const response = await sending
  const measurement = await measuring
  if (measurement) turn.measurement = server.meter.complete(turn, measurement, response)
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
  const { request, key, resolved, epoch, question, branch, prompt, prefill } = turn
  const { server, trace, id } = request.context
  turn.reply = reply
  if (epoch === undefined) return
  const { sessions, clock } = internalsOf(resolved.memory)
  const message = prefill === undefined ? reply.message : joinPrefill(prefill, reply.message)
  const session = formatKey(key)
  try {
    // A response that runs in the background has no reply yet; the receipt tells where to find it.
    if (reply.isFinished === false)
      return await storeReceipt(sessions, key, buildReceipt(server.prices, turn, { sequence: null, at: clock() }))
    const stored = await trace.recordOperation('create_memory', key.scope, () =>
      server.sessionLocks.run(session, () => {
        const reserved = server.activity.reservedReplies(session, question)
        const { ledger } = prompt
        return storeReply(resolved.memory, key, { reply: message, question, epoch, ledger, branch, reserved })
      }),
    )
    if (stored === undefined) return
    turn.isReplyStored = true
    const receipt = buildReceipt(server.prices, turn, stored.message)
    await storeReceipt(sessions, stored.key, receipt)
  } catch (error) {
    server.onFault(id, describeFault(error))
    if (!turn.isReplyStored && reply.isFinished !== false) reportLostReply(turn)
  }
}

/** Names a reply that could not be stored in the request log, and in the headers if they are not sent yet. */
function reportLostReply(turn: Turn): void {
  turn.degraded = [...turn.degraded, describeDegradation({ step: 'reply', why: 'not stored' })]
  const { client } = turn.request.context
  if (!client.headersSent) setDegradedHeader(turn)
}

/** Adds the receipt's id to a JSON body, for clients that cannot read headers. */
const addReceiptId = (text: string, receipt: string): string =>
  JSON.stringify({ ...(JSON.parse(text) as object), threadkeep: { receipt } })

/** Relays a request that memory takes no part in. */
async function relayWithoutMemory(request: TurnRequest, reason: 'none' | 'auxiliary'): Promise<void> {
  const { context, protocol, parsed } = request
  const { client, server } = context
  client.setHeader('x-threadkeep-memory', reason)
  const response = await server.backend.send(upstreamCall(request, parsed.body, 0))
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
