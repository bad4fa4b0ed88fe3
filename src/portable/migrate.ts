import { createHash } from 'node:crypto'
import type { ImportResult, TransferOptions } from '../domain/bundle.ts'
import { MemoryError } from '../domain/error.ts'
import type { Scope } from '../domain/key.ts'
import type { SearchIndex, Store } from '../domain/ports.ts'
import { exportForCopy, listKeys, listTableScopes } from './export.ts'
import { importRecords } from './import.ts'
import { copyVectors } from './migrateVectors.ts'
import { readBundle } from './read.ts'

/** Part of a migration. */
export type MigrationStep = 'compare' | 'copy' | 'vectors' | 'verify'

export type MigrationOptions = Pick<TransferOptions, 'signal'> & {
  /** Copies only this scope. */
  readonly scope?: Scope
  /** Called often with the number of messages that a step has handled. */
  readonly onProgress?: (step: MigrationStep, messages: number) => void
  /** Called when a session is complete in the target, or found there unchanged. Throwing stops the migration there. */
  readonly onSession?: (key: string, outcome: 'written' | 'unchanged') => void
}

export type MigrationResult = Pick<ImportResult, 'sessions' | 'messages' | 'entries' | 'unchanged'> & {
  /** Number of copied vectors. */
  readonly vectors: number
  /** SHA-256 of the export of each scope, which is the same for both stores. */
  readonly hashes: Readonly<Record<Scope, string>>
}

/**
 * Copies sessions, knowledge, records, graphs, rows and vectors of a store to another one, and compares the exports of
 * both. A repeated migration continues an interrupted one. Nothing is masked or counted again: both stores are the
 * operator's.
 *
 * @throws MemoryError `conflict` if the target has other contents for a session, or if the stores differ in the end;
 * `bad-bundle` if the source is written to meanwhile; `aborted`.
 *
 * @example
 * const { messages } = await migrateStore(sqliteStore('memory.db'), await openStore('postgres://localhost/memory'))
 */
export async function migrateStore(
  source: Store & SearchIndex,
  target: Store & SearchIndex,
  options: MigrationOptions = {},
): Promise<MigrationResult> {
  const { scope, signal, onProgress, onSession } = options
  const filter = scope === undefined ? {} : { scope }
  let passes = 0
  const read = () => {
    const step = passes++ === 0 ? 'compare' : 'copy'
    return readBundle(exportForCopy(source, { ...filter, onProgress: ({ messages }) => onProgress?.(step, messages) }))
  }
  const { sessions, messages, entries, unchanged } = await importRecords(target, read, {
    scope: undefined,
    onExisting: 'refuse',
    ...(signal && { signal }),
    ...(onSession && { onSession }),
  })
  const vectors = await copyVectors(source, target, {
    ...filter,
    ...(signal && { signal }),
    onProgress: (handled) => onProgress?.('vectors', handled),
  })
  return { sessions, messages, entries, unchanged, vectors, hashes: await verify(source, target, options) }
}

/** Compares the exports of each scope. */
async function verify(source: Store, target: Store, { scope, signal, onProgress }: MigrationOptions) {
  const hashes: Record<Scope, string> = {}
  let verified = 0
  for (const name of scope === undefined ? await listScopes(source) : [scope]) {
    let done = 0
    const report = ({ messages }: { readonly messages: number }): void => {
      done = messages
      onProgress?.('verify', verified + done)
    }
    const options = { scope: name, ...(signal && { signal }) }
    const [expected, actual] = await Promise.all([
      hashBundle(exportForCopy(source, { ...options, onProgress: report })),
      hashBundle(exportForCopy(target, options)),
    ])
    if (expected !== actual)
      throw new MemoryError(
        'conflict',
        `Scope ${name} differs between the stores after it was copied: the target has more, or one of them was written to meanwhile. Stop all writers and migrate again.`,
      )
    verified += done
    hashes[name] = actual
  }
  return hashes
}

async function hashBundle(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of chunks) hash.update(chunk)
  return hash.digest('hex')
}

/** Lists the scopes of a store, also those that have nothing but rows in tables. */
async function listScopes(store: Store): Promise<readonly Scope[]> {
  const scopes = new Set<Scope>()
  for await (const key of listKeys(store, {})) scopes.add(key.scope)
  for await (const scope of listTableScopes(store, {})) scopes.add(scope)
  return [...scopes].sort()
}
