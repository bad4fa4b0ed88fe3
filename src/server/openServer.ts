import { MemoryError } from '../domain/error.ts'
import type { Key } from '../domain/key.ts'
import type { Clock, Index, Store } from '../domain/ports.ts'
import type { Profile } from '../domain/profile.ts'
import { openMemory } from '../index.ts'
import { visitorOf } from '../mcp/principal.ts'
import type { McpEndpoint } from '../mcp/transports/http.ts'
import { type Barrier, secretBarrier } from '../memory/secretMasker.ts'
import { internalsOf, type Memory } from '../memory.ts'
import type { MakeBarrier } from '../open.ts'
import { heard } from '../stores/capabilities.ts'
import { openStore } from '../stores/open.ts'
import { ramStore } from '../stores/ram.ts'
import { borrowed } from '../stores/sharedStore.ts'
import { zstd } from '../stores/zstd.ts'
import { Credentials } from './auth/credentials.ts'
import type { Plan } from './config/serverConfig.ts'
import { isLoopback } from './http/hostPolicy.ts'
import { traceOf } from './http/httpError.ts'
import { Memories } from './memoryRegistry.ts'
import { type Log, quiet } from './observability/log.ts'
import { openTracing } from './observability/tracing.ts'
import { listReceipts } from './receipts.ts'
import { type Serving, serve } from './serve.ts'
import { SessionModels } from './upstreams/sessionModels.ts'
import { toldOnce } from './webhooks/webhook.ts'

export type OpenOptions = {
  /** Allows a public address without keys; default false. */
  readonly isOpen?: boolean | undefined
  readonly log?: Log | undefined
  readonly clock?: Clock | undefined
}

/** A running server with its memories. */
export type Opened = Serving & {
  readonly memories: Memories
  /** True when clients need keys. */
  readonly asksForKeys: boolean
}

/**
 * Opens stores, memories, keys and upstreams as configured, and starts the server. All profiles share one durable store
 * and one RAM store.
 *
 * @throws {MemoryError} `bad-option` for a public address without keys, unless `isOpen`.
 *
 * @example
 * const { settings } = await loadSettings({ file: 'threadkeep.config.json', sources: [] })
 * await using server = await openServer(planOf(settings, process.env))
 */
export async function openServer(plan: Plan, options: OpenOptions = {}): Promise<Opened> {
  const { log = quiet, clock = Date.now } = options
  const credentials = new Credentials(plan.keys.file, {
    isExpected: plan.keys.isExpected,
    onFault: (error) => log.fault('keys', traceOf(error)),
  })
  const asksForKeys = credentials.isRequired(clock())
  checkExposure(plan.listen.host, asksForKeys || options.isOpen === true)
  const stores = await openStores(plan)
  try {
    const models = createSessionModels(plan)
    const open = memoryOpener(plan, { stores, models, clock })
    const memories = await Memories.open(open, plan.ways)
    const server = await startServer(plan, { memories, models, credentials, log, clock, open })
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
    const { url, answers } = server
    return { url, answers, memories, asksForKeys, close, [Symbol.asyncDispose]: () => close() }
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

type Stores = { readonly durable: Store & Index; readonly ram: Store & Index; close(): Promise<void> }

/** Opens the durable store and the RAM store, which are one when the durable store is `ram:`. */
async function openStores({ store, storeKey, ram: bytes }: Plan): Promise<Stores> {
  const ram = heard(ramStore({ ...(bytes !== undefined && { bytes }), ...(zstd !== undefined && { pack: zstd }) }))
  const durable = store === 'ram:' && storeKey === undefined ? ram : await openStore(store, storeKey)
  const sharedRam = borrowed(ram)
  const close = async (): Promise<void> => {
    await ram.close()
    if (durable !== ram) await durable.close()
  }
  return { ram: sharedRam, durable: durable === ram ? sharedRam : borrowed(durable), close }
}

/** The upkeep models of sessions; undefined when the built-in rules do the upkeep. */
function createSessionModels({ upstreams, upkeep }: Plan): SessionModels | undefined {
  if (upstreams.length === 0 || upkeep === 'builtin' || upkeep === 'off') return undefined
  return new SessionModels({ upstream: upstreams, model: upkeep })
}

type OpenerDeps = { readonly stores: Stores; readonly models: SessionModels | undefined; readonly clock: Clock }
type OpenMemoryFor = (profile: Profile) => Promise<Memory>

/** Returns a function that opens a memory for a profile. Memories share secret maskers and the end-of-session callback. */
function memoryOpener(plan: Plan, { stores, models, clock }: OpenerDeps): OpenMemoryFor {
  const barrier = shareMaskers()
  const onSessionEnd = plan.onSessionEnd && toldOnce(plan.onSessionEnd)
  return (profile) => {
    // A RAM profile that does not read its scope's memory refuses a durable store.
    const store = profile.durability === 'ram' && !profile.sees.includes('scope') ? stores.ram : stores.durable
    return openMemory({
      profile,
      store,
      sessions: stores.ram,
      barrier,
      clock,
      ...(plan.upkeep === 'off' && { upkeep: false as const }),
      ...(plan.upkeep !== 'off' && models !== undefined && { model: (key: Key) => models.for(key) }),
      ...(onSessionEnd !== undefined && { onSessionEnd }),
    })
  }
}

/** One masker per policy and tokenizer: the secrets are in its RAM only and must outlive a replaced memory. */
function shareMaskers(): MakeBarrier {
  const maskers = new Map<string, Barrier>()
  return (policy, tokenizer) => {
    const name = `${policy} ${tokenizer.name}`
    const masker = maskers.get(name) ?? secretBarrier(policy, tokenizer)
    maskers.set(name, masker)
    return masker
  }
}

type ServerDeps = Pick<OpenerDeps, 'models' | 'clock'> & {
  readonly memories: Memories
  readonly credentials: Credentials
  readonly log: Log
  readonly open: OpenMemoryFor
}

async function startServer(plan: Plan, { memories, log, open, ...deps }: ServerDeps): Promise<Serving> {
  const { workspace, only } = plan.mcp
  const visitor = visitorOf({ workspace: workspace ?? (only === undefined ? plan.defaultScope : undefined), only })
  const openMcp = async () => openMcpEndpoint(plan, await open(plan.mcp.profile), { log, clock: deps.clock })
  try {
    return await serve({
      ...deps,
      ...plan.listen,
      memory: memories,
      log,
      mcp: { visitor, open: openMcp },
      upstream: plan.upstreams,
      defaultScope: plan.defaultScope,
      allowance: plan.allowance,
      largestBody: plan.largest.body,
      largestFile: plan.largest.file,
      patience: plan.patience,
      persistence: plan.persistence,
      prices: plan.prices,
      tracing: await openTracing(),
      sweepEvery: plan.sweepEvery,
      onFault: (id, trace) => log.fault(id, trace),
    })
  } catch (error) {
    await memories[Symbol.asyncDispose]()
    throw error
  }
}

/** Opens the MCP endpoint around a memory of its own. */
async function openMcpEndpoint(
  { store, storeKey, keys, mcp }: Plan,
  memory: Memory,
  { log, clock }: { readonly log: Log; readonly clock: Clock },
): Promise<McpEndpoint> {
  // Imported on demand: most servers never get an MCP request.
  const [{ openHost }, { McpEndpoint }] = await Promise.all([
    import('../mcp/services.ts'),
    import('../mcp/transports/http.ts'),
  ])
  const onFault = (error: unknown): void => log.fault('mcp', traceOf(error))
  const receipts = async (key: Key) => (await listReceipts(internalsOf(memory).sessions, key, 100)).items
  try {
    const { workspace, only = [] } = mcp
    const settings = { ...mcp.settings, keep: [keys.file] }
    const workspaces = workspace === undefined ? only : [workspace, ...only]
    const host = await openHost({ memory, store, storeKey, settings, workspaces, receipts, onFault, clock })
    return new McpEndpoint(host, () => memory.close())
  } catch (error) {
    await memory.close()
    throw error
  }
}
