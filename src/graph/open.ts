import { MemoryError, unknownStore } from '../domain/error.ts'
import type { Clock, Store } from '../domain/ports.ts'
import { isHeard } from '../stores/capabilities.ts'
import { wipe } from '../stores/encrypted/keyring.ts'
import { loadKeyring } from '../stores/encrypted/loadKeyring.ts'
import { fileOf } from '../stores/open.ts'
import { GraphFile } from './file.ts'
import { Homes } from './home.ts'
import { SqliteGraph } from './sqlite.ts'

export type GraphOptions = {
  /** With an encrypted store: where its key comes from, as `file:PATH`, `env:NAME` or `command:PROGRAM`. */
  readonly storeKey?: string
  readonly clock?: Clock
  /** With `ram:`, the store in RAM whose forgetting is followed. */
  readonly beside?: Store
}

/**
 * Opens the graph and the nodes of a store: those in the file of `sqlite:PATH`, or new ones in `ram:`. They are forgotten
 * with the scopes, sessions and messages of the file; those in RAM with those of the store they are opened beside.
 *
 * @example
 * const graph = await openGraph('sqlite:memory.db')
 * await graph.write('acme', { entities: [{ type: 'person', id: 'ann', properties: { city: 'Oslo' } }] })
 */
export async function openGraph(
  url: string,
  { storeKey, clock = Date.now, beside }: GraphOptions = {},
): Promise<SqliteGraph> {
  const path = fileOf(url)
  if (path === undefined && url !== 'ram:') throw unknownStore(url, 'ram: or sqlite:PATH')
  if (path === undefined && storeKey !== undefined)
    throw new MemoryError(
      'bad-option',
      'ram: is not written anywhere and takes no key. Leave the key out, or choose sqlite:PATH.',
      { param: 'storeKey' },
    )
  const ring = storeKey === undefined ? undefined : await loadKeyring(storeKey)
  try {
    const file = new GraphFile(path)
    const graph = new SqliteGraph(file, new Homes(file, ring), clock)
    if (path === undefined && beside !== undefined && isHeard(beside)) graph.follow(beside)
    return graph
  } finally {
    if (ring !== undefined) wipe(ring)
  }
}
