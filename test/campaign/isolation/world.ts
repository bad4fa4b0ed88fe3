import { AsyncLocalStorage } from 'node:async_hooks'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Json } from '../../../src/domain/entry.ts'
import { MemoryError } from '../../../src/domain/error.ts'
import type { SearchIndex, Store } from '../../../src/domain/ports.ts'
import { FileService } from '../../../src/files/files.ts'
import { type Memory, type MemoryTable, openMemory } from '../../../src/index.ts'
import { createPrincipal } from '../../../src/mcp/principal.ts'
import { type McpServices, openMcpServices } from '../../../src/mcp/services.ts'
import { registeredTools } from '../../../src/mcp/tools/registry.ts'
import { McpHttpServer } from '../../../src/mcp/transports/http.ts'
import { internalsOf } from '../../../src/memory.ts'
import type { ProfileName } from '../../../src/profiles/index.ts'
import { Credentials } from '../../../src/server/auth/credentials.ts'
import type { OpenMcp } from '../../../src/server/mcpEndpoint.ts'
import { type RunningServer, serve } from '../../../src/server/serve.ts'
import { withRelativeEpochs } from '../../../src/stores/conformance/relativeEpochs.ts'
import { redisStore } from '../../../src/stores/redis.ts'
import type { Upkeep } from '../../../src/upkeep/upkeep.ts'
import { HttpClient } from '../httpClient.ts'
import { Random, seedOf } from '../random.ts'
import { useRandom } from './seededCrypto.ts'
import type { ServerStore, StoreServers } from './storeServers.ts'

export type Tenant = 'acme' | 'globex'
export const otherTenant = { acme: 'globex', globex: 'acme' } as const
/**
 * An operation of a tenant. In its arguments, `{scope}` stands for the name of the tenant, `{other}` for that of the other
 * one, `{folder}` for the folder of the world, and `{file}` or `{other file}` for the last such id that the tenant, or the
 * other one, was shown.
 */
export type Operation = {
  readonly surface: 'memory' | 'tool' | 'http'
  readonly name: string
  readonly args: Json
}
export type WorldOptions = {
  readonly profile: ProfileName
  readonly store: 'ram' | 'sqlite' | 'encrypted' | ServerStore
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
  (name: keyof Upkeep): MemoryMethod =>
  (memory, _, args) =>
    (memory.upkeep[name] as (...all: Json[]) => unknown).apply(memory.upkeep, [...args])

/** The operations of upkeep that belong to one tenant, by the name under which they are listed. */
export const upkeepMethods = {
  record: 'record',
  updateRecord: 'update',
  clearRecord: 'clear',
  facts: 'facts',
  summaries: 'summaries',
  losses: 'losses',
  knowledge: 'knowledge',
  approve: 'approve',
  restore: 'restore',
  runUpkeep: 'run',
  optimizerStatus: 'optimizerStatus',
} as const satisfies Readonly<Record<string, keyof Upkeep>>

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
  ...Object.fromEntries(Object.entries(upkeepMethods).map(([name, method]) => [name, callUpkeep(method)])),
}

type FileMethod = (files: FileService, scope: Tenant, args: readonly Json[]) => unknown

/** The operations on files of a tenant, by the name of the method of `FileService`. */
export const fileMethods: Readonly<Record<string, FileMethod>> = {
  add: (files, scope, [name, text]) => files.add(scope, { name: String(name), bytes: Buffer.from(String(text)) }),
  list: (files, scope, [options]) => files.list(scope, options as object),
  get: (files, scope, [id]) => files.get(scope, id as string),
  text: (files, scope, [id]) => files.text(scope, id as string),
  remove: (files, scope, [id]) => files.remove(scope, id as string),
}

/** Ids that responses show, by the placeholder that stands for them in later operations. */
const idPatterns = {
  file: /"id":\s*"([0-9a-f]{12})"/,
  response: /"(resp_[\w-]+)"/,
  conversation: /"(conv_[\w-]+)"/,
  item: /"(msg_[\w-]+)"/,
  knowledge: /"id":\s*"(k\d+)"/,
  receipt: /"(rc_[\w-]+)"/,
} as const
export type IdName = keyof typeof idPatterns
export type Ids = ReadonlyMap<IdName, string>

/** The random part of a receipt's id, also alone in a bundle. It comes from a supply that all tenants share. */
const receiptDigits = /(?<=rc_[\w-]+_|"id":")[0-9a-f]{16}\b/g

/** Servers of the stores, and a name and time of the world. */
export type WorldPlace = { readonly servers: StoreServers; readonly name: string; readonly now: number }

/** Opens a store in Redis whose epochs follow from the operations, and which leaves the clock as it is. */
async function openRedisStore(url: string): Promise<Store & SearchIndex> {
  const store = await redisStore(url)
  const { shared: _, ...capabilities } = store.capabilities
  return { ...withRelativeEpochs(store), capabilities }
}

/** Interval of a sweep that is not due while a world exists: the upkeep that it starts would depend on the time. */
const neverMs = 2 ** 31 - 1

/** Folder of each tenant, which the MCP file tools may use, with a link to the folder of the other tenant. */
function createFolders(folder: string): Readonly<Record<Tenant, readonly string[]>> {
  const paths = { acme: [join(folder, 'acme')], globex: [join(folder, 'globex')] }
  for (const [path] of Object.values(paths)) mkdirSync(path as string)
  for (const [tenant, other] of Object.entries(otherTenant)) symlinkSync(`../${other}`, join(folder, tenant, 'link'))
  return paths
}

/** Where an encrypted store takes its key from; undefined for other stores. */
function writeKey(store: WorldOptions['store'], folder: string): string | undefined {
  if (store !== 'encrypted') return undefined
  const path = join(folder, 'key')
  // The same in every world: the key decides about the order of what is found by its digest.
  writeFileSync(path, Buffer.alloc(32, 7).toString('base64'), { mode: 0o600 })
  return `file:${path}`
}

/** One engine with a clock that its user sets, so that two of them give the same responses to the same operations. */
export class World implements AsyncDisposable {
  now: number
  private readonly openedAt = Date.now()
  private readonly receipts: Readonly<Record<Tenant, Map<string, string>>> = { acme: new Map(), globex: new Map() }
  private readonly randoms: Record<Tenant, Random> = { acme: new Random(1), globex: new Random(2) }
  private readonly performed: Record<Tenant, number> = { acme: 0, globex: 0 }
  private readonly ids: Readonly<Record<Tenant, Map<IdName, string>>> = { acme: new Map(), globex: new Map() }
  /** The tenant of a running operation: files of several may be added at once, each with an id of its own tenant. */
  private readonly running = new AsyncLocalStorage<Tenant>()
  private readonly folder: string
  private readonly memory: Memory
  private readonly files: FileService
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
    this.files = new FileService({
      ...internalsOf(memory),
      clock: () => this.now,
      randomBytes: (length) => this.randomBytes(length),
    })
  }

  static async open(
    { profile, store, surface, withUpkeep }: WorldOptions,
    { servers, name, now }: WorldPlace,
  ): Promise<World> {
    const folder = mkdtempSync(join(realpathSync(tmpdir()), 'threadkeep-isolation-'))
    const clock = (): number => world?.now ?? now
    let world: World | undefined
    const file = `sqlite:${join(folder, 'a.db')}`
    const urls = { ram: 'ram:', sqlite: file, encrypted: file }
    const url = store === 'postgres' || store === 'redis' ? await servers.emptyStore(store, name) : urls[store]
    const storeKey = writeKey(store, folder)
    const memory = await openMemory({
      profile,
      clock,
      // Profiles that live in RAM refuse a durable store.
      ...(profile === 'ephemeral' && store !== 'redis'
        ? {}
        : { store: store === 'redis' ? await openRedisStore(url) : url }),
      ...(storeKey !== undefined && { storeKey }),
      ...(withUpkeep ? {} : { upkeep: false as const }),
    })
    world = new World(memory, folder, withUpkeep, now)
    if (surface === 'memory') return world
    const services = {
      memory,
      store: url,
      storeKey,
      settings: { audit: join(folder, 'audit.jsonl'), users: createFolders(folder), write: true },
      workspaces: [],
      listReceipts: async () => [],
      onError: () => undefined,
      clock,
    }
    if (surface === 'tool') world.mcp = await openMcpServices(services)
    else {
      // At the first request of either tenant, opening it would begin upkeep that is due at another time.
      const endpoint = new McpHttpServer(await openMcpServices(services), async () => undefined)
      await world.serve(clock, { visitor: createPrincipal({}), open: async () => endpoint })
    }
    return world
  }

  private async serve(clock: () => number, mcp: OpenMcp): Promise<void> {
    const credentials = new Credentials(join(this.folder, 'keys.json'))
    const createKey = async (scope: Tenant) => (await credentials.create({ scopes: [scope], name: scope }, 0)).key
    const keys = { acme: await createKey('acme'), globex: await createKey('globex') }
    const running = await serve({ memory: this.memory, port: 0, credentials, clock, mcp, sweepIntervalMs: neverMs })
    this.server = { running, keys, client: new HttpClient(running.url, { connections: 2 }) }
  }

  /** The ids that a tenant was shown last. */
  idsOf(tenant: Tenant): Ids {
    return new Map(this.ids[tenant])
  }

  /** Performs an operation, with the ids that the other tenant was shown, and returns its normalised response. */
  async perform(tenant: Tenant, operation: Operation, otherIds: Ids): Promise<string> {
    const args = JSON.parse(this.resolve(tenant, JSON.stringify(operation.args), otherIds)) as Json
    // One generator per operation: what goes on after a response takes a number that depends on the time.
    this.randoms[tenant] = new Random(seedOf(tenant === 'acme' ? 1 : 2, ++this.performed[tenant]))
    useRandom(this.randoms[tenant])
    const response = await this.running.run(tenant, () => this.respond(tenant, operation, args))
    for (const [name, pattern] of Object.entries(idPatterns)) {
      const id = pattern.exec(response)?.[1]
      if (id !== undefined) this.ids[tenant].set(name as IdName, id)
    }
    if (this.withUpkeep) await this.memory.upkeep.whenIdle()
    return this.normalise(tenant, response)
  }

  /** Replaces the placeholders of an operation. */
  private resolve(tenant: Tenant, text: string, otherIds: Ids): string {
    return text
      .replaceAll('{scope}', tenant)
      .replaceAll('{other}', otherTenant[tenant])
      .replaceAll('{folder}', this.folder)
      .replaceAll(
        /\{(other )?(file|response|conversation|item|knowledge|receipt)\}/g,
        (_, other: string | undefined, name: IdName) =>
          (other === undefined ? this.ids[tenant] : otherIds).get(name) ?? 'unknown',
      )
  }

  private async respond(tenant: Tenant, { surface, name }: Operation, args: Json): Promise<string> {
    if (surface === 'http') return this.request(tenant, args as HttpArgs)
    try {
      const [, fileMethod] = /^files\.(.*)/.exec(name) ?? []
      const result =
        fileMethod !== undefined
          ? await fileMethods[fileMethod]?.(this.files, tenant, args as readonly Json[])
          : surface === 'memory'
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
      client: tenant,
      signal: new AbortController().signal,
      progress: () => undefined,
      log: () => undefined,
    })
  }

  private async request(tenant: Tenant, args: HttpArgs): Promise<string> {
    if (this.server === undefined) return ''
    const { client, keys } = this.server
    const headers = { ...args.headers, authorization: `Bearer ${keys[tenant]}` }
    try {
      const { status, body } = await client.request({
        method: args.method,
        path: args.path,
        headers,
        body: args.body === undefined ? undefined : Buffer.from(args.body),
      })
      if (addsFiles.test(`${args.path} ${args.body}`)) await waitForFiles(client, tenant, headers.authorization)
      return `${status} ${body}`
    } catch (error) {
      return (error as Error).message
    }
  }

  /**
   * Replaces the only values that do not follow from the operations: the folder, measured durations, times of the offline
   * model and of files, which come from the clock of the machine, and random digits of receipts. Receipts are numbered in
   * the order of their appearance; one of the other tenant gets a name that occurs in no response of a tenant alone.
   */
  private normalise(tenant: Tenant, text: string): string {
    const names = this.receipts[tenant]
    const foreign = this.receipts[otherTenant[tenant]]
    return (
      text
        .replaceAll(this.folder, '{folder}')
        .replaceAll(/"(latency|millis)":\s*\{[^{}]*\}/g, '"$1":{}')
        .replaceAll(/\b20\d\d-\d\d-\d\dT[\d:.]+Z/g, (time) => (this.isMachineTime(Date.parse(time)) ? 'now' : time))
        .replaceAll(/"(created(?:_at)?|completed_at)":\s*(\d+)/g, (field, name: string, seconds: string) =>
          this.isMachineTime(Number(seconds) * 1_000) ? `"${name}":0` : field,
        )
        // Hashes of a bundle are over the receipts in it, too; its records are compared themselves.
        .replaceAll(/"hash":"[0-9a-f]{64}"/g, '"hash":""')
        .replaceAll(receiptDigits, (digits) => {
          if (foreign.has(digits)) return 'of the other tenant'
          const known = names.get(digits) ?? `#${names.size + 1}`
          names.set(digits, known)
          return known
        })
    )
  }

  /** True for a time since this world was opened; times of its own clock are compared. */
  private isMachineTime(at: number): boolean {
    return at >= Math.floor(this.openedAt / 1_000) * 1_000 && at <= Date.now()
  }

  private randomBytes(length: number): Uint8Array {
    const random = this.randoms[this.running.getStore() ?? 'acme']
    return Uint8Array.from({ length }, () => random.int(0, 255))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.server?.client.close()
    await this.server?.running.close(0)
    await this.mcp?.close()
    await this.files.close()
    await this.memory.close()
    // The last use of a key may still be on its way to the file of keys.
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 })
  }
}

type HttpArgs = {
  readonly method: string
  readonly path: string
  readonly body?: string
  readonly headers?: Readonly<Record<string, string>>
}

/** Requests that may add a file, which is indexed after the response. */
const addsFiles = /\/files|file_data|"document"/

/** Waits until all files of a tenant are indexed, so that the next responses do not depend on the time that it takes. */
async function waitForFiles(client: HttpClient, tenant: Tenant, authorization: string): Promise<void> {
  for (;;) {
    const path = `/api/scopes/${tenant}/files?limit=500`
    const { body } = await client.request({ method: 'GET', path, headers: { authorization } })
    if (!body.includes('"status":"indexing"')) return
  }
}
