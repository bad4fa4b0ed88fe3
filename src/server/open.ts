import { MemoryError } from '../domain/error.ts'
import type { Key } from '../domain/key.ts'
import type { Clock, Index, Store } from '../domain/ports.ts'
import type { Profile } from '../domain/profile.ts'
import { openMemory } from '../index.ts'
import type { McpEndpoint } from '../mcp/http.ts'
import { visitorOf } from '../mcp/scope.ts'
import { type Barrier, secretBarrier } from '../memory/secrets.ts'
import type { Memory } from '../memory.ts'
import type { MakeBarrier } from '../open.ts'
import { heard } from '../stores/beside.ts'
import { borrowed } from '../stores/borrowed.ts'
import { openStore } from '../stores/open.ts'
import { zstd } from '../stores/pack.ts'
import { ramStore } from '../stores/ram.ts'
import { Credentials } from './auth/credentials.ts'
import type { Plan } from './config/plan.ts'
import { isLoopback } from './http/hostPolicy.ts'
import { traceOf } from './http/httpError.ts'
import { Memories } from './memoryRegistry.ts'
import { type Log, quiet } from './observability/log.ts'
import { openTracing } from './observability/spans.ts'
import { listReceipts } from './receipts/receipts.ts'
import { type Serving, serve } from './serve.ts'
import { SessionModels } from './upstreams/sessionModels.ts'
import { toldOnce } from './webhooks/once.ts'

export type OpenOptions = {
  /** Whether others may reach the server although no keys are asked for. */
  readonly isOpen?: boolean | undefined
  readonly log?: Log | undefined
  readonly clock?: Clock | undefined
}

/** A server with everything behind it. */
export type Opened = Serving & {
  readonly memories: Memories
  /** Whether clients are asked for keys. */
  readonly asksForKeys: boolean
}

/**
 * Opens a server as it was planned: one store and one place in RAM for all ways of remembering, keys, upstreams, upkeep and
 * all that watches over it.
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
  checkReach(plan.listen.host, asksForKeys || options.isOpen === true)
  const stores = await openStores(plan)
  try {
    const models = modelsOf(plan)
    const open = opening(plan, { stores, models, clock })
    const memories = await Memories.open(open, plan.ways)
    const serving = await served(plan, { memories, models, credentials, log, clock, open })
    const shut = async (grace?: number): Promise<void> => {
      await serving.close(grace)
      await memories[Symbol.asyncDispose]()
      await stores.close()
      await credentials.settled()
    }
    let closed: Promise<void> | undefined
    const close = (grace?: number): Promise<void> => (closed ??= shut(grace))
    return {
      url: serving.url,
      answers: serving.answers,
      memories,
      asksForKeys,
      close,
      [Symbol.asyncDispose]: () => close(),
    }
  } catch (error) {
    await stores.close()
    throw error
  }
}

/** Whoever reaches a server without keys can read and write all it knows: that must be meant. */
function checkReach(host: string, isMeant: boolean): void {
  if (isMeant || isLoopback(host)) return
  throw new MemoryError(
    'bad-option',
    `host is ${JSON.stringify(host)}, where others can reach this server, and no keys are asked for: they could read and write all memory. Make a key with threadkeep keys create --scope NAME, or say --open to let everybody in.`,
    { param: 'host' },
  )
}

type Stores = { readonly durable: Store & Index; readonly ram: Store & Index; close(): Promise<void> }

/** One place for what is kept and one for what lives in RAM, lent to every memory: that is the same place where nothing is kept. */
async function openStores({ store, storeKey, ram: bytes }: Plan): Promise<Stores> {
  const ram = heard(
    ramStore({ ...(bytes === undefined ? {} : { bytes }), ...(zstd === undefined ? {} : { pack: zstd }) }),
  )
  const kept = store === 'ram:' && storeKey === undefined ? ram : await openStore(store, storeKey)
  const inRam = borrowed(ram)
  const close = async (): Promise<void> => {
    await ram.close()
    if (kept !== ram) await kept.close()
  }
  return { ram: inRam, durable: kept === ram ? inRam : borrowed(kept), close }
}

/** Who does the upkeep of each session. */
function modelsOf({ upstreams, upkeep }: Plan): SessionModels | undefined {
  if (upstreams.length === 0 || upkeep === 'builtin' || upkeep === 'off') return undefined
  return new SessionModels({ upstream: upstreams, model: upkeep })
}

type Means = { readonly stores: Stores; readonly models: SessionModels | undefined; readonly clock: Clock }

/** Opens a memory for a way of remembering; secrets and ends are seen to together, whichever memory a session is in. */
function opening(plan: Plan, { stores, models, clock }: Means): (profile: Profile) => Promise<Memory> {
  const barrier = sharedBarriers()
  const onSessionEnd = plan.onSessionEnd && toldOnce(plan.onSessionEnd)
  return (profile) => {
    // What lives in RAM and sees nothing else has no use for a file.
    const store = profile.durability === 'ram' && !profile.sees.includes('scope') ? stores.ram : stores.durable
    return openMemory({
      ...{ profile, store, sessions: stores.ram, barrier, clock },
      ...(plan.upkeep === 'off'
        ? { upkeep: false as const }
        : models === undefined
          ? {}
          : { model: (key: Key) => models.for(key) }),
      ...(onSessionEnd === undefined ? {} : { onSessionEnd }),
    })
  }
}

/** One barrier for all memories with the same policy: what they know of secrets is in RAM alone, and must outlive each of them. */
function sharedBarriers(): MakeBarrier {
  const barriers = new Map<string, Barrier>()
  return (policy, tokenizer) => {
    // What is put back is weighed as its memory weighs.
    const name = `${policy} ${tokenizer.name}`
    const barrier = barriers.get(name) ?? secretBarrier(policy, tokenizer)
    barriers.set(name, barrier)
    return barrier
  }
}

type Staff = Pick<Means, 'models' | 'clock'> & {
  readonly memories: Memories
  readonly credentials: Credentials
  readonly log: Log
  readonly open: (profile: Profile) => Promise<Memory>
}

async function served(plan: Plan, { memories, log, open, ...staff }: Staff): Promise<Serving> {
  const { workspace, only } = plan.mcp
  const visitor = visitorOf({ workspace: workspace ?? (only === undefined ? plan.defaultScope : undefined), only })
  const mcp = { visitor, open: async () => endpoint(plan, await open(plan.mcp.profile), { log, clock: staff.clock }) }
  try {
    return await serve({
      ...staff,
      ...plan.listen,
      memory: memories,
      log,
      mcp,
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

/** What answers at `/mcp`, around a memory of its own. */
async function endpoint(
  { store, storeKey, keys, mcp }: Plan,
  memory: Memory,
  { log, clock }: { readonly log: Log; readonly clock: Clock },
): Promise<McpEndpoint> {
  // Loaded only now: most servers are never asked for it.
  const [{ openHost }, { McpEndpoint }] = await Promise.all([import('../mcp/host.ts'), import('../mcp/http.ts')])
  const onFault = (error: unknown): void => log.fault('mcp', traceOf(error))
  const receipts = async (key: Key) => (await listReceipts(memory.parts.sessions, key, 100)).items
  try {
    const [{ workspace, only = [] }, settings] = [mcp, { ...mcp.settings, keep: [keys.file] }]
    const workspaces = workspace === undefined ? only : [workspace, ...only]
    const host = await openHost({ memory, store, storeKey, settings, workspaces, receipts, onFault, clock })
    return new McpEndpoint(host, () => memory.close())
  } catch (error) {
    await memory.close()
    throw error
  }
}
