/** Where the sessions of a workspace are listed. */
export const sessionsUri = (workspace: string): string => `threadkeep://sessions/${workspace}`

/** Where a session is told of, and what there is of it. */
export const sessionUri = (workspace: string, id: string): string => `${sessionsUri(workspace)}/${id}`
export const transcriptUri = (workspace: string, id: string): string => `${sessionUri(workspace, id)}/transcript`

/** The whole graph of the nine tools, at the address the reference server gives it. */
export const graphUri = 'memory://knowledge-graph'

/**
 * Whether something can stand at an address. Whether anything does may be known only later: sessions come and go.
 *
 * @example
 * isAddress('threadkeep://nope') // false
 */
export const isAddress = (uri: string): boolean =>
  uri === graphUri ||
  /^threadkeep:\/\/sessions\/[\w+\-.@]{1,64}(?:\/[\w+\-.@]{1,128}(?:\/(?:transcript|receipts))?)?$/.test(uri)
