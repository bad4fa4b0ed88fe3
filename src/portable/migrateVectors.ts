import { type Entry, getEntryText } from '../domain/entry.ts'
import { MemoryError } from '../domain/error.ts'
import { formatKey, type Key, type Scope } from '../domain/key.ts'
import type { EntryVector, SearchIndex, Store, StoredVector } from '../domain/ports.ts'
import { throwIfAborted } from './abort.ts'
import { listKeys } from './export.ts'

type VectorCopyOptions = {
  readonly scope?: Scope
  readonly signal?: AbortSignal
  /** Called with the number of messages whose vectors were compared. */
  readonly onProgress: (messages: number) => void
}

/** Entries whose vectors are held in memory at a time. */
const pageSize = 200

/**
 * Copies the vectors of all entries that the target has without one or with another one. Both stores must have the same
 * sessions. Resolves to the number of copied vectors.
 *
 * @throws MemoryError `conflict` if a vector could not be stored, because an entry has changed meanwhile; `aborted`.
 */
export async function copyVectors(
  source: Store & SearchIndex,
  target: Store & SearchIndex,
  { scope, signal, onProgress }: VectorCopyOptions,
): Promise<number> {
  let [copied, messages] = [0, 0]
  for await (const key of listKeys(source, scope === undefined ? {} : { scope })) {
    const { epoch } = await target.readHead(key, 0)
    for await (const entries of readEntries(source, key)) {
      throwIfAborted(signal, 'The migration was stopped by the caller. Run it again to continue.')
      copied += await copyPage(source, target, { key, epoch, entries })
      messages += entries.filter(({ kind }) => kind === 'message').length
      onProgress(messages)
    }
  }
  return copied
}

async function copyPage(
  source: SearchIndex,
  target: SearchIndex,
  { key, epoch, entries }: { readonly key: Key; readonly epoch: number; readonly entries: readonly Entry[] },
): Promise<number> {
  const ids = entries.map(({ id }) => id)
  const vectors = await source.readVectors(key, ids)
  if (vectors.every((vector) => vector === undefined)) return 0
  const existing = await target.readVectors(key, ids)
  const missing = entries.flatMap((entry, at): (EntryVector & { readonly model: string })[] => {
    const vector = vectors[at]
    if (vector === undefined || isSame(vector, existing[at])) return []
    return [{ ...vector, key, id: entry.id, epoch, text: getEntryText(entry) }]
  })
  for (const [model, group] of Map.groupBy(missing, (vector) => vector.model))
    if ((await target.storeVectors(model, group)) < group.length)
      throw new MemoryError(
        'conflict',
        `Entries of ${formatKey(key)} changed while their vectors were copied. Stop all writers and migrate again.`,
      )
  return missing.length
}

const isSame = (vector: StoredVector, other: StoredVector | undefined): boolean =>
  other?.model === vector.model &&
  other.values.length === vector.values.length &&
  other.values.every((value, at) => Object.is(value, vector.values[at]))

/** Reads the entries of a session in pages: messages, then derived entries. */
async function* readEntries(store: Store, key: Key): AsyncGenerator<readonly Entry[]> {
  for (let after = 0; ; ) {
    const messages = await store.readMessages(key, { after, limit: pageSize })
    const last = messages.at(-1)
    if (last === undefined) break
    yield messages
    after = last.sequence
  }
  const { derived } = await store.readHead(key, 0)
  for (let at = 0; at < derived.length; at += pageSize) yield derived.slice(at, at + pageSize)
}
