import type { IncomingMessage, ServerResponse } from 'node:http'
import { type NodeIncomingMessageLike, toNodeHandler } from '@modelcontextprotocol/node'
import {
  createMcpHandler,
  type McpHttpHandler,
  ProtocolError,
  type ServerEvent,
  type ServerEventBus,
} from '@modelcontextprotocol/server'
import type { Changes } from './changes.ts'
import type { Host } from './host.ts'
import { mayUse, type Visitor } from './scope.ts'
import { mcpServer } from './server.ts'
import { sessionsUri } from './uri.ts'

/** Answers over HTTP: the stateless protocol, and older clients one request at a time. */
export class McpEndpoint {
  private readonly host: Host
  private readonly handlers = new Map<string, McpHttpHandler>()
  private readonly leaving = new AbortController()
  private readonly closeMemory: () => Promise<void>

  constructor(host: Host, closeMemory: () => Promise<void>) {
    this.host = host
    this.closeMemory = closeMemory
  }

  /** Answers a request whose body was read, and whose sender may use what `visitor` says for as long as `isWelcome`. */
  async answer(
    visitor: Visitor,
    request: IncomingMessage,
    response: ServerResponse,
    body: Readonly<Record<string, unknown>>,
    isWelcome: () => boolean = () => true,
  ): Promise<void> {
    const handler = this.handlerFor(visitor)
    const end = body.method === 'subscriptions/listen' ? this.endOfStream(response, isWelcome) : undefined
    const fetch: McpHttpHandler['fetch'] = (asked, options) =>
      handler.fetch(
        end === undefined ? asked : new Request(asked, { signal: AbortSignal.any([asked.signal, end]) }),
        options,
      )
    const onerror = (error: Error): void => this.host.onFault(error)
    await toNodeHandler({ fetch }, { onerror })(request as NodeIncomingMessageLike, response, body)
  }

  /** A stream of changes would keep a server that stops waiting for ever, and tell somebody whose key was revoked what happens next. */
  private endOfStream(response: ServerResponse, isWelcome: () => boolean): AbortSignal {
    const refused = new AbortController()
    // Heard before the stream hears it: what it would have told is not told any more.
    const leave = this.host.changes.listen(() => void (isWelcome() || refused.abort()))
    response.once('close', leave)
    return AbortSignal.any([this.leaving.signal, refused.signal])
  }

  /** Ends the streams of changes, which have no end of their own. */
  drain(): void {
    this.leaving.abort()
  }

  async close(): Promise<void> {
    this.drain()
    for (const handler of this.handlers.values()) await handler.close()
    await this.host.close()
    await this.closeMemory()
  }

  /** Each visitor has a handler of their own, so that nobody hears of changes in workspaces that are not theirs. */
  private handlerFor(visitor: Visitor): McpHttpHandler {
    const name = JSON.stringify(visitor)
    const known = this.handlers.get(name)
    if (known !== undefined) return known
    const { desk, ...host } = this.host
    const factory = ({ era }: { readonly era: 'legacy' | 'modern' }) =>
      mcpServer(desk, { ...host, visitor, subscribes: era === 'modern' })
    const onerror = (error: Error): void => void (isRejection(error) || this.host.onFault(error))
    const handler = createMcpHandler(factory, { bus: busFor(visitor, this.host.changes), onerror })
    this.handlers.set(name, handler)
    return handler
  }
}

/** What a client did wrong it is told itself, and nobody else needs to hear of it. */
const isRejection = (error: Error): boolean =>
  error instanceof ProtocolError ||
  /^(?:Rejected|Unsupported|Bad Request|Parse error|Not Acceptable)/.test(error.message)

/** The changes that a visitor may hear of. */
function busFor(visitor: Visitor, changes: Changes): ServerEventBus {
  return {
    publish: () => undefined,
    subscribe: (listener: (event: ServerEvent) => void) =>
      changes.listen(({ workspace, uri }) => {
        if (!mayUse(visitor, workspace)) return
        listener({ kind: 'resource_updated', uri })
        if (uri === sessionsUri(workspace)) listener({ kind: 'resources_list_changed' })
      }),
  }
}
