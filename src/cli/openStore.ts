import { existsSync } from 'node:fs'
import type { Command } from 'commander'
import { MemoryError, maskStoreUrl } from '../domain/error.ts'
import { formatKey, type Key } from '../domain/key.ts'
import type { Embedder, SearchIndex, Store } from '../domain/ports.ts'
import type { SessionHead, SessionListItem } from '../domain/session.ts'
import type { Memory } from '../memory.ts'
import { type Environment, embedderOption, jsonOption, readOption } from './options.ts'
import { option } from './terminal/help.ts'
import type { Progress } from './terminal/progress.ts'

export type StoreFlags = { readonly store?: string; readonly storeKey?: string; readonly json?: boolean }

/** Flags of commands that search or build contexts. */
export type EmbedderFlags = { readonly embedder?: string }

/** Database file in the current folder that all commands share when none is named. */
const defaultStoreFile = 'threadkeep.db'

/** URLs of stores that outlive the process. */
export const durableStoreForms = 'sqlite:PATH, postgres://USER:PASSWORD@HOST/DATABASE or pglite:PATH'

/** URL of a store and the source of its encryption key. */
export type StoreLocation = { readonly url: string; readonly key: string | undefined }

/** Adds the options of every command that works on a store. */
export const addStoreOptions = (command: Command): Command =>
  addStoreLocation(command, durableStoreForms).addOption(jsonOption())

/** Adds the options that locate a store; `forms` are the URLs that the command accepts. */
export const addStoreLocation = (command: Command, forms: string): Command =>
  command
    .addOption(
      option('--store <url>', `store: ${forms}`, { env: ['THREADKEEP_STORE'], fallback: `sqlite:${defaultStoreFile}` }),
    )
    .addOption(
      option('--store-key <source>', 'key of an encrypted store: file:PATH, env:NAME or command:PROGRAM', {
        env: ['THREADKEEP_STORE_KEY'],
      }),
    )

export const addEmbedderOption = (command: Command): Command => command.addOption(embedderOption())

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

/** Waits until all entries have vectors. A fault is reported by `warnOfEmbeddingFault` and not thrown. */
export async function finishEmbedding(memory: Memory, progress: Progress): Promise<void> {
  const showProgress = async (): Promise<void> => {
    const { done, total } = (await memory.embeddingProgress()) ?? {}
    if (done !== undefined) progress.count('Embedding entries', done, total)
  }
  const timer = setInterval(() => void showProgress().catch(() => undefined), progressIntervalMs)
  try {
    await memory.embeddingProgress({ settled: true })
  } finally {
    clearInterval(timer)
    progress.clear()
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
    url: readOption(flags.store, environment, 'THREADKEEP_STORE') ?? `sqlite:${defaultStoreFile}`,
    key: readOption(flags.storeKey, environment, 'THREADKEEP_STORE_KEY'),
  }
}

/** Returns the file of an existing store. Throws when it is missing, so that a typo does not create a new store. */
export async function requireStoreFile(flags: StoreFlags, environment: Environment): Promise<string> {
  const { parseSqliteUrl } = await import('../stores/open.ts')
  const url = await requireStoreUrl(flags, environment)
  const file = parseSqliteUrl(url)
  if (file === undefined) throw unsuitableStore(url, 'store')
  return file
}

/** Returns the URL of an existing store. Throws when its file, its folder or its tables are missing. */
export async function requireStoreUrl(flags: StoreFlags, environment: Environment): Promise<string> {
  const { url } = resolveStore(flags, environment)
  await checkDurableUrl(url, 'store')
  const missing = await findMissingStore(url)
  if (missing === undefined) return url
  throw new MemoryError(
    'bad-option',
    `No store at ${missing.name}. Start one with threadkeep chat or threadkeep serve, or set ${missing.setting}.`,
    { param: 'store' },
  )
}

/** Throws unless a URL names a file, a folder or a database. */
export async function checkDurableUrl(url: string, param: string): Promise<void> {
  const { parseSqliteUrl } = await import('../stores/open.ts')
  const { isDatabaseUrl } = await import('../stores/postgres/url.ts')
  if (parseSqliteUrl(url) === undefined && !isDatabaseUrl(url)) throw unsuitableStore(url, param)
}

const unsuitableStore = (url: string, param: string): MemoryError =>
  new MemoryError(
    'bad-option',
    `${param} is ${JSON.stringify(maskStoreUrl(url))}; this command needs ${durableStoreForms}.`,
    { param },
  )

/** Describes a store that does not exist on disk or on a PostgreSQL server. Creates nothing. */
export async function findMissingStore(
  url: string,
): Promise<{ readonly name: string; readonly setting: string } | undefined> {
  const { parseSqliteUrl } = await import('../stores/open.ts')
  const { parsePgliteUrl } = await import('../stores/postgres/url.ts')
  const folder = parsePgliteUrl(url)
  const path = parseSqliteUrl(url) ?? folder
  if (path !== undefined) {
    const setting = `its path with --store ${folder === undefined ? 'sqlite' : 'pglite'}:PATH`
    return existsSync(path) ? undefined : { name: path, setting }
  }
  const { hasTables } = await import('../stores/postgres/hasTables.ts')
  if (await hasTables(url)) return undefined
  return { name: maskStoreUrl(url), setting: 'the database with --store URL; ?schema=NAME names its schema' }
}

export async function openExistingStore(flags: StoreFlags, environment: Environment): Promise<Store & SearchIndex> {
  const url = await requireStoreUrl(flags, environment)
  const { openStore } = await import('../stores/open.ts')
  return openStore(url, resolveStore(flags, environment).key)
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

const listPageSize = 1_000

/** Lists all sessions of a scope, or of the store, page by page. */
export async function* listSessions(store: Store, scope?: string, from = ''): AsyncGenerator<SessionListItem> {
  for (let after = from; ; ) {
    const page = await store.list({ ...(scope === undefined ? {} : { scope }), after, limit: listPageSize })
    yield* page
    const last = page.at(-1)
    if (last === undefined || page.length < listPageSize) return
    after = formatKey(last.key)
  }
}

/** Counts the messages of a scope, or of the store. */
export async function countMessages(store: Store, scope?: string): Promise<number> {
  let count = 0
  for await (const { messages } of listSessions(store, scope)) count += messages
  return count
}
