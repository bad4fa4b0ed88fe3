import type { Millis } from '../domain/entry.ts'
import type { Key } from '../domain/key.ts'
import type { Clock } from '../domain/ports.ts'
import { openGraph } from '../graph/graph.ts'
import { Handoff } from '../handoff/handoff.ts'
import type { HandoffSettings } from '../handoff/settings.ts'
import { internalsOf, type Memory } from '../memory.ts'
import { fileOf } from '../stores/open.ts'
import { Changes } from './changes.ts'
import { Audit } from './files/audit.ts'
import { FileDesk } from './files/desk.ts'
import { type ProviderConfig, Providers } from './providers.ts'
import type { Desk } from './tool.ts'
import { Underway } from './underway.ts'

/** Which files clients get at, and who else is asked for context. */
export type HostSettings = {
  /** Folders whose files may be read, and other ones for those who are named. */
  readonly allow?: readonly string[] | undefined
  readonly users?: Readonly<Record<string, readonly string[]>> | undefined
  readonly write?: boolean | undefined
  /** Files that clients never get at, wherever they are, beside those of the store. */
  readonly keep?: readonly string[] | undefined
  /** The file in which every look at a file is written down. */
  readonly audit: string
  readonly providers?: Readonly<Record<string, ProviderConfig>> | undefined
  readonly handoff?: Partial<HandoffSettings> | undefined
}

export type HostOptions = {
  readonly memory: Memory
  /** Where the memory is kept: the graph is there too. */
  readonly store: string
  readonly storeKey?: string | undefined
  readonly settings: HostSettings
  /** Where sessions that are over are looked for although nothing was said in them. */
  readonly workspaces: readonly string[]
  readonly receipts: (key: Key) => Promise<readonly unknown[]>
  readonly onFault: (error: unknown) => void
  readonly clock?: Clock | undefined
}

/** What all connections share. */
export type Host = AsyncDisposable & {
  readonly desk: Desk
  readonly changes: Changes
  readonly underway: Underway
  readonly receipts: HostOptions['receipts']
  readonly onFault: HostOptions['onFault']
  /** Waits for what is under way, tries a last time to write what could not be written, and closes everything but the memory. */
  close(): Promise<void>
}

/** How often sessions are looked through for those that are over. */
const sweepEvery: Millis = 3_600_000

/**
 * Opens everything that tools work with around a memory, which stays whoever's it is.
 *
 * @example
 * await using host = await openHost({ memory, store: 'sqlite:threadkeep.db', settings: { audit: 'audit.jsonl' }, workspaces: ['default'], receipts, onFault })
 */
export async function openHost(options: HostOptions): Promise<Host> {
  const { memory, store, storeKey, settings, receipts, onFault, clock = Date.now } = options
  const graph = await openGraph(store, {
    clock,
    beside: internalsOf(memory).store,
    ...(storeKey === undefined ? {} : { storeKey }),
  })
  const { allow = [], users = {}, write = false, audit } = settings
  const keep = [...(settings.keep ?? []), ...ownFiles(store, storeKey)]
  const files = new FileDesk({ allow, users, write, keep, audit: new Audit(audit), clock })
  const providers = new Providers(settings.providers ?? {}, { log: (_level, message) => onFault(new Error(message)) })
  const { embedder } = internalsOf(memory)
  // With no folder open there is nothing to look at, and nobody is refused anything.
  const mayLook = allow.length > 0 || Object.keys(users).length > 0
  const means = { ...(mayLook ? { files } : {}), ...(embedder === undefined ? {} : { embedder }) }
  const handoff = new Handoff({ memory, graph, clock, providers, ...means, settings: settings.handoff ?? {} })
  const [changes, underway] = [new Changes(), new Underway()]
  const desk: Desk = { memory, graph, handoff, files, clock, changed: (workspace, uri) => changes.tell(workspace, uri) }
  const sweep = (): void => void underway.run(() => handoff.sweep(options.workspaces)).catch(onFault)
  sweep()
  const sweeping = setInterval(sweep, sweepEvery).unref()
  const shut = async (): Promise<void> => {
    clearInterval(sweeping)
    await underway.settled()
    await handoff.close()
    await providers.close()
    await graph.close()
  }
  let closed: Promise<void> | undefined
  const close = (): Promise<void> => (closed ??= shut())
  return { desk, changes, underway, receipts, onFault, close, [Symbol.asyncDispose]: close }
}

/** The files of a store and of its key. */
function ownFiles(store: string, storeKey: string | undefined): readonly string[] {
  const [file, key] = [fileOf(store), /^file:(.+)/.exec(storeKey ?? '')?.[1]]
  return [...(file === undefined ? [] : [file, `${file}-wal`, `${file}-shm`]), ...(key === undefined ? [] : [key])]
}
