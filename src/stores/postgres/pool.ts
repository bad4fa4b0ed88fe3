import pg from 'pg'
import { backoffDelay } from '../../domain/retry.ts'
import { type Connection, type Driver, type NotificationListener, typeIds } from './driver.ts'
import type { ConnectionSettings } from './url.ts'

const { Pool, types: defaultTypes } = pg

const maxReconnectDelayMs = 30_000
const reconnectBaseDelayMs = 100
const keepAliveDelayMs = 10_000
/** Time after which the client gives up on a statement that the server should have ended itself. */
const answerMarginMs = 5_000

const types = {
  getTypeParser: (id: number, format?: 'text' | 'binary') => {
    if (id === typeIds.bigint) return Number
    if (id === typeIds.json || id === typeIds.jsonb) return String
    return defaultTypes.getTypeParser(id, format as 'text')
  },
}

class Client extends pg.Client {
  constructor(config?: pg.ClientConfig) {
    super(config)
    // A client that fails on its own side, for example without a password, leaves its socket open.
    this.connection.on('error', () => this.connection.stream.destroy())
  }
}

/** Creates a pool of connections to a server. Nothing is sent before the first query. */
export function createPool(settings: ConnectionSettings): Driver {
  const { url, name, maxConnections, connectTimeoutMs, statementTimeoutMs, lockTimeoutMs } = settings
  const config = {
    connectionString: url,
    application_name: 'threadkeep',
    connectionTimeoutMillis: connectTimeoutMs,
    statement_timeout: statementTimeoutMs,
    lock_timeout: lockTimeoutMs,
    idle_in_transaction_session_timeout: statementTimeoutMs,
    query_timeout: statementTimeoutMs + answerMarginMs,
    keepAlive: true,
    keepAliveInitialDelayMillis: keepAliveDelayMs,
    types,
  }
  const pool = new Pool({ ...config, Client, max: maxConnections, allowExitOnIdle: true })
  // An idle connection that breaks has been removed from the pool already; the next statement opens another one.
  pool.on('error', () => undefined)
  const subscriptions: Subscription[] = []
  return {
    name,
    connect: async () => wrapClient(await pool.connect()),
    listen: async (channel, listener) => {
      const subscription = new Subscription({ ...config, query_timeout: 0 }, channel, listener)
      subscriptions.push(subscription)
      await subscription.start()
    },
    close: async () => {
      // Idle connections do not keep the process alive, which must not exit before they are closed.
      const timer = setInterval(() => undefined, 1_000)
      await Promise.all([pool.end(), ...subscriptions.map((subscription) => subscription.close())])
      clearInterval(timer)
    },
  }
}

function wrapClient(client: pg.PoolClient): Connection {
  // A connection may break between two statements of a transaction; the next one fails and reports it.
  const ignore = (): void => undefined
  client.on('error', ignore)
  return {
    query: async (sql, values = []) =>
      (await client.query<unknown[]>({ text: sql, values: values.map(toDriverValue), rowMode: 'array' })).rows,
    run: async (sql) => void (await client.query(sql)),
    release: (isBroken) => {
      client.off('error', ignore)
      client.release(isBroken)
    },
  }
}

const toDriverValue = (value: unknown): unknown =>
  value instanceof Uint8Array ? Buffer.from(value.buffer, value.byteOffset, value.byteLength) : value

/** A connection of its own that listens on a channel and reconnects when it is lost. */
class Subscription {
  private readonly config: pg.ClientConfig
  private readonly channel: string
  private readonly listener: NotificationListener
  private client: pg.Client | undefined
  private timer: NodeJS.Timeout | undefined
  private failures = 0
  private isClosed = false

  constructor(config: pg.ClientConfig, channel: string, listener: NotificationListener) {
    this.config = config
    this.channel = channel
    this.listener = listener
  }

  /** Resolves after the first attempt; a failed one is repeated later. */
  async start(): Promise<void> {
    const client = new Client(this.config)
    this.client = client
    client.on('notification', ({ payload = '' }) => this.listener.onMessage(payload))
    client.on('error', () => undefined)
    client.on('end', () => this.reconnectLater(client))
    try {
      await client.connect()
      await client.query(`LISTEN "${this.channel}"`)
      // A process that has nothing else to do may exit.
      ;(client as unknown as { unref(): void }).unref()
      if (this.failures > 0) this.listener.onGap()
      this.failures = 0
    } catch {
      this.reconnectLater(client)
    }
  }

  async close(): Promise<void> {
    this.isClosed = true
    clearTimeout(this.timer)
    await this.client?.end().catch(() => undefined)
  }

  private reconnectLater(client: pg.Client): void {
    if (this.isClosed || this.client !== client) return
    this.client = undefined
    client.end().catch(() => undefined)
    const delay = Math.min(maxReconnectDelayMs, backoffDelay(++this.failures, reconnectBaseDelayMs))
    this.timer = setTimeout(() => void this.start(), delay)
    this.timer.unref()
  }
}
