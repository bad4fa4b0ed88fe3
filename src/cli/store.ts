import { existsSync } from 'node:fs'
import type { Command } from 'commander'
import { MemoryError } from '../domain/error.ts'
import { formatKey, type Key } from '../domain/key.ts'
import type { Index, Store } from '../domain/ports.ts'
import type { Head } from '../domain/session.ts'
import { type Environment, setting } from './settings.ts'

export type StoreFlags = { readonly store?: string; readonly storeKey?: string; readonly json?: boolean }

/** The options of every command that works on a store. */
export function withStore(command: Command): Command {
  return command
    .option('--store <url>', 'where memory is kept: sqlite:PATH (THREADKEEP_STORE; sqlite:threadkeep.db)')
    .option(
      '--store-key <source>',
      'the key it is encrypted with: file:PATH, env:NAME or command:PROGRAM (THREADKEEP_STORE_KEY)',
    )
    .option('--json', 'answer in JSON')
}

/** Where memory is kept, and under which key. */
export function storeSettings(
  flags: StoreFlags,
  environment: Environment,
): { readonly url: string; readonly key: string | undefined } {
  return {
    url: setting(flags.store, environment, 'THREADKEEP_STORE') ?? 'sqlite:',
    key: setting(flags.storeKey, environment, 'THREADKEEP_STORE_KEY'),
  }
}

/** The file of a store that must be there already: a typing mistake should not make a new one. */
export async function existingFile(flags: StoreFlags, environment: Environment): Promise<string> {
  const { fileOf } = await import('../stores/open.ts')
  const { url } = storeSettings(flags, environment)
  const file = fileOf(url)
  if (file === undefined)
    throw new MemoryError('bad-option', `store is ${JSON.stringify(url)}; this works on files: sqlite:PATH.`, {
      param: 'store',
    })
  if (!existsSync(file))
    throw new MemoryError('bad-option', `There is no store at ${file}. Say where it is with --store sqlite:PATH.`, {
      param: 'store',
    })
  return file
}

/** Opens a store that is there already. */
export async function existingStore(flags: StoreFlags, environment: Environment): Promise<Store & Index> {
  const file = await existingFile(flags, environment)
  const { openStore } = await import('../stores/open.ts')
  return openStore(`sqlite:${file}`, storeSettings(flags, environment).key)
}

/** A session that is there already: a typing mistake should not be answered with nothing. */
export async function existingSession(store: Store, key: Key): Promise<Head> {
  const head = await store.head(key, 0)
  if (head.revision > 0) return head
  throw new MemoryError(
    'bad-option',
    `There is no session ${formatKey(key)}. threadkeep sessions list tells which there are.`,
    { param: 'key' },
  )
}
