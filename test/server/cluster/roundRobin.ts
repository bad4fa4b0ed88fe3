import { setTimeout as delay } from 'node:timers/promises'
import { Agent } from 'undici'
import type { Cluster } from './serverProcesses.ts'

export type Turn = { readonly key: string; readonly question: string }

/** How a client tells that it repeats a request. */
export type RetryStyle = 'idempotency key' | 'retry count'

export type RoundRobinClient = AsyncDisposable & {
  /** Sends a question to the next server, again to the one after it if that fails, and returns the reply. */
  ask(turn: Turn): Promise<string>
  /** Reads a JSON document from the next server. */
  get(path: string): Promise<unknown>
  /** Failed attempts by cause. */
  readonly failures: ReadonlyMap<string, number>
}

const maxAttempts = 400
const retryDelayMs = 25
const defaultReadinessIntervalMs = 100

type Reply = { readonly choices: readonly [{ readonly message: { readonly content: string } }] }

export type BalancerOptions = {
  readonly retryStyle?: RetryStyle
  /** Sends all requests of a session to the same server while it is ready; default false. */
  readonly isSticky?: boolean
  /** Time between two requests to `/readyz` of each server; default 100. */
  readonly readinessIntervalMs?: number
}

/** Sends requests to the servers of a cluster in turn, as a load balancer does: those that are not ready get none. */
export function createRoundRobinClient(
  cluster: Cluster,
  {
    retryStyle = 'idempotency key',
    isSticky = false,
    readinessIntervalMs = defaultReadinessIntervalMs,
  }: BalancerOptions = {},
): RoundRobinClient {
  const agent = new Agent({ connections: 64, headersTimeout: 120_000, bodyTimeout: 120_000 })
  const failures = new Map<string, number>()
  const draining = new Set<string>()
  const stopped = new AbortController()
  let [turns, requests] = [0, 0]
  const isReady = async (url: string): Promise<boolean> => {
    const response = await agent.request({ origin: url, path: '/readyz', method: 'GET' }).catch(() => undefined)
    await response?.body.dump()
    return response?.statusCode === 200
  }
  const poll = async (): Promise<void> => {
    while (!stopped.signal.aborted) {
      const checks = cluster.urls().map(async (url) => {
        if (await isReady(url)) draining.delete(url)
        else draining.add(url)
      })
      await Promise.all(checks)
      await delay(readinessIntervalMs, undefined, { signal: stopped.signal }).catch(() => undefined)
    }
  }
  const polling = poll()
  /** Servers of sessions, if they are sticky. */
  const places = new Map<string, number>()
  const placeOf = (session: string): number => {
    const place = places.get(session) ?? places.size
    places.set(session, place)
    return place
  }
  const nextServer = (session: string | undefined): string => {
    const all = cluster.urls()
    const ready = all.filter((url) => !draining.has(url))
    const servers = ready.length === 0 ? all : ready
    const place = isSticky && session !== undefined ? placeOf(session) : requests++
    return servers[place % servers.length] as string
  }
  const withRetries = async <T>(attempt: (number: number) => Promise<T>): Promise<T> => {
    for (let number = 0; ; number++) {
      try {
        return await attempt(number)
      } catch (error) {
        const cause = describeFailure(error)
        failures.set(cause, (failures.get(cause) ?? 0) + 1)
        if (number === maxAttempts) throw error
        await delay(retryDelayMs)
      }
    }
  }
  type Body = { readonly session: string; readonly text: string }
  const request = async (method: 'GET' | 'POST', path: string, headers: Record<string, string>, body?: Body) => {
    const response = await agent.request({
      origin: nextServer(body?.session),
      path,
      method,
      headers: { 'content-type': 'application/json', ...headers },
      ...(body !== undefined && { body: body.text }),
    })
    const text = await response.body.text()
    if (response.statusCode !== 200) throw new Error(`status ${response.statusCode}: ${text.slice(0, 200)}`)
    return JSON.parse(text) as unknown
  }
  return {
    failures,
    ask: ({ key, question }) => {
      const id = `turn-${++turns}`
      const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: question }] })
      return withRetries(async (number) => {
        const headers: Record<string, string> =
          retryStyle === 'idempotency key' ? { 'idempotency-key': id } : { 'x-stainless-retry-count': String(number) }
        const path = `/v1/${key}/chat/completions`
        const reply = (await request('POST', path, headers, { session: key, text: body })) as Reply
        return reply.choices[0].message.content
      })
    },
    get: (path) => withRetries(() => request('GET', path, {})),
    [Symbol.asyncDispose]: async () => {
      stopped.abort()
      await polling
      await agent.destroy()
    },
  }
}

function describeFailure(error: unknown): string {
  const { code, message } = error as Error & { readonly code?: string }
  return code ?? message
}
