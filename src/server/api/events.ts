import type { Millis } from '../../domain/entry.ts'
import type { Scope } from '../../domain/key.ts'
import { allowsScope } from '../auth/credential.ts'
import { authenticate } from '../auth/identity.ts'
import type { Handlers, RequestContext } from '../http/requestContext.ts'
import type { SessionEvent } from '../inspector/sessionEvents.ts'
import { parseOwnScope } from './access.ts'
import { checkQuery } from './input.ts'

/** Interval of comments that keep the connection open; the caller's key is checked again with each. */
const heartbeatMs: Millis = 15_000
/** Events of different sessions that wait for a slow client; beyond that it is told to read everything again. */
const maxWaitingEvents = 1_000

/** A stream of changes, for pages that show live data. */
export const eventRoutes: Handlers = {
  'GET /api/events': async (context) => {
    checkQuery(context.query, ['scope'])
    const text = context.query.get('scope')
    const scope = text === null ? undefined : parseOwnScope(context, text)
    await streamEvents(context, scope)
  },
}

async function streamEvents(context: RequestContext, scope: Scope | undefined): Promise<void> {
  const { server, client, credential } = context
  const { sessionEvents: events } = server
  const waiting = new WaitingEvents()
  const isVisible = (changed: Scope): boolean =>
    (scope === undefined || changed === scope) && (credential === undefined || allowsScope(credential, changed))
  const end = AbortSignal.any([client.signal, events.closed])
  const unsubscribe = events.subscribe({ isVisible, send: (event) => waiting.add(event) })
  const heartbeat = setInterval(() => waiting.wake(), heartbeatMs)
  end.addEventListener('abort', () => waiting.wake())
  try {
    client.sendHeaders(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
      'x-content-type-options': 'nosniff',
    })
    // The response to HEAD ends with its headers.
    if (context.request.method === 'HEAD') return
    client.write('retry: 2000\n\n')
    while (!end.aborted) {
      await waiting.change()
      if (end.aborted || !isStillAllowed(context)) break
      const batch = waiting.take()
      const lines = batch.map(({ type, ...data }) => `event: ${type}\ndata: ${JSON.stringify(data)}\n\n`)
      if (!client.write(lines.join('') || ': \n\n')) await client.drained()
    }
  } catch (error) {
    if (!client.signal.aborted) throw error
  } finally {
    clearInterval(heartbeat)
    unsubscribe()
    client.end()
  }
}

/** False once the key of the caller was revoked or has expired. */
function isStillAllowed({ server, request, credential }: RequestContext): boolean {
  try {
    return authenticate(server.credentials, request.headers, server.clock())?.id === credential?.id
  } catch {
    return false
  }
}

/** Events that were not written yet, each session's once per type. */
class WaitingEvents {
  private readonly events = new Map<string, SessionEvent | { readonly type: 'reset' }>()
  private changed = Promise.withResolvers<void>()

  add(event: SessionEvent): void {
    const name = `${event.type} ${event.key}`
    if (this.events.size < maxWaitingEvents || this.events.has(name)) this.events.set(name, event)
    else {
      this.events.clear()
      this.events.set('reset', { type: 'reset' })
    }
    this.wake()
  }

  wake(): void {
    this.changed.resolve()
  }

  /** Resolves with the next event or call of `wake`. */
  async change(): Promise<void> {
    await this.changed.promise
    this.changed = Promise.withResolvers<void>()
  }

  take(): readonly (SessionEvent | { readonly type: 'reset' })[] {
    const batch = [...this.events.values()]
    this.events.clear()
    return batch
  }
}
