import { readFileSync } from 'node:fs'
import { McpServer, type ServerContext } from '@modelcontextprotocol/server'
import type { Key } from '../domain/key.ts'
import { called } from './call.ts'
import { instructions } from './instructions.ts'
import { addPrompts } from './prompts.ts'
import { addResources } from './resources.ts'
import type { Visitor } from './scope.ts'
import type { Desk } from './tool.ts'
import { type Offered, tools } from './tools.ts'
import type { Underway } from './underway.ts'

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string
}

/** What a server needs beside the desk. */
export type McpOptions = {
  readonly visitor: Visitor
  readonly underway: Underway
  /** The receipts of a session, the newest first: ids and numbers. */
  readonly receipts: (key: Key) => Promise<readonly unknown[]>
  /** Hears of faults that no client is told of. */
  readonly onFault: (error: unknown) => void
  /** What is offered; everything when left out. */
  readonly tools?: readonly Offered[]
  /** Whether the client can be told later that something has changed. */
  readonly subscribes: boolean
}

/** A server for one visitor, and everything it answers with. */
export type Mcp = McpOptions & { readonly desk: Desk; readonly server: McpServer }

/**
 * Makes a server for one visitor: for a whole connection, or for a single request of the stateless protocol.
 *
 * @example
 * serveStdio(() => mcpServer(desk, { visitor: visitorOf({ workspace: 'my-project' }), underway, receipts, onFault, subscribes: true }))
 */
export function mcpServer(desk: Desk, options: McpOptions): McpServer {
  const self = {
    name: 'threadkeep',
    title: 'Threadkeep',
    version,
    description: 'Keeps conversations and a knowledge graph; a chat goes on where another ended.',
  }
  const server = new McpServer(self, {
    instructions,
    capabilities: {
      tools: { listChanged: false },
      prompts: { listChanged: false },
      resources: { subscribe: options.subscribes, listChanged: options.subscribes },
      completions: {},
      logging: {},
    },
  })
  const mcp: Mcp = { ...options, desk, server }
  for (const tool of options.tools ?? tools) {
    const { name, title, description, annotations, shown } = tool
    const about = { title, description, annotations, inputSchema: shown.input, outputSchema: shown.output }
    server.registerTool(name, about, (given, context: ServerContext) =>
      called(mcp, tool, given as Record<string, unknown>, context),
    )
  }
  addResources(mcp)
  addPrompts(mcp)
  return server
}
