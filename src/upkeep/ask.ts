import type { Millis } from '../domain/entry.ts'
import type { ChatMessage } from '../domain/ledger.ts'
import type { Model } from '../domain/ports.ts'

/** A model to ask, and for how long. */
export type Asking = {
  readonly model: Model
  readonly timeout: Millis
  /** How long a context waits for what it should wait for. */
  readonly patience: Millis
  /** A signal that is given after so much time. */
  readonly expire: (after: Millis) => AbortSignal
}

/** What a model said, or why it said nothing that can be used. */
export type Answered = { readonly text: string } | { readonly fault: Fault }
export type Fault = 'failed' | 'timeout' | 'empty' | 'too long'

/** Asks a model, and once more if it fails; never throws. More than `most` characters are not read. */
export async function ask(
  asking: Asking,
  messages: readonly ChatMessage[],
  most: number,
  signal: AbortSignal,
): Promise<Answered> {
  const first = await attempt(asking, messages, most, signal)
  if (!('fault' in first) || first.fault === 'too long' || signal.aborted) return first
  return attempt(asking, messages, most, signal)
}

async function attempt(
  { model, timeout, expire }: Asking,
  messages: readonly ChatMessage[],
  most: number,
  signal: AbortSignal,
): Promise<Answered> {
  const late = expire(timeout)
  try {
    const text = await collect(
      model.reply({ messages, temperature: 0 }, AbortSignal.any([signal, late])),
      most,
      AbortSignal.any([signal, late]),
    )
    if (text === undefined) return { fault: 'too long' }
    return text.trim() === '' ? { fault: 'empty' } : { text: text.trim() }
  } catch {
    // What went wrong may quote what was said: only its kind is told.
    return { fault: late.aborted ? 'timeout' : 'failed' }
  }
}

/** Everything a model says, or undefined when that is too much; a model that does not notice the signal is not waited for. */
async function collect(pieces: AsyncIterable<string>, most: number, signal: AbortSignal): Promise<string | undefined> {
  const reading = pieces[Symbol.asyncIterator]()
  const stopped = aborted(signal)
  let text = ''
  try {
    for (;;) {
      const next = await Promise.race([reading.next(), stopped.promise])
      if (next.done === true) return text
      text += next.value
      if (text.length > most) return undefined
    }
  } finally {
    stopped.end()
    // Nobody waits for it, and nobody is told how it ends.
    void reading.return?.().then(undefined, () => undefined)
  }
}

/** Rejects when a signal is given; `end` takes the ear off it. */
export function aborted(signal: AbortSignal): { readonly promise: Promise<never>; readonly end: () => void } {
  let end = (): void => undefined
  const promise = new Promise<never>((_, reject) => {
    const stop = (): void => reject(signal.reason)
    if (signal.aborted) stop()
    signal.addEventListener('abort', stop, { once: true })
    end = () => signal.removeEventListener('abort', stop)
  })
  promise.catch(() => undefined)
  return { promise, end }
}
