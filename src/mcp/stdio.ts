import type { McpServerFactory } from '@modelcontextprotocol/server'
import { serveStdio } from '@modelcontextprotocol/server/stdio'
import type { Change } from './changes.ts'
import type { Host } from './host.ts'
import { type Pipes, StdioTransport } from './pipes.ts'
import { mayUse, type Visitor } from './scope.ts'
import { mcpServer } from './server.ts'
import { pushing } from './subscriptions.ts'

/** A connection over pipes. */
export type Connection = {
  /** Resolves when it is over and nothing is under way any more. */
  readonly ended: Promise<void>
  /** Lets what was asked for be answered, then ends it. */
  finish(): void
}

/**
 * Serves one client over pipes, in whichever version of the protocol it begins to speak.
 *
 * @example
 * const { ended } = overStdio(host, visitorOf({ workspace: 'my-project' }), { input: process.stdin, output: process.stdout })
 * await ended
 */
export function overStdio(host: Host, visitor: Visitor, pipes: Pipes): Connection {
  const transport = new StdioTransport(pipes)
  let push: (change: Change) => void = () => undefined
  const leave = host.changes.listen((change) => mayUse(visitor, change.workspace) && push(change))
  const factory: McpServerFactory = ({ era }) => {
    const server = mcpServer(host.desk, { ...host, visitor, subscribes: true })
    push = pushing(server, era)
    return server
  }
  const handle = serveStdio(factory, { transport, onerror: (error) => host.onFault(error) })
  const ended = transport.ended.then(async () => {
    leave()
    await handle.close()
    await host.underway.settled()
  })
  return { ended, finish: () => transport.finish() }
}
