import { type McpServer, ResourceNotFoundError } from '@modelcontextprotocol/server'
import type { Scope } from '../../domain/key.ts'

export type ResourceChange = { readonly workspace: Scope; readonly uri: string }

/** Publishes resource changes to the connections of this process. */
export class ResourceChanges {
  private readonly listeners = new Set<(change: ResourceChange) => void>()

  publish(workspace: Scope, uri: string): void {
    for (const listener of this.listeners) listener({ workspace, uri })
  }

  /** Returns a function that unsubscribes. */
  subscribe(listener: (change: ResourceChange) => void): () => void {
    this.listeners.add(listener)
    return () => void this.listeners.delete(listener)
  }
}

/** Limits the memory a client can use with subscriptions. */
const maxSubscriptions = 10_000

/**
 * Returns a function that notifies the client of a connection of a change. With the legacy protocol only subscribed
 * URIs are notified; with the modern one the SDK filters.
 */
export function createChangeNotifier(server: McpServer, era: 'legacy' | 'modern'): (change: ResourceChange) => void {
  const subscriptions = new Set<string>()
  if (era === 'legacy') {
    server.server.setRequestHandler('resources/subscribe', ({ params }) => {
      if (!isResourceUri(params.uri)) throw new ResourceNotFoundError(params.uri)
      if (subscriptions.size < maxSubscriptions) subscriptions.add(params.uri)
      return {}
    })
    server.server.setRequestHandler('resources/unsubscribe', ({ params }) => {
      subscriptions.delete(params.uri)
      return {}
    })
  }
  return ({ workspace, uri }) => {
    if (!server.isConnected()) return
    if (era === 'modern' || subscriptions.has(uri))
      void server.server.sendResourceUpdated({ uri }).catch(() => undefined)
    if (uri === sessionsUri(workspace)) server.sendResourceListChanged()
  }
}

export const sessionsUri = (workspace: string): string => `threadkeep://sessions/${workspace}`
export const sessionUri = (workspace: string, id: string): string => `${sessionsUri(workspace)}/${id}`
export const transcriptUri = (workspace: string, id: string): string => `${sessionUri(workspace, id)}/transcript`

/** URI of the knowledge graph in the reference memory server. */
export const graphUri = 'memory://knowledge-graph'

/**
 * Checks the form of a resource URI, not the existence of the resource: clients may subscribe to a session before it
 * exists.
 *
 * @example
 * isResourceUri('threadkeep://nope') // false
 */
const isResourceUri = (uri: string): boolean =>
  uri === graphUri ||
  /^threadkeep:\/\/sessions\/[\w+\-.@]{1,64}(?:\/[\w+\-.@]{1,128}(?:\/(?:transcript|receipts))?)?$/.test(uri)
