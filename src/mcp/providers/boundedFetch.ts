import type { FetchLike } from '@modelcontextprotocol/client'
import { MemoryError } from '../../domain/error.ts'

/** Fetches, but reads no more of an answer than so many bytes, and nothing once it is told to stop. */
export function boundedFetch(most: number, stop: AbortSignal): FetchLike {
  return async (url, init) => {
    const signal = init?.signal ? AbortSignal.any([init.signal, stop]) : stop
    const answer = await fetch(url, { ...init, signal })
    if (answer.body === null) return answer
    return new Response(answer.body.pipeThrough(upTo(most)), {
      status: answer.status,
      statusText: answer.statusText,
      headers: answer.headers,
    })
  }
}

function upTo(most: number): TransformStream<Uint8Array, Uint8Array> {
  let left = most
  return new TransformStream({
    transform(chunk, controller) {
      left -= chunk.length
      if (left < 0) controller.error(new MemoryError('upstream', `it sent more than ${most} bytes`))
      else controller.enqueue(chunk)
    },
  })
}
