import { hkdfSync } from 'node:crypto'
import type { Derived, Millis, Sealed } from '../../domain/entry.ts'
import { MemoryError } from '../../domain/error.ts'
import { formatKey, type Key } from '../../domain/key.ts'
import { BoxKey, keyLength } from './box.ts'
import { badKey, type Keyring, keyOf, type MasterKey } from './keyring.ts'

/** The entry of a session that holds its own key, wrapped. Nobody sees it through a sealed store, and no other entry may have its id. */
const id = '#key'

export const isKeyEntry = (entry: Pick<Derived, 'id'>): boolean => entry.id === id

/** A session's key as an entry of that session, wrapped by the key of its scope. */
export function wrapped(secret: Uint8Array, key: Key, at: Millis, master: MasterKey): Sealed {
  return {
    kind: 'sealed',
    id,
    at,
    box: `${master.id}.${scopeKeyOf(master, key).seal(secret, boundTo(key))}`,
    sources: [],
  }
}

/** Whether a session's key is wrapped under this master key. */
export const isUnder = ({ id }: MasterKey, { box }: Sealed): boolean => box.startsWith(`${id}.`)

/** The key of a session, out of its entry. */
export function unwrapped({ box }: Sealed, key: Key, ring: Keyring): Uint8Array {
  const [, wanted, content] = /^([0-9a-f]{16})\.(.+)$/.exec(box) ?? []
  if (wanted === undefined || content === undefined) throw damaged(key)
  const master = keyOf(ring, wanted)
  if (master === undefined) throw missing(wanted, key, ring)
  const secret = scopeKeyOf(master, key).open(content, boundTo(key))
  if (secret?.length !== keyLength) throw damaged(key)
  return secret
}

/** The key entry among those of a session that has been written to. */
export function keyEntryOf(derived: readonly Derived[], key: Key): Sealed {
  const entry = derived.find(isKeyEntry)
  if (entry?.kind === 'sealed') return entry
  throw new MemoryError(
    'bad-store',
    `Session ${formatKey(key)} was written without encryption. Open the store without a key and export it, then import it into a new store with a key.`,
  )
}

/**
 * A scope's key is derived, not stored: two first writers cannot disagree about it, no session can outlive it, and
 * whoever knew a scope's key under the old master knows nothing that is sealed under the new one.
 */
const scopeKeyOf = (master: MasterKey, { scope }: Key): BoxKey =>
  new BoxKey(new Uint8Array(hkdfSync('sha256', master.bytes, '', `threadkeep scope key 1 ${scope}`, keyLength)))

const boundTo = (key: Key): string => JSON.stringify(['session key', key.scope, key.id])

const damaged = (key: Key): MemoryError =>
  new MemoryError(
    'corrupt',
    `The key of session ${formatKey(key)} was changed, or moved here from another session, so that nothing in it can be opened. Restore it from a backup or forget it.`,
  )

function missing(wanted: string, key: Key, { current, others }: Keyring): MemoryError {
  const given = [current, ...others].map((one) => one.id).join(', ')
  return badKey(
    `Session ${formatKey(key)} is sealed under key ${wanted}, but the keys given are ${given}. Add the missing key behind the current one, parted by a space or a new line.`,
  )
}
