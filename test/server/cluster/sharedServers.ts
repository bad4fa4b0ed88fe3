import type { SearchIndex, Store } from '../../../src/domain/ports.ts'
import { openStore } from '../../../src/stores/open.ts'
import { newPrefix, startRedis } from '../../stores/redis/redisServer.ts'
import { createEmptyDatabases } from '../../support/postgres.ts'
import { createSqliteUrls } from '../api/testStores.ts'
import { startServer, type TestServer, user } from '../start.ts'
import { type HeldModel, startHeldModel } from '../turn/heldModel.ts'

/** Starts a Redis server for a test file; resolves to a function that returns the URL of an empty store. */
export async function createRedisUrls(): Promise<() => string> {
  const redis = await startRedis()
  return () => `${redis.url}?prefix=${newPrefix()}`
}

/** Returns stores for a test file that several servers can share, by name. */
export async function createSharedStores(): Promise<
  readonly (readonly [name: string, store: () => string | Promise<string>])[]
> {
  return [
    ['SQLite', createSqliteUrls()],
    ['Redis', await createRedisUrls()],
    ['PostgreSQL', createEmptyDatabases()],
  ]
}

type Headers = Readonly<Record<string, string>>

export type SharedServers = AsyncDisposable & {
  readonly model: HeldModel
  readonly servers: readonly TestServer[]
  /** Sends one message to a server and returns the status and the reply. */
  ask(server: number, question: string, headers?: Headers): Promise<readonly [status: number, reply: string]>
  /** Sends messages to a server. */
  chat(server: number, messages: readonly unknown[], headers?: Headers): Promise<readonly [number, string]>
  /** The transcript as a server reads it; default: the first. */
  transcript(server?: number): Promise<readonly string[]>
  /** Faults of all servers. */
  faults(): readonly string[]
}

type Options = Omit<NonNullable<Parameters<typeof startServer>[0]>, 'memory' | 'upstream'> & {
  readonly memory?: NonNullable<Parameters<typeof startServer>[0]>['memory']
  /** Wraps the store of a server. */
  readonly wrapStore?: (store: Store & SearchIndex, server: number) => Store & SearchIndex
}

/** The session of these tests. */
export const session = 'demo:ann'

/** Starts servers with stores of their own on the same data, as processes on several machines have. */
export async function openSharedServers(
  store: string | Promise<string>,
  count: number,
  options: Options = {},
): Promise<SharedServers> {
  const url = await store
  const { wrapStore = (store) => store, memory, ...rest } = options
  const model = await startHeldModel()
  const stores = await Promise.all(Array.from({ length: count }, () => openStore(url)))
  const servers = await Promise.all(
    stores.map((store, index) =>
      startServer({ ...rest, upstream: model.url, memory: { ...memory, store: wrapStore(store, index) } }),
    ),
  )
  const chat: SharedServers['chat'] = async (server, messages, headers) => {
    const response = await (servers[server] as TestServer).postChat(session, { model: 'm', messages }, headers)
    const body = (await response.json()) as { readonly choices?: readonly [{ readonly message: { content: string } }] }
    return [response.status, body.choices?.[0].message.content ?? JSON.stringify(body)]
  }
  return {
    model,
    servers,
    chat,
    ask: (server, question, headers) => chat(server, [user(question)], headers),
    transcript: (server = 0) => (servers[server] as TestServer).transcriptLines(session),
    faults: () => servers.flatMap(({ faults }) => faults),
    [Symbol.asyncDispose]: async () => {
      for (const server of servers) await server.close(0)
      for (const store of stores) await store.close()
      await model[Symbol.asyncDispose]()
    },
  }
}

/** Transcript lines of questions with their replies. */
export const pairs = (...questions: readonly string[]): readonly string[] =>
  questions.flatMap((question) => [`user: ${question}`, `assistant: Re: ${question}`])
