import { fork } from 'node:child_process'
import { once } from 'node:events'
import { expect } from 'vitest'

/** Memory of the heap and buffers, of the process, open connections, and internal faults. */
export type Measurement = {
  readonly heapBytes: number
  readonly rss: number
  readonly sockets: number
  readonly faults: readonly string[]
}
export type ProcessCommand = 'measure' | 'compressIdle' | 'close'
export type ProcessMessage = Measurement | { readonly url: string }

export type ServerProcess = AsyncDisposable & {
  readonly url: string
  measure(): Promise<Measurement>
  /** Compresses every session, as the sweep does with idle ones. */
  compressIdle(): Promise<Measurement>
}

export type Options = {
  readonly upstream: string
  readonly profile: 'support' | 'thread'
  readonly store?: string
  /**
   * Bytes of uncompressed sessions before the least recently used are compressed; small, so that few sessions reach it.
   */
  readonly maxUncompressedBytes?: number
}

/** Starts a server in a process of its own in front of the model server. */
export async function startServerProcess({
  store = 'ram:',
  maxUncompressedBytes = 1_000_000,
  ...options
}: Options): Promise<ServerProcess> {
  const child = fork(
    new URL('./serverWorker.ts', import.meta.url),
    [JSON.stringify({ store, maxUncompressedBytes, ...options })],
    {
      execArgv: ['--expose-gc'],
    },
  )
  const ended = once(child, 'exit')
  const nextMessage = (): Promise<ProcessMessage> => {
    const { promise, resolve } = Promise.withResolvers<ProcessMessage>()
    child.once('message', (message) => resolve(message as ProcessMessage))
    const failure = ended.then(([code]) => expect.fail(`The server ended with ${code}.`))
    return Promise.race([promise, failure])
  }
  const sendCommand = async (command: ProcessCommand): Promise<Measurement> => {
    const message = nextMessage()
    child.send(command)
    return (await message) as Measurement
  }
  const { url } = (await nextMessage()) as { readonly url: string }
  const close = async (): Promise<void> => {
    await sendCommand('close')
    await ended
  }
  return {
    url,
    measure: () => sendCommand('measure'),
    compressIdle: () => sendCommand('compressIdle'),
    [Symbol.asyncDispose]: close,
  }
}

export type StoredMessage = { readonly sequence: number; readonly role: string; readonly content: string }

/** Every stored message of a session. */
export const fetchTranscript = (url: string, key: string): Promise<readonly StoredMessage[]> =>
  fetchAllPages<StoredMessage>(`${url}/api/sessions/${key}/messages?limit=500`)

/** Reads all pages of a list. */
export async function fetchAllPages<T>(address: string): Promise<readonly T[]> {
  const all: T[] = []
  for (let after: string | number | null = ''; after !== null; ) {
    const response = await fetch(after === '' ? address : `${address}&after=${encodeURIComponent(after)}`)
    const { items, next } = (await response.json()) as {
      readonly items: readonly T[]
      readonly next: string | number | null
    }
    all.push(...items)
    after = next
  }
  return all
}
