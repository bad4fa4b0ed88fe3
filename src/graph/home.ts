import { randomBytes } from 'node:crypto'
import type { Derived, Millis } from '../domain/entry.ts'
import { MemoryError } from '../domain/error.ts'
import { type Key, parseKey } from '../domain/key.ts'
import { never } from '../domain/session.ts'
import { keyLength } from '../stores/encrypted/cipher.ts'
import { copyOf, type Keyring, wipe } from '../stores/encrypted/keyring.ts'
import { isKeyEntry, keyEntryOf, unwrapped, wrapped } from '../stores/encrypted/keyEntry.ts'
import { graphKey } from '../stores/sqlite/graph.ts'
import { type Cells, derivedColumns, derivedOf, digestOfKey } from '../stores/sqlite/rows.ts'
import { Writer } from '../stores/sqlite/write.ts'
import type { GraphFile } from './file.ts'
import { plain, type Seal, sealed } from './seal.ts'

/** Where the graph of a workspace lies: the number of its session, and how what is said in it is sealed. */
export type Home = { readonly id: number; readonly seal: Seal }

/** So many homes are held ready. */
const most = 10_000

/**
 * The homes of all workspaces of a file. A home is a session of the engine's own, so that forgetting a scope, changing the
 * keys of a store and saving what is left of a damaged one reach the graph without knowing of it.
 */
export class Homes {
  private readonly file: GraphFile
  private readonly ring: Keyring | undefined
  private readonly known = new Map<string, Home & { readonly epoch: number }>()

  /** With the keys of an encrypted store, what is said is sealed. */
  constructor(file: GraphFile, ring?: Keyring) {
    this.file = file
    this.ring = ring && copyOf(ring)
  }

  /** To be called inside `read` or `write`: the home of a workspace, or undefined if nothing was ever written there. */
  find(workspace: string): Home | undefined {
    const key = keyOf(workspace)
    const row = this.file.one<[number, number]>(
      'SELECT id, epoch FROM session WHERE scope = ? AND name = ?',
      key.scope,
      key.id,
    )
    if (row === undefined) return undefined
    const [id, epoch] = row
    const before = this.known.get(workspace)
    // A workspace that was forgotten and begun anew has another key.
    if (before?.id === id && before.epoch === epoch) return before
    const home = { id, epoch, seal: this.sealOf(id, key) }
    if (this.known.size >= most) this.known.clear()
    this.known.set(workspace, home)
    return home
  }

  /** To be called inside `write`: the home of a workspace, which is made if it is not there. */
  make(workspace: string, at: Millis): Home {
    const home = this.find(workspace)
    if (home !== undefined) return home
    const key = keyOf(workspace)
    const [epoch] = this.file.one<[number]>('SELECT epoch FROM tombstone WHERE key = ?', digestOfKey(key)) ?? [0]
    const put = this.ring === undefined ? [] : [wrapped(randomBytes(keyLength), key, at, this.ring.current)]
    const writer = new Writer(this.file.database)
    writer.begun()
    writer.commit({ key, at, epoch, append: [], put, drop: [], expiresAt: never })
    writer.ending()
    return this.find(workspace) as Home
  }

  close(): void {
    for (const { seal } of this.known.values()) seal.wipe()
    this.known.clear()
    if (this.ring !== undefined) wipe(this.ring)
  }

  private sealOf(id: number, key: Key): Seal {
    const cells = this.file.all<Cells>(`SELECT ${derivedColumns} FROM derived WHERE session = ?`, id)
    const derived = cells.map(derivedOf).filter((entry): entry is Derived => entry !== undefined)
    if (this.ring !== undefined) return sealed(unwrapped(keyEntryOf(derived, key), key, this.ring), key.scope)
    if (!derived.some(isKeyEntry)) return plain
    throw new MemoryError('bad-secret', `The graph of ${key.scope} is encrypted. Open it with the key of its store.`, {
      param: 'storeKey',
    })
  }
}

/** A workspace is a scope; a session within one is none. */
function keyOf(workspace: string): Key {
  const { scope, id } = parseKey(workspace)
  if (id === '') return graphKey(scope)
  throw new MemoryError(
    'bad-key',
    `Workspace ${JSON.stringify(workspace)} names a session. Write the scope alone, for example ${scope}.`,
    {
      param: 'workspace',
    },
  )
}
