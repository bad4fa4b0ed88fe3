import type { IncomingMessage, ServerResponse } from 'node:http'
import { type NodeIncomingMessageLike, toNodeHandler } from '@modelcontextprotocol/node'
import {
  createMcpHandler,
  type McpHttpHandler,
  ProtocolError,
  type ServerEvent,
  type ServerEventBus,
} from '@modelcontextprotocol/server'
import { canUseWorkspace, type Principal } from '../principal.ts'
import { type ResourceChanges, sessionsUri } from '../resources/changes.ts'
import { createMcpServer } from '../server.ts'
import type { McpServices } from '../services.ts'

/** Streamable HTTP endpoint: the stateless protocol, and older clients one request at a time. */
export class McpHttpServer {
  private readonly host: McpServices
  private readonly handlers = new Map<string, McpHttpHandler>()
  private readonly draining = new AbortController()
  private readonly closeMemory: () => Promise<void>

  constructor(host: McpServices, closeMemory: () => Promise<void>) {
    this.host = host
    this.closeMemory = closeMemory
  }

  /**
   * Handles a request with a parsed body. `isAuthorized` is checked again before each event of a subscription stream.
   */
  async handle(
    principal: Principal,
    request: IncomingMessage,
    response: ServerResponse,
    body: Readonly<Record<string, unknown>>,
    isAuthorized: () => boolean = () => true,
  ): Promise<void> {
    const handler = this.handlerFor(principal)
    const streamEnd =
      body.method === 'subscriptions/listen' ? this.createStreamEndSignal(response, isAuthorized) : undefined
    const fetch: McpHttpHandler['fetch'] = (incoming, options) =>
      handler.fetch(
        streamEnd === undefined
          ? incoming
          : new Request(incoming, { signal: AbortSignal.any([incoming.signal, streamEnd]) }),
        { ...options, parsedBody: body },
      )
    const onerror = (error: Error): void => this.host.onError(error)
    // The adapter serializes the body that it is given, and needs only the id of the request.
    const { jsonrpc, id, method } = body
    await toNodeHandler({ fetch }, { onerror })(request as NodeIncomingMessageLike, response, { jsonrpc, id, method })
  }

  /** Ends a subscription stream on shutdown, and when the key of its client is revoked. */
  private createStreamEndSignal(response: ServerResponse, isAuthorized: () => boolean): AbortSignal {
    const revoked = new AbortController()
    // Subscribed before the stream itself, so that the stream ends before it gets the change.
    const unsubscribe = this.host.changes.subscribe(() => void (isAuthorized() || revoked.abort()))
    response.once('close', unsubscribe)
    return AbortSignal.any([this.draining.signal, revoked.signal])
  }

  /** Ends subscription streams, which would otherwise keep the server from stopping. */
  drain(): void {
    this.draining.abort()
  }

  async close(): Promise<void> {
    this.drain()
    for (const handler of this.handlers.values()) await handler.close()
    await this.host.close()
    await this.closeMemory()
  }

  /** Each principal has its own handler, so that change events of other workspaces never reach it. */
  private handlerFor(principal: Principal): McpHttpHandler {
    const cacheKey = JSON.stringify(principal)
    const existing = this.handlers.get(cacheKey)
    if (existing !== undefined) return existing
    const { toolContext, ...host } = this.host
    const factory = ({ era }: { readonly era: 'legacy' | 'modern' }) =>
      createMcpServer(toolContext, { ...host, principal, supportsSubscriptions: era === 'modern' })
    const onerror = (error: Error): void => void (isClientError(error) || this.host.onError(error))
    const handler = createMcpHandler(factory, { bus: createEventBus(principal, this.host.changes), onerror })
    this.handlers.set(cacheKey, handler)
    return handler
  }
}

/** Client errors are reported to the client only, not to the operator. */
const isClientError = (error: Error): boolean =>
  error instanceof ProtocolError ||
  /^(?:Rejected|Unsupported|Bad Request|Parse error|Not Acceptable)/.test(error.message)

/** Event bus with the changes of the workspaces a principal may use. */
function createEventBus(principal: Principal, changes: ResourceChanges): ServerEventBus {
  return {
    publish: () => undefined,
    subscribe: (listener: (event: ServerEvent) => void) =>
      changes.subscribe(({ workspace, uri }) => {
        if (!canUseWorkspace(principal, workspace)) return
        listener({ kind: 'resource_updated', uri })
        if (uri === sessionsUri(workspace)) listener({ kind: 'resources_list_changed' })
      }),
  }
}
