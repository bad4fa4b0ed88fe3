import { formatKey, isInner, type Key, parseKey } from '../domain/key.ts'
import type { Store } from '../domain/ports.ts'

/** So many keys are read at once. */
const page = 100

/** The session that a branch or receipts belong to; undefined for anything else, such as the files of a tenant. */
export function ownerOf({ scope, id }: Key): Key | undefined {
  const owner = /^([^:]*):(?:\d+|receipts)$/.exec(id)?.[1]
  return owner === undefined ? undefined : parseKey(owner === '' ? scope : `${scope}:${owner}`)
}

/** What the engine keeps beside one session, or beside a tenant's own conversation: its branches and its receipts. */
export async function innerOf(store: Store, key: Key): Promise<readonly Key[]> {
  if (isInner(key)) return []
  const found: Key[] = []
  const begin = `${key.id}:`
  for (let after = `${key.scope}:${begin}`; ; ) {
    const listed = await store.list({ scope: key.scope, after, limit: page })
    const near = listed.map((one) => one.key).filter(({ id }) => id.startsWith(begin))
    found.push(...near.filter((one) => ownerOf(one)?.id === key.id))
    const last = near.at(-1)
    if (last === undefined || near.length < page) return found
    after = formatKey(last)
  }
}

/** Where a look through a store for what is left of sessions goes on, once some of them were looked at; undefined at the end. */
export type Orphans = { readonly found: readonly Key[]; readonly next: string | undefined }

/** Of the next so many keys after one, those kept beside a session that is gone: whoever ended it did not come to the end. */
export async function orphansAfter(store: Store, after: string, limit: number): Promise<Orphans> {
  const listed = (await store.list({ after, limit })).map((one) => one.key)
  const there = new Set(listed.map(formatKey))
  const found: Key[] = []
  for (const key of listed) {
    const owner = ownerOf(key)
    if (owner === undefined || there.has(formatKey(owner))) continue
    if ((await store.head(owner, 0)).revision === 0) found.push(key)
  }
  const last = listed.at(-1)
  return { found, next: listed.length < limit || last === undefined ? undefined : formatKey(last) }
}
