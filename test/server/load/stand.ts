import { fork } from 'node:child_process'
import { once } from 'node:events'
import { expect } from 'vitest'

/** What a server holds: bytes of its heap and buffers, of its process, open connections, and what went wrong inside. */
export type Taken = {
  readonly held: number
  readonly rss: number
  readonly sockets: number
  readonly faults: readonly string[]
}
export type Order = 'measure' | 'rest' | 'close'
export type Told = Taken | { readonly url: string }

export type Stand = AsyncDisposable & {
  readonly url: string
  measure(): Promise<Taken>
  /** Packs away every session, as is done with those nobody uses. */
  rest(): Promise<Taken>
}

export type Options = {
  readonly upstream: string
  readonly profile: 'support' | 'thread'
  readonly store?: string
  /** What sessions may take before those nobody has used for longest are packed: little, so that it does not take thousands of them. */
  readonly awake?: number
}

/** Starts a server in a process of its own, in front of this model server. */
export async function startStand({ store = 'ram:', awake = 1_000_000, ...options }: Options): Promise<Stand> {
  const child = fork(new URL('./worker.ts', import.meta.url), [JSON.stringify({ store, awake, ...options })], {
    execArgv: ['--expose-gc'],
  })
  const ended = once(child, 'exit')
  const heard = (): Promise<Told> => {
    const { promise, resolve } = Promise.withResolvers<Told>()
    child.once('message', (told) => resolve(told as Told))
    const over = ended.then(([code]) => expect.fail(`The server ended with ${code}.`))
    return Promise.race([promise, over])
  }
  const order = async (wanted: Order): Promise<Taken> => {
    const told = heard()
    child.send(wanted)
    return (await told) as Taken
  }
  const { url } = (await heard()) as { readonly url: string }
  const close = async (): Promise<void> => {
    await order('close')
    await ended
  }
  return { url, measure: () => order('measure'), rest: () => order('rest'), [Symbol.asyncDispose]: close }
}

export type Stored = { readonly sequence: number; readonly role: string; readonly content: string }

/** Everything that is kept of a session. */
export const transcriptAt = (url: string, key: string): Promise<readonly Stored[]> =>
  everyPage<Stored>(`${url}/api/sessions/${key}/messages?limit=500`)

/** All pages of a list. */
export async function everyPage<T>(address: string): Promise<readonly T[]> {
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
