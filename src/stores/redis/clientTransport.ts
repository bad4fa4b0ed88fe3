import { createClient, createCluster, createSentinel } from '@redis/client'
import { backoffDelay } from '../../domain/retry.ts'
import type { RedisTransport, Reply } from './transport.ts'
import type { RedisAddress, Server, ServerTarget } from './url.ts'

const maxReconnectDelayMs = 2_000

/** Calls of a client that all kinds of connections have in common. */
type Connection = {
  send(key: string, command: readonly string[], signal: AbortSignal): Promise<Reply>
  sendToAll(command: readonly string[], signal: AbortSignal): Promise<readonly Reply[]>
  subscribe(channel: string, onMessage: (message: string) => void): Promise<void>
  connect(): Promise<unknown>
  close(): Promise<unknown>
  destroy(): void
}

/** Opens a connection over TCP or TLS. Rejects if none is there within the time-out. */
export async function connectClient(address: RedisAddress, target: ServerTarget): Promise<RedisTransport> {
  const transport = new ClientTransport(address, target)
  await transport.connect()
  return transport
}

/** Error for a reply that did not arrive in time. */
export class ReplyTimeoutError extends Error {}

class ClientTransport implements RedisTransport {
  readonly address: string
  onConnect = (): void => undefined
  readonly #timeoutMs: number
  readonly #connection: Connection
  #onGap = (): void => undefined
  /** The last error of the connection, which explains why commands time out. */
  #lastError: unknown

  constructor(address: RedisAddress, target: ServerTarget) {
    this.address = address.shown
    this.#timeoutMs = address.timeoutMs
    this.#connection = createConnection(address, target, {
      onReady: () => {
        this.#lastError = undefined
        this.onConnect()
        this.#onGap()
      },
      onListening: () => this.#onGap(),
      onError: (error) => {
        this.#lastError = error
      },
    })
  }

  async connect(): Promise<void> {
    try {
      await this.#limitTime((signal) => {
        signal.addEventListener('abort', () => this.#connection.destroy())
        return this.#connection.connect()
      })
    } catch (error) {
      throw this.#lastError ?? error
    }
  }

  send(key: string, command: readonly string[]): Promise<Reply> {
    return this.#limitTime((signal) => this.#connection.send(key, command, signal))
  }

  sendToAll(command: readonly string[]): Promise<readonly Reply[]> {
    return this.#limitTime((signal) => this.#connection.sendToAll(command, signal))
  }

  async subscribe(channel: string, onMessage: (message: string) => void, onGap: () => void): Promise<boolean> {
    this.#onGap = onGap
    await this.#limitTime(() => this.#connection.subscribe(channel, onMessage))
    return true
  }

  async close(): Promise<void> {
    await this.#limitTime(() => this.#connection.close()).catch(() => this.#connection.destroy())
  }

  /** Commands that were not sent yet when the time is over are not sent any more. */
  async #limitTime<T>(run: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const controller = new AbortController()
    let timer: NodeJS.Timeout | undefined
    const timeout = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        reject(this.#lastError ?? new ReplyTimeoutError('no reply'))
        controller.abort()
      }, this.#timeoutMs)
    })
    try {
      return await Promise.race([run(controller.signal), timeout])
    } finally {
      clearTimeout(timer)
    }
  }
}

type ConnectionEvents = {
  readonly onReady: () => void
  /** Called after a new connection that only listens to channels. */
  readonly onListening: () => void
  readonly onError: (error: unknown) => void
}

function createConnection(address: RedisAddress, target: ServerTarget, events: ConnectionEvents): Connection {
  const { servers, kind, master } = target
  if (kind === 'cluster') return createClusterConnection(address, servers, events)
  if (kind === 'sentinel') return createSentinelConnection(address, { servers, master }, events)
  return createServerConnection(address, servers[0] as Server, events)
}

const reconnectStrategy = (retries: number): number =>
  Math.min(maxReconnectDelayMs, backoffDelay(retries + 1, 25)) * (0.5 + Math.random() / 2)

/** Options of each connection. A server that stops answering pings counts as lost. */
function clientOptions({ credentials, database, tls, timeoutMs }: RedisAddress) {
  const socket = { reconnectStrategy, connectTimeout: timeoutMs, socketTimeout: 2 * timeoutMs }
  return {
    ...credentials,
    database,
    RESP: 2 as const,
    pingInterval: timeoutMs,
    socket: tls === undefined ? socket : { ...socket, tls: true as const, ...tls },
  }
}

type Send = (args: string[], options: { abortSignal: AbortSignal }) => Promise<unknown>

function createServerConnection(
  address: RedisAddress,
  { host, port }: Server,
  { onReady, onListening, onError }: ConnectionEvents,
): Connection {
  const options = clientOptions(address)
  const client = createClient({ ...options, socket: { ...options.socket, host, port } })
  const subscriber = client.duplicate()
  client.on('ready', onReady).on('error', onError)
  subscriber.on('ready', onListening).on('error', onError)
  const send: Send = (args, commandOptions) => client.sendCommand(args, commandOptions)
  return {
    send: async (_, command, abortSignal) => (await send([...command], { abortSignal })) as Reply,
    sendToAll: async (command, abortSignal) => [(await send([...command], { abortSignal })) as Reply],
    subscribe: async (channel, onMessage) => {
      await subscriber.connect()
      await subscriber.subscribe(channel, onMessage)
    },
    connect: () => client.connect(),
    close: () => Promise.all([client, subscriber].map((open) => open.isOpen && open.close())),
    destroy: () => {
      for (const open of [client, subscriber]) if (open.isOpen) open.destroy()
    },
  }
}

function createClusterConnection(
  address: RedisAddress,
  servers: readonly Server[],
  { onReady, onError }: ConnectionEvents,
): Connection {
  const { RESP, ...options } = clientOptions(address)
  const cluster = createCluster({
    RESP,
    defaults: options,
    rootNodes: servers.map(({ host, port }) => ({ ...options, socket: { ...options.socket, host, port } })),
  })
  cluster.on('node-ready', onReady).on('error', onError).on('node-error', onError)
  return {
    send: async (key, command, abortSignal) =>
      (await cluster.sendCommand(key, false, [...command], { abortSignal })) as Reply,
    sendToAll: (command, abortSignal) =>
      Promise.all(
        cluster.masters.map(async (node) => {
          const client = await cluster.nodeClient(node)
          return (await client.sendCommand([...command], { abortSignal })) as Reply
        }),
      ),
    subscribe: async (channel, onMessage) => {
      await cluster.subscribe(channel, onMessage)
    },
    connect: () => cluster.connect(),
    close: () => cluster.close(),
    destroy: () => cluster.destroy(),
  }
}

function createSentinelConnection(
  address: RedisAddress,
  { servers, master }: Pick<ServerTarget, 'servers' | 'master'>,
  { onReady, onError }: ConnectionEvents,
): Connection {
  const { RESP, ...options } = clientOptions(address)
  const sentinel = createSentinel({
    RESP,
    name: master,
    sentinelRootNodes: [...servers],
    nodeClientOptions: options,
    // Sentinels have users and passwords of their own, or none.
    sentinelClientOptions: { socket: options.socket },
  })
  sentinel.on('topology-change', onReady).on('ready', onReady).on('error', onError).on('client-error', onError)
  return {
    send: async (_, command, abortSignal) =>
      (await sentinel.sendCommand(false, [...command], { abortSignal })) as Reply,
    sendToAll: async (command, abortSignal) => [
      (await sentinel.sendCommand(false, [...command], { abortSignal })) as Reply,
    ],
    subscribe: async (channel, onMessage) => {
      await sentinel.subscribe(channel, onMessage)
    },
    connect: () => sentinel.connect(),
    close: () => sentinel.close(),
    destroy: () => void sentinel.destroy(),
  }
}
