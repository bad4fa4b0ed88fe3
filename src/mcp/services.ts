import type { Millis } from '../domain/entry.ts'
import type { Key } from '../domain/key.ts'
import type { Clock } from '../domain/ports.ts'
import { openGraph, openStoreGraph } from '../graph/graph.ts'
import { Handoff } from '../handoff/handoff.ts'
import type { HandoffSettings } from '../handoff/settings.ts'
import { SecretMasker } from '../memory/secretMasker.ts'
import { internalsOf, type Memory } from '../memory.ts'
import { parseSqliteUrl } from '../stores/open.ts'
import { AuditLog } from './files/audit.ts'
import { FileAccess } from './files/fileAccess.ts'
import { type ProviderConfig, Providers } from './providers/providers.ts'
import { ResourceChanges } from './resources/changes.ts'
import type { ToolContext } from './tools/tool.ts'

/** Settings for file access, context providers and handoff. */
export type McpSettings = {
  /** Folders whose files may be read by users that are not in `users`; none by default. */
  readonly allow?: readonly string[] | undefined
  /** Folders of individual users, in place of `allow`. */
  readonly users?: Readonly<Record<string, readonly string[]>> | undefined
  /** Enables writing of files; off by default. */
  readonly write?: boolean | undefined
  /** Files that no client may use, in addition to those of the store. */
  readonly protectedPaths?: readonly string[] | undefined
  /** File of the audit log. */
  readonly audit: string
  readonly providers?: Readonly<Record<string, ProviderConfig>> | undefined
  readonly handoff?: Partial<HandoffSettings> | undefined
}

export type McpServicesOptions = {
  readonly memory: Memory
  /** URL of the memory's store, and the source of its key: no client may read their files. */
  readonly store: string
  readonly storeKey?: string | undefined
  readonly settings: McpSettings
  /** Workspaces that are swept for expired sessions even if nothing happens in them. */
  readonly workspaces: readonly string[]
  readonly listReceipts: (key: Key) => Promise<readonly unknown[]>
  readonly onError: (error: unknown) => void
  readonly clock?: Clock | undefined
}

/** Services shared by all MCP connections. */
export type McpServices = AsyncDisposable & {
  readonly toolContext: ToolContext
  readonly changes: ResourceChanges
  readonly inFlightCalls: InFlightCalls
  readonly listReceipts: McpServicesOptions['listReceipts']
  readonly onError: McpServicesOptions['onError']
  /** Waits for calls in flight, retries pending saves once, and closes everything except the memory. */
  close(): Promise<void>
}

const sweepIntervalMs: Millis = 3_600_000

/**
 * Opens the services that MCP tools use around a memory. The caller keeps ownership of the memory.
 *
 * @example
 * await using services = await openMcpServices({ memory, store: 'sqlite:threadkeep.db', settings: { audit: 'audit.jsonl' }, workspaces: ['default'], listReceipts, onError })
 */
export async function openMcpServices(options: McpServicesOptions): Promise<McpServices> {
  const { memory, store, storeKey, settings, listReceipts, onError, clock = Date.now } = options
  const { store: memoryStore, masker = new SecretMasker('keep', memory.tokenizer) } = internalsOf(memory)
  const graph =
    (await openStoreGraph(memoryStore, { clock, masker })) ?? (await openGraph('ram:', { clock, masker, memoryStore }))
  const { allow = [], users = {}, write = false, audit } = settings
  const protectedPaths = [...(settings.protectedPaths ?? []), ...storeFiles(store, storeKey)]
  const files = new FileAccess({ allow, users, write, protectedPaths, audit: new AuditLog(audit), clock })
  const providers = new Providers(settings.providers ?? {}, { log: (_level, message) => onError(new Error(message)) })
  const { embedder } = internalsOf(memory)
  // Without allowed folders, handoff does not inspect files, so that no refusals are logged.
  const hasFolders = allow.length > 0 || Object.keys(users).length > 0
  const optionalDeps = { ...(hasFolders ? { files } : {}), ...(embedder === undefined ? {} : { embedder }) }
  const handoff = new Handoff({ memory, graph, clock, providers, ...optionalDeps, settings: settings.handoff ?? {} })
  const [changes, inFlightCalls] = [new ResourceChanges(), new InFlightCalls()]
  const toolContext: ToolContext = {
    memory,
    graph,
    handoff,
    files,
    clock,
    notifyChanged: (workspace, uri) => changes.publish(workspace, uri),
  }
  const sweep = (): void => void inFlightCalls.run(() => handoff.sweep(options.workspaces)).catch(onError)
  sweep()
  const sweepTimer = setInterval(sweep, sweepIntervalMs).unref()
  const closeAll = async (): Promise<void> => {
    clearInterval(sweepTimer)
    await inFlightCalls.settled()
    await handoff.close()
    await providers.close()
    await graph.close()
  }
  let closed: Promise<void> | undefined
  const close = (): Promise<void> => (closed ??= closeAll())
  return { toolContext, changes, inFlightCalls, listReceipts, onError, close, [Symbol.asyncDispose]: close }
}

/** Lists the files of a store and of its key. */
function storeFiles(store: string, storeKey: string | undefined): readonly string[] {
  const [file, keyFile] = [parseSqliteUrl(store), /^file:(.+)/.exec(storeKey ?? '')?.[1]]
  return [
    ...(file === undefined ? [] : [file, `${file}-wal`, `${file}-shm`]),
    ...(keyFile === undefined ? [] : [keyFile]),
  ]
}

/** Tracks running calls, so that shutdown can wait for them. */
export class InFlightCalls {
  private readonly running = new Set<Promise<unknown>>()

  run<T>(work: () => Promise<T>): Promise<T> {
    const promise = work()
    const done = promise.catch(() => undefined).finally(() => this.running.delete(done))
    this.running.add(done)
    return promise
  }

  /** Resolves when no call is running. */
  async settled(): Promise<void> {
    while (this.running.size > 0) await Promise.all(this.running)
  }
}
