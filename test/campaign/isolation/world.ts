import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Json } from '../../../src/domain/entry.ts'
import { MemoryError } from '../../../src/domain/error.ts'
import type { SearchIndex, Store } from '../../../src/domain/ports.ts'
import { type Memory, type MemoryTable, openMemory } from '../../../src/index.ts'
import { type McpServices, openMcpServices } from '../../../src/mcp/services.ts'
import { registeredTools } from '../../../src/mcp/tools/registry.ts'
import type { ProfileName } from '../../../src/profiles/index.ts'
import { Credentials } from '../../../src/server/auth/credentials.ts'
import { type RunningServer, serve } from '../../../src/server/serve.ts'
import { withRelativeEpochs } from '../../../src/stores/conformance/relativeEpochs.ts'
import { redisStore } from '../../../src/stores/redis.ts'
import { HttpClient } from '../httpClient.ts'
import { Random } from '../random.ts'
import { useRandom } from './seededCrypto.ts'
import type { ServerStore, StoreServers } from './storeServers.ts'

export type Tenant = 'acme' | 'globex'
/** An operation of a tenant; `{scope}` in its arguments stands for the name of the tenant. */
export type Operation = {
  readonly surface: 'memory' | 'tool' | 'http'
  readonly name: string
  readonly args: Json
}
export type WorldOptions = {
  readonly profile: ProfileName
  readonly store: 'ram' | 'sqlite' | ServerStore
  readonly surface: Operation['surface']
  readonly withUpkeep: boolean
}

type MemoryMethod = (memory: Memory, scope: Tenant, args: readonly Json[]) => unknown
const collect = async (bytes: AsyncIterable<Uint8Array>): Promise<string> => {
  const chunks: Uint8Array[] = []
  for await (const chunk of bytes) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}
const call =
  (name: keyof Memory): MemoryMethod =>
  (memory, _, args) =>
    (memory[name] as (...all: Json[]) => unknown).apply(memory, [...args])
const callUpkeep =
  (
    name: 'record' | 'update' | 'facts' | 'summaries' | 'losses' | 'knowledge' | 'optimizerStatus' | 'clear',
  ): MemoryMethod =>
  (memory, _, args) =>
    (memory.upkeep[name] as (...all: Json[]) => unknown).apply(memory.upkeep, [...args])

const callTable =
  (name: keyof MemoryTable): MemoryMethod =>
  (memory, _, [scope, ...args]) => {
    const table = memory.table(scope as string)
    return (table[name] as (...all: Json[]) => unknown).apply(table, args)
  }

/** Every operation of the library that belongs to one tenant. */
export const memoryMethods: Readonly<Record<string, MemoryMethod>> = {
  append: call('append'),
  context: async (memory, _, [key, options]) => {
    const { messages, text, ledger } = await memory.context(key as string, options as object)
    return { messages, text, ledger }
  },
  replace: call('replace'),
  replaceFrom: call('replaceFrom'),
  sessions: call('sessions'),
  putRow: callTable('put'),
  getRow: callTable('get'),
  deleteRow: callTable('delete'),
  listRows: callTable('list'),
  transcript: call('transcript'),
  search: call('search'),
  remember: call('remember'),
  epoch: call('epoch'),
  forget: call('forget'),
  end: call('end'),
  transfer: call('transfer'),
  metadata: call('metadata'),
  setMetadata: call('setMetadata'),
  mask: call('mask'),
  knowsSecrets: call('knowsSecrets'),
  trace: call('trace'),
  export: (memory, scope) => collect(memory.export({ scope })),
  import: async (memory, scope) => {
    const bundle = Buffer.from(await collect(memory.export({ scope })))
    const open = async function* () {
      yield bundle
    }
    return memory.import(open, { scope, onExisting: 'skip' })
  },
  record: callUpkeep('record'),
  updateRecord: callUpkeep('update'),
  clearRecord: callUpkeep('clear'),
  facts: callUpkeep('facts'),
  summaries: callUpkeep('summaries'),
  losses: callUpkeep('losses'),
  knowledge: callUpkeep('knowledge'),
  optimizerStatus: callUpkeep('optimizerStatus'),
}

/** The random part of a receipt's id, which comes from a supply that all tenants share. */
const receiptDigits = /(?<=rc_[\w-]+_)[0-9a-f]{16}\b/g

/** Servers of the stores, and a name and time of the world. */
export type WorldPlace = { readonly servers: StoreServers; readonly name: string; readonly now: number }

/** Opens a store in Redis whose epochs follow from the operations, and which leaves the clock as it is. */
async function openRedisStore(url: string): Promise<Store & SearchIndex> {
  const store = await redisStore(url)
  const { shared: _, ...capabilities } = store.capabilities
  return { ...withRelativeEpochs(store), capabilities }
}

/** One engine with a clock that its user sets, so that two of them give the same responses to the same operations. */
export class World implements AsyncDisposable {
  now: number
  private readonly openedAt = Date.now()
  private readonly receipts: Readonly<Record<Tenant, Map<string, string>>> = { acme: new Map(), globex: new Map() }
  private readonly randoms: Readonly<Record<Tenant, Random>> = { acme: new Random(1), globex: new Random(2) }
  private readonly folder: string
  private readonly memory: Memory
  private readonly withUpkeep: boolean
  private mcp: McpServices | undefined
  private server:
    | { readonly running: RunningServer; readonly client: HttpClient; readonly keys: Record<Tenant, string> }
    | undefined

  private constructor(memory: Memory, folder: string, withUpkeep: boolean, now: number) {
    this.now = now
    this.memory = memory
    this.folder = folder
    this.withUpkeep = withUpkeep
  }

  static async open(
    { profile, store, surface, withUpkeep }: WorldOptions,
    { servers, name, now }: WorldPlace,
  ): Promise<World> {
    const folder = mkdtempSync(join(tmpdir(), 'threadkeep-isolation-'))
    const clock = (): number => world?.now ?? now
    let world: World | undefined
    const urls = { ram: 'ram:', sqlite: `sqlite:${join(folder, 'a.db')}` }
    const url = store === 'postgres' || store === 'redis' ? await servers.emptyStore(store, name) : urls[store]
    const memory = await openMemory({
      profile,
      clock,
      // Profiles that live in RAM refuse a durable store.
      ...(profile === 'ephemeral' && store !== 'redis'
        ? {}
        : { store: store === 'redis' ? await openRedisStore(url) : url }),
      ...(withUpkeep ? {} : { upkeep: false as const }),
    })
    world = new World(memory, folder, withUpkeep, now)
    if (surface === 'tool')
      world.mcp = await openMcpServices({
        memory,
        store: url,
        settings: { audit: join(folder, 'audit.jsonl') },
        workspaces: [],
        listReceipts: async () => [],
        onError: () => undefined,
        clock,
      })
    if (surface === 'http') await world.serve(clock)
    return world
  }

  private async serve(clock: () => number): Promise<void> {
    const credentials = new Credentials(join(this.folder, 'keys.json'))
    const createKey = async (scope: Tenant) => (await credentials.create({ scopes: [scope] }, 0)).key
    const keys = { acme: await createKey('acme'), globex: await createKey('globex') }
    const running = await serve({ memory: this.memory, port: 0, credentials, clock })
    this.server = { running, keys, client: new HttpClient(running.url, { connections: 2 }) }
  }

  /** Performs an operation and returns its normalised response. */
  async perform(tenant: Tenant, operation: Operation): Promise<string> {
    const args = JSON.parse(JSON.stringify(operation.args).replaceAll('{scope}', tenant)) as Json
    useRandom(this.randoms[tenant])
    const response = await this.respond(tenant, operation, args)
    if (this.withUpkeep) await this.memory.upkeep.whenIdle()
    return this.normalise(tenant, response)
  }

  private async respond(tenant: Tenant, { surface, name }: Operation, args: Json): Promise<string> {
    if (surface === 'http') return this.request(tenant, args as { method: string; path: string })
    try {
      const result =
        surface === 'memory'
          ? await memoryMethods[name]?.(this.memory, tenant, args as readonly Json[])
          : await this.callTool(tenant, name, args)
      return JSON.stringify(result) ?? 'undefined'
    } catch (error) {
      return error instanceof MemoryError ? `${error.code}: ${error.message}` : `${(error as Error)?.stack}`
    }
  }

  private async callTool(tenant: Tenant, name: string, args: Json): Promise<unknown> {
    const tool = registeredTools.find((registered) => registered.name === name)
    if (tool === undefined || this.mcp === undefined) return undefined
    const { data, success, error } = tool.input.safeParse(args)
    if (!success) return JSON.stringify(error.issues)
    return tool.run(data, {
      context: this.mcp.toolContext,
      workspace: tenant,
      client: 'campaign',
      signal: new AbortController().signal,
      progress: () => undefined,
      log: () => undefined,
    })
  }

  private async request(
    tenant: Tenant,
    args: { method: string; path: string; body?: string; headers?: Record<string, string> },
  ): Promise<string> {
    if (this.server === undefined) return ''
    try {
      const { status, body } = await this.server.client.request({
        method: args.method,
        path: args.path,
        headers: { ...args.headers, authorization: `Bearer ${this.server.keys[tenant]}` },
        body: args.body === undefined ? undefined : Buffer.from(args.body),
      })
      return `${status} ${body}`
    } catch (error) {
      return (error as Error).message
    }
  }

  /**
   * Replaces the only values that do not follow from the operations: times of the offline model, which reads the clock
   * of the machine, and random digits of receipts. Receipts are numbered in the order of their appearance; one of the
   * other tenant gets a name that occurs in no response of a tenant alone.
   */
  private normalise(tenant: Tenant, text: string): string {
    const names = this.receipts[tenant]
    const foreign = this.receipts[tenant === 'acme' ? 'globex' : 'acme']
    return text
      .replaceAll(/"(created(?:_at)?|completed_at)":\s*(\d+)/g, (field, name: string, seconds: string) =>
        this.isMachineTime(Number(seconds)) ? `"${name}":0` : field,
      )
      .replaceAll(receiptDigits, (digits) => {
        if (foreign.has(digits)) return 'of the other tenant'
        const known = names.get(digits) ?? `#${names.size + 1}`
        names.set(digits, known)
        return known
      })
  }

  /** True for a time in seconds since this world was opened; times of its own clock are compared. */
  private isMachineTime(seconds: number): boolean {
    return seconds >= Math.floor(this.openedAt / 1_000) && seconds <= Date.now() / 1_000
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.server?.client.close()
    await this.server?.running.close(0)
    await this.mcp?.close()
    await this.memory.close()
    // The last use of a key may still be on its way to the file of keys.
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 })
  }
}
