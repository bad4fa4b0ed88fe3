import type { McpServerFactory } from '@modelcontextprotocol/server'
import { serveStdio } from '@modelcontextprotocol/server/stdio'
import { mayUse, type Visitor } from '../principal.ts'
import { createChangeNotifier, type ResourceChange } from '../resources/changes.ts'
import { createMcpServer } from '../server.ts'
import type { Host } from '../services.ts'
import { type Pipes, StdioTransport } from './stdioTransport.ts'

export type Connection = {
  /** Resolves when the connection is closed and no call is in flight. */
  readonly ended: Promise<void>
  /** Stops reading, answers pending requests, then closes. */
  finish(): void
}

/**
 * Serves one client over two pipes, in the protocol version the client starts with.
 *
 * @example
 * const { ended } = serveStdioClient(services, createPrincipal({ workspace: 'my-project' }), { input: process.stdin, output: process.stdout })
 * await ended
 */
export function overStdio(host: Host, principal: Visitor, pipes: Pipes): Connection {
  const transport = new StdioTransport(pipes)
  let notify: (change: ResourceChange) => void = () => undefined
  const unsubscribe = host.changes.subscribe((change) => mayUse(principal, change.workspace) && notify(change))
  const factory: McpServerFactory = ({ era }) => {
    const server = createMcpServer(host.desk, { ...host, principal, supportsSubscriptions: true })
    notify = createChangeNotifier(server, era)
    return server
  }
  const handle = serveStdio(factory, { transport, onerror: (error) => host.onFault(error) })
  const ended = transport.ended.then(async () => {
    unsubscribe()
    await handle.close()
    await host.inFlightCalls.settled()
  })
  return { ended, finish: () => transport.finish() }
}
