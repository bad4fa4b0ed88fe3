import type { SearchTarget } from '../domain/ports.ts'

/** Name of a search target. The scope's own memory has an empty id and differs from the scope with all its sessions. */
export const indexName = ({ scope, id }: SearchTarget): string => (id === undefined ? scope : `${scope}:${id}`)
