/** Where the sessions of a workspace are listed. */
export const sessionsUri = (workspace: string): string => `threadkeep://sessions/${workspace}`

/** Where a session is told of, and what there is of it. */
export const sessionUri = (workspace: string, id: string): string => `${sessionsUri(workspace)}/${id}`
export const transcriptUri = (workspace: string, id: string): string => `${sessionUri(workspace, id)}/transcript`

/** The whole graph of the nine tools, at the address the reference server gives it. */
export const graphUri = 'memory://knowledge-graph'
