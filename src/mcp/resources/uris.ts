export const sessionsUri = (workspace: string): string => `threadkeep://sessions/${workspace}`
export const sessionUri = (workspace: string, id: string): string => `${sessionsUri(workspace)}/${id}`
export const transcriptUri = (workspace: string, id: string): string => `${sessionUri(workspace, id)}/transcript`

/** URI of the knowledge graph in the reference memory server. */
export const graphUri = 'memory://knowledge-graph'

/**
 * Checks the form of a resource URI, not the existence of the resource: clients may subscribe to a session before it exists.
 *
 * @example
 * isResourceUri('threadkeep://nope') // false
 */
export const isResourceUri = (uri: string): boolean =>
  uri === graphUri ||
  /^threadkeep:\/\/sessions\/[\w+\-.@]{1,64}(?:\/[\w+\-.@]{1,128}(?:\/(?:transcript|receipts))?)?$/.test(uri)
