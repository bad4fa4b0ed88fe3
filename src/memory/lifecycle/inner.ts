import { formatKey, isInner, type Key } from '../../domain/key.ts'
import type { Store } from '../../domain/ports.ts'

/** What the engine keeps beside one session: its branches and its receipts. */
export async function innerOf(store: Store, key: Key): Promise<readonly Key[]> {
  if (key.id === '' || isInner(key)) return []
  const found: Key[] = []
  const page = 100
  for (let after = `${formatKey(key)}:`; ; after = formatKey(found.at(-1) as Key)) {
    const listed = await store.list({ scope: key.scope, after, limit: page })
    const own = listed.filter((one) => one.key.id.startsWith(`${key.id}:`)).map((one) => one.key)
    found.push(...own)
    if (own.length < page) return found
  }
}
