import { type McpServer, ResourceNotFoundError } from '@modelcontextprotocol/server'
import type { Change } from './changes.ts'
import { isAddress, sessionsUri } from './uri.ts'

/**
 * Tells the client of a connection what has changed. In the older protocol it says of which addresses it wants to hear;
 * in the newer one whoever serves the connection sees to that.
 */
export function pushing(server: McpServer, era: 'legacy' | 'modern'): (change: Change) => void {
  const wanted = new Set<string>()
  if (era === 'legacy') {
    server.server.setRequestHandler('resources/subscribe', ({ params }) => {
      if (!isAddress(params.uri)) throw new ResourceNotFoundError(params.uri)
      if (wanted.size < mostWanted) wanted.add(params.uri)
      return {}
    })
    server.server.setRequestHandler('resources/unsubscribe', ({ params }) => {
      wanted.delete(params.uri)
      return {}
    })
  }
  return ({ workspace, uri }) => {
    if (!server.isConnected()) return
    if (era === 'modern' || wanted.has(uri)) void server.server.sendResourceUpdated({ uri }).catch(() => undefined)
    if (uri === sessionsUri(workspace)) server.sendResourceListChanged()
  }
}

/** A client that subscribes to more has lost count. */
const mostWanted = 10_000
