import { formatKey, isInternalKey, type Key, parseKey } from '../domain/key.ts'
import type { Store } from '../domain/ports.ts'

const pageSize = 100

/** Returns the session that a branch belongs to; undefined for other keys, such as the files of a tenant. */
export function ownerOf({ scope, id }: Key): Key | undefined {
  const owner = /^([^:]*):\d+$/.exec(id)?.[1]
  return owner === undefined ? undefined : parseKey(owner === '' ? scope : `${scope}:${owner}`)
}

/** Lists the branches of a session or of a tenant's own conversation. */
export async function auxiliaryKeysOf(store: Store, key: Key): Promise<readonly Key[]> {
  if (isInternalKey(key)) return []
  const found: Key[] = []
  const prefix = `${key.id}:`
  for (let after = `${key.scope}:${prefix}`; ; ) {
    const listed = await store.list({ scope: key.scope, after, limit: pageSize })
    const matching = listed.map((session) => session.key).filter(({ id }) => id.startsWith(prefix))
    found.push(...matching.filter((candidate) => ownerOf(candidate)?.id === key.id))
    const last = matching.at(-1)
    if (last === undefined || matching.length < pageSize) return found
    after = formatKey(last)
  }
}

/** Orphaned keys of one scan page, and the position to continue from; undefined at the end. */
type OrphanPage = { readonly found: readonly Key[]; readonly next: string | undefined }

/** Scans the next `limit` keys for auxiliary data of erased sessions, left behind by an interrupted erasure. */
export async function findOrphans(store: Store, after: string, limit: number): Promise<OrphanPage> {
  const listed = (await store.list({ after, limit })).map((session) => session.key)
  const existing = new Set(listed.map(formatKey))
  const found: Key[] = []
  for (const key of listed) {
    const owner = ownerOf(key)
    if (owner === undefined || existing.has(formatKey(owner))) continue
    if ((await store.readHead(owner, 0)).revision === 0) found.push(key)
  }
  const last = listed.at(-1)
  return { found, next: listed.length < limit || last === undefined ? undefined : formatKey(last) }
}
