import type { Millis } from '../domain/entry.ts'
import type { ChatMessage } from '../domain/ledger.ts'
import type { Model } from '../domain/ports.ts'

/** A model and the time limits for calling it. */
export type ModelCall = {
  readonly model: Model
  /** Time limit of one attempt. */
  readonly timeout: Millis
  /** Time a context waits for steps that block it. */
  readonly maxContextWait: Millis
  /** Creates a signal that aborts after a delay. */
  readonly timeoutSignal: (after: Millis) => AbortSignal
}

const modelFaults = ['failed', 'timeout', 'empty', 'too long'] as const
type ModelFault = (typeof modelFaults)[number]
type ModelCallResult = { readonly text: string } | { readonly fault: ModelFault }

/** True if a fault means that the model gave no usable reply. */
export const isModelFault = (why: string): boolean => modelFaults.some((fault) => fault === why)

/** Calls a model, with one retry. Never throws. Stops reading after `maxChars` characters. */
export async function callModel(
  call: ModelCall,
  messages: readonly ChatMessage[],
  maxChars: number,
  signal: AbortSignal,
): Promise<ModelCallResult> {
  const first = await attempt(call, messages, maxChars, signal)
  if (!('fault' in first) || first.fault === 'too long' || signal.aborted) return first
  return attempt(call, messages, maxChars, signal)
}

async function attempt(
  { model, timeout, timeoutSignal }: ModelCall,
  messages: readonly ChatMessage[],
  maxChars: number,
  signal: AbortSignal,
): Promise<ModelCallResult> {
  const timedOut = timeoutSignal(timeout)
  const either = AbortSignal.any([signal, timedOut])
  try {
    const text = await collect(model.reply({ messages, temperature: 0 }, either), maxChars, either)
    if (text === undefined) return { fault: 'too long' }
    return text.trim() === '' ? { fault: 'empty' } : { text: text.trim() }
  } catch {
    // The error is discarded: it may quote user content.
    return { fault: timedOut.aborted ? 'timeout' : 'failed' }
  }
}

/** Joins a reply; undefined when it is too long. Does not wait for a model that ignores the signal. */
async function collect(
  chunks: AsyncIterable<string>,
  maxChars: number,
  signal: AbortSignal,
): Promise<string | undefined> {
  const iterator = chunks[Symbol.asyncIterator]()
  const abort = rejectOnAbort(signal)
  let text = ''
  try {
    for (;;) {
      const next = await Promise.race([iterator.next(), abort.promise])
      if (next.done === true) return text
      text += next.value
      if (text.length > maxChars) return undefined
    }
  } finally {
    abort.dispose()
    // Not awaited: the model may never return.
    void iterator.return?.().then(undefined, () => undefined)
  }
}

/** Returns a promise that rejects when a signal aborts; `dispose` removes the listener. */
export function rejectOnAbort(signal: AbortSignal): { readonly promise: Promise<never>; readonly dispose: () => void } {
  let dispose = (): void => undefined
  const promise = new Promise<never>((_, reject) => {
    const stop = (): void => reject(signal.reason)
    if (signal.aborted) stop()
    signal.addEventListener('abort', stop, { once: true })
    dispose = () => signal.removeEventListener('abort', stop)
  })
  promise.catch(() => undefined)
  return { promise, dispose }
}
