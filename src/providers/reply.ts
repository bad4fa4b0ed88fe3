import { MemoryError } from '../domain/error.ts'
import { readText } from './body.ts'
import { endedEarly, notAReply, reported } from './failure.ts'
import { parseJson } from './json.ts'
import type { Answer } from './request.ts'
import { events } from './sse.ts'

/** What one event says: a piece of the reply, and whether the reply is complete with it or nothing at all can follow. */
export type Piece = { readonly text: string; readonly state: 'going' | 'complete' | 'over' }

/** How a provider words its replies; both throw for a reply that was withheld. */
export type Wording = {
  /** One event of a stream. */
  readonly piece: (event: unknown, where: string) => Piece
  /** A reply sent in one, or undefined if it is none. */
  readonly whole: (json: unknown, where: string) => string | undefined
}

const done: Piece = { text: '', state: 'over' }
const longestReply = 16_777_216

/** The text of a reply, piece by piece, whether it comes as a stream or, from servers that know no streams, in one. */
export async function* replyOf(answer: Answer, wording: Wording): AsyncIterable<string> {
  const type = answer.type.toLowerCase()
  if (type.includes('html')) {
    await answer.body.cancel()
    throw notAReply(answer.where, 'a web page')
  }
  if (type.includes('json')) yield* inOne(answer, wording)
  else yield* inPieces(answer, wording)
}

async function* inOne({ where, body }: Answer, wording: Wording): AsyncIterable<string> {
  const text = await readText(body, longestReply)
  if (text === undefined) throw notAReply(where, `more than ${longestReply} bytes`)
  const json = parseJson(text)
  if (json === undefined) throw notAReply(where, 'something that is not JSON')
  const failure = reported(where, json)
  if (failure !== undefined) throw failure
  const whole = wording.whole(json, where)
  if (whole === undefined) throw notAReply(where, 'JSON of another kind')
  if (whole !== '') yield whole
}

async function* inPieces({ where, body, finish }: Answer, wording: Wording): AsyncIterable<string> {
  let state: Piece['state'] = 'going'
  try {
    for await (const { data } of events(body)) {
      const event = data.trim()
      if (event === '' || state === 'over') continue
      const piece = event === '[DONE]' ? done : wording.piece(understood(where, event), where)
      if (piece.text !== '') yield piece.text
      if (piece.state !== 'going') state = piece.state
      if (state === 'over') finish()
    }
  } catch (error) {
    // How the connection ends does not spoil a reply that is complete.
    if (state === 'going' || !(error instanceof MemoryError) || error.code === 'aborted') throw error
  }
  if (state === 'going') throw endedEarly(where)
}

function understood(where: string, text: string): unknown {
  const json = parseJson(text)
  if (json === undefined) throw notAReply(where, 'an event that is not JSON')
  const failure = reported(where, json)
  if (failure !== undefined) throw failure
  return json
}
