import { MemoryError } from '../domain/error.ts'
import type { Key } from '../domain/key.ts'
import type { Clock, SearchIndex, Store, TokenBuckets } from '../domain/ports.ts'
import type { Profile } from '../domain/profile.ts'
import { openMemory } from '../index.ts'
import { createPrincipal } from '../mcp/principal.ts'
import { openMcpServices } from '../mcp/services.ts'
import { McpHttpServer } from '../mcp/transports/http.ts'
import { createSecretMasker, type SecretMasker } from '../memory/secretMasker.ts'
import { internalsOf, type Memory } from '../memory.ts'
import type { CreateSecretMasker } from '../open.ts'
import { type StoreChange, withChangeListener } from '../stores/changeListener.ts'
import { withEraseListeners } from '../stores/eraseListeners.ts'
import { openStore } from '../stores/open.ts'
import { ramStore } from '../stores/ram.ts'
import { sharedStore } from '../stores/sharedStore.ts'
import { textAnalysis } from '../stores/textAnalysis.ts'
import { yieldWhenLong } from '../stores/yieldToEventLoop.ts'
import { zstdCompressor } from '../stores/zstd.ts'
import { Credentials } from './auth/credentials.ts'
import type { ServerConfig } from './config/serverConfig.ts'
import { isLoopback } from './http/hostPolicy.ts'
import { describeFault } from './http/httpError.ts'
import { inspectorFolder } from './inspector/assets.ts'
import { SessionEvents } from './inspector/sessionEvents.ts'
import { MemoryRegistry } from './memoryRegistry.ts'
import { type Log, silentLog } from './observability/log.ts'
import { openTracing } from './observability/tracing.ts'
import { listReceipts } from './receipts.ts'
import { type RunningServer, serve } from './serve.ts'
import { SessionModels } from './upstreams/sessionModels.ts'
import { deliverOnce } from './webhooks/webhook.ts'

export type OpenServerOptions = {
  /** Allows a public address without keys; default false. */
  readonly allowPublic?: boolean | undefined
  readonly log?: Log | undefined
  readonly clock?: Clock | undefined
}

/** A running server with its memories. */
export type OpenedServer = RunningServer & {
  readonly memories: MemoryRegistry
  /** True when clients need keys. */
  readonly requiresKeys: boolean
}

/**
 * Opens stores, memories, keys and upstreams as configured, and starts the server. All profiles share one durable store
 * and one store of ephemeral sessions.
 *
 * @throws {MemoryError} `bad-option` for a public address without keys, unless `isOpen`.
 *
 * @example
 * const { settings } = await loadSettings({ file: 'threadkeep.config.json', sources: [] })
 * await using server = await openServer(resolveServerConfig(settings, process.env))
 */
export async function openServer(plan: ServerConfig, options: OpenServerOptions = {}): Promise<OpenedServer> {
  const { log = silentLog, clock: localClock = Date.now } = options
  const credentials = new Credentials(plan.keys.file, {
    fileExpected: plan.keys.isExpected,
    onFault: (error) => log.fault('keys', describeFault(error)),
  })
  const asksForKeys = credentials.isRequired(localClock())
  checkExposure(plan.listen.host, asksForKeys || options.allowPublic === true)
  const sessionEvents = new SessionEvents()
  const stores = await openStores(plan, (change) => sessionEvents.publish(change, clock()))
  const shared = stores.ephemeral.capabilities.shared ?? stores.durable.capabilities.shared
  const clock = shared?.correctClock(localClock) ?? localClock
  try {
    const upkeepModels = createSessionModels(plan)
    const open = memoryOpener(plan, { stores, upkeepModels, clock })
    const memories = await MemoryRegistry.open(open, plan.profiles)
    const { tokenBuckets } = { ...stores.durable.capabilities, ...stores.ephemeral.capabilities }
    const deps = { memories, upkeepModels, credentials, sessionEvents, log, clock, open, tokenBuckets }
    const server = await startServer(plan, deps)
    const shutDown = async (grace?: number): Promise<void> => {
      await server.close(grace)
      await memories[Symbol.asyncDispose]()
      await stores.close()
      await credentials.settled()
    }
    let closed: Promise<void> | undefined
    const close = (grace?: number): Promise<void> => {
      closed ??= shutDown(grace)
      return closed
    }
    const { url, backend } = server
    return { url, backend, memories, requiresKeys: asksForKeys, close, [Symbol.asyncDispose]: () => close() }
  } catch (error) {
    await stores.close()
    throw error
  }
}

/** Refuses a public address without keys: everybody could read and write all memory. */
function checkExposure(host: string, isAllowed: boolean): void {
  if (isAllowed || isLoopback(host)) return
  throw new MemoryError(
    'bad-option',
    `host is ${JSON.stringify(host)}, which other machines can reach, but no keys are required: anyone could read and write all memory. Create a key with threadkeep keys create --scope NAME, or pass --open to allow everyone.`,
    { param: 'host' },
  )
}

type Stores = {
  readonly durable: Store & SearchIndex
  /** Sessions of RAM-only profiles. */
  readonly ephemeral: Store & SearchIndex
  close(): Promise<void>
}

/**
 * Opens the durable store and the store of ephemeral sessions, which are one when both are in RAM. Sessions are opened
 * first, because the durable store may be a new file.
 */
async function openStores(
  { store, storeKey, sessions, ramBytes }: ServerConfig,
  onChange: (change: StoreChange) => void,
): Promise<Stores> {
  const ephemeral = sessions === undefined ? openRamStore(ramBytes) : await openStore(sessions)
  const isRam = store === 'ram:' && storeKey === undefined
  try {
    const inRam = sessions === undefined ? ephemeral : openRamStore(ramBytes)
    const durable = isRam ? inRam : await openStore(store, storeKey)
    const close = async (): Promise<void> => {
      for (const opened of new Set([ephemeral, durable])) await opened.close()
    }
    const share = (opened: Store & SearchIndex): Store & SearchIndex =>
      withChangeListener(sharedStore(opened), onChange)
    const shared = share(ephemeral)
    return { ephemeral: shared, durable: durable === ephemeral ? shared : share(durable), close }
  } catch (error) {
    await ephemeral.close()
    throw error
  }
}

const openRamStore = (maxBytes: number | undefined): Store & SearchIndex =>
  withEraseListeners(
    ramStore({
      analysis: textAnalysis,
      pause: yieldWhenLong,
      ...(maxBytes !== undefined && { maxBytes }),
      compressor: zstdCompressor,
    }),
  )

/** The upkeep models of sessions; undefined when the built-in rules do the upkeep. */
function createSessionModels({ upstreams, upkeep }: ServerConfig): SessionModels | undefined {
  if (upstreams.length === 0 || upkeep === 'builtin' || upkeep === 'off') return undefined
  return new SessionModels({ upstreams, model: upkeep })
}

type OpenerDeps = { readonly stores: Stores; readonly upkeepModels: SessionModels | undefined; readonly clock: Clock }
type OpenMemoryFor = (profile: Profile) => Promise<Memory>

/**
 * Returns a function that opens a memory for a profile. MemoryRegistry share secret maskers and the end-of-session
 * callback.
 */
function memoryOpener(plan: ServerConfig, { stores, upkeepModels, clock }: OpenerDeps): OpenMemoryFor {
  const masker = shareMaskers()
  const onSessionEnd = plan.onSessionEnd && deliverOnce(plan.onSessionEnd)
  return (profile) => {
    // A RAM profile that does not read its scope's memory refuses a durable store.
    const store = profile.durability === 'ram' && !profile.scopes.includes('scope') ? stores.ephemeral : stores.durable
    return openMemory({
      profile,
      store,
      sessions: stores.ephemeral,
      masker,
      clock,
      ...(plan.embedder !== undefined && { embedder: plan.embedder }),
      ...(plan.upkeep === 'off' && { upkeep: false as const }),
      ...(plan.upkeep !== 'off' && upkeepModels !== undefined && { model: (key: Key) => upkeepModels.get(key) }),
      ...(onSessionEnd !== undefined && { onSessionEnd }),
    })
  }
}

/** One masker per policy and tokenizer: the secrets are in its RAM only and must outlive a replaced memory. */
function shareMaskers(): CreateSecretMasker {
  const maskers = new Map<string, SecretMasker>()
  return (policy, tokenizer) => {
    const name = `${policy} ${tokenizer.name}`
    const masker = maskers.get(name) ?? createSecretMasker(policy, tokenizer, yieldWhenLong)
    maskers.set(name, masker)
    return masker
  }
}

type ServerDeps = Pick<OpenerDeps, 'upkeepModels' | 'clock'> & {
  readonly memories: MemoryRegistry
  readonly credentials: Credentials
  readonly sessionEvents: SessionEvents
  readonly log: Log
  readonly open: OpenMemoryFor
  readonly tokenBuckets: TokenBuckets | undefined
}

async function startServer(plan: ServerConfig, { memories, log, open, ...deps }: ServerDeps): Promise<RunningServer> {
  const { workspace, only } = plan.mcp
  const visitor = createPrincipal({
    workspace: workspace ?? (only === undefined ? plan.defaultScope : undefined),
    only,
  })
  const openMcp = async () => openMcpEndpoint(plan, await open(plan.mcp.profile), { log, clock: deps.clock })
  try {
    return await serve({
      ...deps,
      ...plan.listen,
      memory: memories,
      inspectorFolder,
      log,
      mcp: { visitor, open: openMcp },
      upstream: plan.upstreams,
      defaultScope: plan.defaultScope,
      rateLimits: plan.rateLimits,
      maxBodyBytes: plan.maxBytes.body,
      maxFileBytes: plan.maxBytes.file,
      maxForwardBytes: plan.maxBytes.forward,
      forward: plan.forward,
      history: plan.history,
      contextWindows: plan.contextWindows,
      timeouts: plan.timeouts,
      retries: plan.retries,
      prices: plan.prices,
      tracing: await openTracing(),
      sweepIntervalMs: plan.sweepInterval,
      drainMs: plan.shutdown.delay,
      onFault: (id, trace) => log.fault(id, trace),
    })
  } catch (error) {
    await memories[Symbol.asyncDispose]()
    throw error
  }
}

/** Opens the MCP endpoint around a memory of its own. */
async function openMcpEndpoint(
  { store, storeKey, keys, mcp }: ServerConfig,
  memory: Memory,
  { log, clock }: { readonly log: Log; readonly clock: Clock },
): Promise<McpHttpServer> {
  const onFault = (error: unknown): void => log.fault('mcp', describeFault(error))
  const receipts = async (key: Key) => (await listReceipts(internalsOf(memory).sessions, key, 100)).items
  try {
    const { workspace, only = [] } = mcp
    const settings = { ...mcp.settings, protectedPaths: [keys.file] }
    const workspaces = workspace === undefined ? only : [workspace, ...only]
    const host = await openMcpServices({
      memory,
      store,
      storeKey,
      settings,
      workspaces,
      listReceipts: receipts,
      onError: onFault,
      clock,
    })
    return new McpHttpServer(host, () => memory.close())
  } catch (error) {
    await memory.close()
    throw error
  }
}
