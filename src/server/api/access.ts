import { findMetadata, type SessionMetadata } from '../../domain/entry.ts'
import { MemoryError } from '../../domain/error.ts'
import { formatKey, type Key, parseKey, parseScope, type Scope } from '../../domain/key.ts'
import type { Store } from '../../domain/ports.ts'
import { isExpired, type SessionHead } from '../../domain/session.ts'
import type { SessionMetadataUpdate } from '../../lifecycle/metadata.ts'
import { internalsOf, type Memory } from '../../memory.ts'
import { HttpError, notFound } from '../http/httpError.ts'
import { type Handler, type RequestContext, requireOwnKey } from '../http/requestContext.ts'
import type { ServerContext } from '../serverContext.ts'
import { checkQuery } from './input.ts'

/** A live session and its memory. */
export type SessionAccess = {
  readonly key: Key
  readonly memory: Memory
  readonly head: SessionHead
  readonly metadata: SessionMetadata | undefined
}

/**
 * Creates a handler for the session in the path. Answers 404 when it does not exist or belongs to another tenant.
 *
 * @param parameters allowed query parameters
 *
 * @example
 * 'GET /api/sessions/{key}': sessionHandler([], async ({ client }, { head }) => send(client.response, 200, sessionView(head)))
 */
export function sessionHandler(
  parameters: readonly string[],
  handle: (context: RequestContext, session: SessionAccess) => Promise<void>,
): Handler {
  return async (context) => {
    const key = requireOwnKey(context, parseKey(context.params.key ?? ''))
    checkQuery(context.query, parameters)
    await withSession(context.server, key, (session) => handle(context, session))
  }
}

/** Creates a handler for the tenant in the path. Answers 404 for another tenant. */
export function scopeHandler(
  parameters: readonly string[],
  handle: (context: RequestContext, scope: Scope) => Promise<void>,
): Handler {
  return async (context) => {
    const scope = parseOwnScope(context, context.params.scope ?? '')
    checkQuery(context.query, parameters)
    const { memories } = context.server
    await memories.using(memories.scopes, () => handle(context, scope))
  }
}

/** Parses a scope that the caller may use; throws for the key of a session. */
export function parseOwnScope(context: RequestContext, text: string): Scope {
  requireOwnKey(context, parseKey(text))
  return parseScope(text)
}

/** Runs `work` with a session. Throws the same 404 for a missing, an expired and a foreign session. */
export async function withSession<T>(
  server: ServerContext,
  key: Key,
  work: (session: SessionAccess) => Promise<T>,
): Promise<T> {
  if (!(await sessionExists(server, key))) throw notFound()
  const { memory } = await server.memories.resolve(key)
  return server.memories.using(memory, async () => {
    const head = await internalsOf(memory).sessions.readHead(key, 1)
    if (head.revision === 0) throw notFound()
    const metadata = findMetadata(head.derived)
    if (metadata?.movedTo === undefined) return work({ key, memory, head, metadata })
    const to = `${key.scope}:${metadata.movedTo}`
    throw new MemoryError('moved', `Session ${formatKey(key)} was transferred to ${to}. Use that key.`, { to })
  })
}

/** True when a live session exists in any store except `except`. */
export async function sessionExists(server: ServerContext, key: Key, except?: Store): Promise<boolean> {
  for (const [store, memory] of server.memories.bySessionStore()) {
    if (store === except) continue
    const head = await store.readHead(key, 0)
    if (head.revision > 0 && !isExpired(head, internalsOf(memory).clock())) return true
  }
  return false
}

/** Begins an empty session. Throws `conflict` when it exists. */
export async function beginSession(
  server: ServerContext,
  key: Key,
  { template, ...description }: SessionMetadataUpdate,
): Promise<void> {
  if (!server.memories.hasSessions) {
    const message = 'Session memory is off on this server. Use a key without a session.'
    throw new HttpError(400, 'no_sessions', message, 'key')
  }
  await server.sessionLocks.run(formatKey(key), async () => {
    if (await sessionExists(server, key)) throw sessionConflict(key, 'key')
    // The memory of an earlier session with this key must not be reused.
    server.memories.dropCached(key.scope)
    const { memory } = await server.memories.resolve(key, template)
    await server.memories.using(memory, () => memory.setMetadata(key, description))
  })
}

export const sessionConflict = (key: Key, param: string): MemoryError =>
  new MemoryError('conflict', `Session ${formatKey(key)} already exists. Choose another key.`, { param })

/** Ends a session: delivers its end event and deletes it. */
export async function endSession(server: ServerContext, { key, memory }: SessionAccess): Promise<void> {
  if (!(await memory.end(key))) throw notFound()
  dropSessionState(server, key)
}

/** Drops the server's own state of a session that was ended or transferred. */
export function dropSessionState({ usageStats, meter, memories, upkeepModels }: ServerContext, key: Key): void {
  usageStats.forget({ key: formatKey(key) })
  meter.forget({ key: formatKey(key) })
  upkeepModels?.forget(key.scope, key.id)
  memories.dropCached(key.scope)
}
