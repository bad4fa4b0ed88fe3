import { existsSync } from 'node:fs'
import type { Command } from 'commander'
import { MemoryError } from '../domain/error.ts'
import { formatKey, type Key } from '../domain/key.ts'
import type { Embedder, SearchIndex, Store } from '../domain/ports.ts'
import type { SessionHead } from '../domain/session.ts'
import type { Memory } from '../memory.ts'
import { type Environment, embedderHelp, readOption } from './options.ts'
import { createProgressLine } from './output.ts'

export type StoreFlags = { readonly store?: string; readonly storeKey?: string; readonly json?: boolean }

/** Flags of commands that search or build contexts. */
export type EmbedderFlags = { readonly embedder?: string }

/** URL of a store and the source of its encryption key. */
export type StoreLocation = { readonly url: string; readonly key: string | undefined }

/** Adds the options of every command that works on a store. */
export function addStoreOptions(command: Command): Command {
  return command
    .option('--store <url>', 'store: sqlite:PATH (THREADKEEP_STORE; sqlite:threadkeep.db)')
    .option(
      '--store-key <source>',
      'key of an encrypted store: file:PATH, env:NAME or command:PROGRAM (THREADKEEP_STORE_KEY)',
    )
    .option('--json', 'print JSON')
}

export const addEmbedderOption = (command: Command): Command => command.option('--embedder <name>', embedderHelp)

/** Creates the embedder that a flag, the environment or else the configuration names, as an option of `openMemory`. */
export async function resolveEmbedder(
  flags: EmbedderFlags,
  environment: Environment,
  configured?: string,
): Promise<{ readonly embedder?: Embedder }> {
  const name = readOption(flags.embedder, environment, 'THREADKEEP_EMBEDDER') ?? configured
  if (name === undefined) return {}
  const { createEmbedder } = await import('../providers/namedEmbedder.ts')
  return { embedder: createEmbedder(name, environment) }
}

const progressIntervalMs = 200

/** Waits until all entries have vectors, with progress on standard error. A fault is reported there and not thrown. */
export async function finishEmbedding(memory: Memory): Promise<void> {
  const { update, clear } = createProgressLine()
  const showProgress = async (): Promise<void> => {
    const progress = await memory.embeddingProgress()
    if (progress !== undefined) update(`embedded ${progress.done} of ${progress.total}`)
  }
  const timer = setInterval(() => void showProgress().catch(() => undefined), progressIntervalMs)
  try {
    await memory.embeddingProgress({ settled: true })
  } finally {
    clearInterval(timer)
    clear()
  }
}

/** Reports on standard error why entries or the question were not compared by meaning. */
export async function warnOfEmbeddingFault(memory: Memory): Promise<void> {
  const { fault, done = 0, total = 0 } = (await memory.embeddingProgress()) ?? {}
  if (fault !== undefined)
    process.stderr.write(`threadkeep: search by meaning is incomplete (${done} of ${total} embedded): ${fault}\n`)
}

export function resolveStore(flags: StoreFlags, environment: Environment): StoreLocation {
  return {
    url: readOption(flags.store, environment, 'THREADKEEP_STORE') ?? 'sqlite:',
    key: readOption(flags.storeKey, environment, 'THREADKEEP_STORE_KEY'),
  }
}

/** Returns the file of an existing store. Throws when it is missing, so that a typo does not create a new store. */
export async function requireStoreFile(flags: StoreFlags, environment: Environment): Promise<string> {
  const { parseSqliteUrl } = await import('../stores/open.ts')
  const { url } = resolveStore(flags, environment)
  const file = parseSqliteUrl(url)
  if (file === undefined)
    throw new MemoryError('bad-option', `store is ${JSON.stringify(url)}; this command needs sqlite:PATH.`, {
      param: 'store',
    })
  if (!existsSync(file))
    throw new MemoryError('bad-option', `No store at ${file}. Set its path with --store sqlite:PATH.`, {
      param: 'store',
    })
  return file
}

export async function openExistingStore(flags: StoreFlags, environment: Environment): Promise<Store & SearchIndex> {
  const file = await requireStoreFile(flags, environment)
  const { openStore } = await import('../stores/open.ts')
  return openStore(`sqlite:${file}`, resolveStore(flags, environment).key)
}

/**
 * Returns the head of an existing session. Throws when it is missing, so that a typo is not answered with an empty
 * result.
 */
export async function requireSession(store: Store, key: Key): Promise<SessionHead> {
  const head = await store.readHead(key, 0)
  if (head.revision > 0) return head
  throw new MemoryError(
    'bad-option',
    `No session ${formatKey(key)}. Run threadkeep sessions list to see all sessions.`,
    { param: 'key' },
  )
}
