import { createParser } from 'eventsource-parser'
import { authHeaders } from './client.ts'

/** A change on the server. `reset` means that changes were missed. */
export type LiveEvent = {
  readonly type: 'session' | 'receipt' | 'ended' | 'scope' | 'reset'
  readonly key: string
}

export type ConnectionState = 'connecting' | 'live' | 'offline'

type Listener = (event: LiveEvent) => void
type StateListener = (state: ConnectionState) => void

const minDelayMs = 500
const maxDelayMs = 10_000
/** The server writes every 15 seconds; a connection that is silent for longer is broken. */
const maxSilenceMs = 40_000

/**
 * Receives changes from the server and connects again whenever the connection breaks. After a break it reports
 * `reset`, because changes may have been missed. `EventSource` cannot send the header with the key.
 */
export class LiveUpdates {
  private readonly listeners = new Set<Listener>()
  private readonly stateListeners = new Set<StateListener>()
  private readonly stopping = new AbortController()
  private wakeUp: () => void = () => undefined
  private connection = new AbortController()
  state: ConnectionState = 'connecting'

  start(): void {
    void this.run()
    const { signal } = this.stopping
    window.addEventListener('online', () => this.wakeUp(), { signal })
    document.addEventListener('visibilitychange', () => this.onVisibility(), { signal })
  }

  stop(): void {
    this.stopping.abort()
    this.wakeUp()
  }

  subscribe(listener: Listener): () => void {
    this.listeners.add(listener)
    return () => void this.listeners.delete(listener)
  }

  onState(listener: StateListener): () => void {
    this.stateListeners.add(listener)
    return () => void this.stateListeners.delete(listener)
  }

  /** Browsers allow six connections to a server: a hidden tab gives its own back. */
  private onVisibility(): void {
    if (document.hidden) this.connection.abort()
    else this.wakeUp()
  }

  private async run(): Promise<void> {
    let delayMs = minDelayMs
    let wasConnected = false
    while (!this.stopping.signal.aborted) {
      try {
        await this.receive(() => {
          delayMs = minDelayMs
          this.setState('live')
          if (wasConnected) this.emit({ type: 'reset', key: '' })
          wasConnected = true
        })
      } catch {
        // Reported as the state of the connection.
      }
      if (this.stopping.signal.aborted) return
      if (!document.hidden) this.setState('offline')
      await this.sleep(document.hidden ? undefined : delayMs)
      delayMs = Math.min(delayMs * 2, maxDelayMs)
    }
  }

  /** Reads one connection to its end. */
  private async receive(onOpen: () => void): Promise<void> {
    this.connection = new AbortController()
    const { connection } = this
    const signal = AbortSignal.any([this.stopping.signal, connection.signal])
    let timer = setTimeout(() => connection.abort(), maxSilenceMs)
    try {
      const response = await fetch('/api/events', { headers: authHeaders(), cache: 'no-store', signal })
      if (!response.ok || response.body === null) return
      onOpen()
      const parser = createParser({
        onEvent: ({ event, data }) => this.emit({ ...JSON.parse(data), type: event } as LiveEvent),
      })
      const decoder = new TextDecoder()
      for await (const chunk of response.body) {
        clearTimeout(timer)
        timer = setTimeout(() => connection.abort(), maxSilenceMs)
        parser.feed(decoder.decode(chunk, { stream: true }))
      }
    } finally {
      clearTimeout(timer)
    }
  }

  /** Waits until the time has passed, or without a time until it is woken up. */
  private sleep(delayMs: number | undefined): Promise<void> {
    return new Promise((resolve) => {
      const timer = delayMs === undefined ? undefined : setTimeout(resolve, delayMs)
      this.wakeUp = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  private setState(state: ConnectionState): void {
    if (this.state === state) return
    this.state = state
    for (const listener of this.stateListeners) listener(state)
  }

  private emit(event: LiveEvent): void {
    for (const listener of this.listeners) listener(event)
  }
}
