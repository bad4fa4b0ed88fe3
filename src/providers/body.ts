import type { Millis } from '../domain/entry.ts'
import type { Deadline } from './deadline.ts'
import { brokenOff } from './failure.ts'

/** A body under the deadline of its request. */
export type Watched = {
  readonly body: ReadableStream<Uint8Array>
  /** All that matters has come: what is left is read for a moment, so that the connection can serve the next request. */
  finish(): void
}

const grace: Millis = 250

/**
 * Puts the body of a response under its deadline: each wait for the next bytes may last `idle`, and whoever cancels it
 * or reads it to its end leaves neither timer nor connection behind.
 */
export function watch(response: Response, where: string, deadline: Deadline, idle: Millis): Watched {
  const reader = (response.body ?? new Blob([]).stream()).getReader()
  // The first byte is still under the time the whole request has for it.
  let phase: 'first' | 'going' | 'ending' = 'first'
  const source: UnderlyingDefaultSource<Uint8Array> = {
    async pull(out) {
      if (phase === 'going')
        deadline.expect(
          idle,
          `${where} stopped in the middle of its reply and sent nothing for ${idle} ms. Try again, or allow a longer idle time.`,
        )
      try {
        const chunk = await reader.read()
        if (phase !== 'ending') deadline.met()
        if (phase === 'first') phase = 'going'
        if (!chunk.done) return out.enqueue(chunk.value)
        deadline.end()
        out.close()
      } catch (error) {
        deadline.end()
        out.error(deadline.signal.aborted ? deadline.signal.reason : brokenOff(where, error))
      }
    },
    async cancel() {
      deadline.end()
      await reader.cancel()
    },
  }
  const finish = (): void => {
    phase = 'ending'
    deadline.expect(grace, `${where} left its reply open.`)
  }
  // Nothing is read ahead: time runs only while somebody waits.
  return { body: new ReadableStream(source, { highWaterMark: 0 }), finish }
}

/** The whole body as text, or undefined if it is longer than `limit` bytes. */
export async function readText(body: ReadableStream<Uint8Array>, limit: number): Promise<string | undefined> {
  const decoder = new TextDecoder()
  const reader = body.getReader()
  let text = ''
  let size = 0
  for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
    size += chunk.value.length
    if (size > limit) {
      await reader.cancel()
      return undefined
    }
    text += decoder.decode(chunk.value, { stream: true })
  }
  return text + decoder.decode()
}
