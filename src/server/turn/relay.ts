import type { MemoryError } from '../../domain/error.ts'
import { endedEarly, notAReply } from '../../providers/failure.ts'
import { parseJson } from '../../providers/json.ts'
import { type Answer, eachPiece, isGathered, isStream } from '../upstreams/backend.ts'
import type { Client } from '../http/client.ts'
import type { Dialect, Heard, Listener } from '../protocols/dialect.ts'
import { problemOf } from '../http/problem.ts'
import { asBuffer, WholeEvents } from '../http/sse.ts'

/** Stores the reply; never fails. */
type Keep = (heard: Heard) => Promise<void>
/** How an answer is read, and what becomes of the reply in it. */
export type Reading = {
  readonly dialect: Dialect
  readonly keep: Keep
  /** Whether the client asked for a stream; taken for granted when left out. */
  readonly streams?: boolean | undefined
  /** Whether what is no reply passes as well, because memory takes no part. */
  readonly isLenient?: boolean | undefined
  /** Has a word with the first bytes of a stream, and with the whole of what is no stream, before they go out. */
  readonly onFirst?: (() => void) | undefined
  readonly amend?: ((text: string) => string) | undefined
}

const largestReply = 67_108_864

/**
 * Passes an answer on to the client as it comes and has the reply kept once it is complete. The client learns that the
 * reply is complete only after it is kept, so that its next request finds it in memory.
 */
export async function relay(answer: Answer, client: Client, reading: Reading): Promise<void> {
  if (answer.status >= 400) return relayFailure(answer, client)
  if (isStream(answer))
    return reading.streams === false ? relayUnasked(answer, client, reading) : relayStream(answer, client, reading)
  const whole = wholeAtHand(answer) ?? (await readWhole(answer))
  const text = whole.toString('utf8')
  reading.onFirst?.()
  const heard = heardIn(text, answer, reading)
  if (heard !== undefined) await reading.keep(heard)
  client.answer(answer.status, answer.headers, reading.amend === undefined ? whole : Buffer.from(reading.amend(text)))
}

/** The reply in an answer; none in one that passes whatever it is. */
function heardIn(text: string, { where }: Answer, { dialect, isLenient }: Reading): Heard | undefined {
  try {
    return dialect.hear(text, where)
  } catch (error) {
    if (isLenient === true) return undefined
    throw error
  }
}

/** Nothing was made of what memory showed, so there is no receipt for it. */
function relayFailure(answer: Answer, client: Client): Promise<void> {
  client.untell('x-threadkeep-receipt')
  return relayAsIs(answer, client)
}

/** Passes on an answer that is no part of a conversation. */
export async function relayAsIs(answer: Answer, client: Client): Promise<void> {
  client.begin(answer.status, answer.headers)
  for await (const bytes of answer.body) if (!client.write(bytes)) await client.drained()
  client.end()
}

/** Passes on an answer in one that must be JSON, or what is picked out of it. */
export async function relayJson(answer: Answer, client: Client, pick?: (json: unknown) => unknown): Promise<void> {
  if (answer.status >= 400) return relayAsIs(answer, client)
  const whole = await readWhole(answer)
  const json = parseJson(whole.toString('utf8'))
  if (json === undefined) throw notAReply(answer.where, 'something that is not JSON')
  client.answer(answer.status, answer.headers, pick === undefined ? whole : Buffer.from(JSON.stringify(pick(json))))
}

/** A stream nobody asked for goes out once it is complete: a client that waits for one answer does not look for errors inside it. */
async function relayUnasked(answer: Answer, client: Client, { dialect, keep, onFirst }: Reading): Promise<void> {
  const reply = dialect.listener(answer.where)
  const bytes = await readWhole(answer)
  onFirst?.()
  reply.end(bytes)
  if (!reply.isComplete) throw endedEarly(answer.where)
  await keep(reply.heard())
  client.answer(answer.status, answer.headers, bytes)
}

async function relayStream(answer: Answer, client: Client, reading: Reading): Promise<void> {
  const reply = reading.dialect.listener(answer.where)
  let kept = false
  const settle = async (): Promise<void> => {
    if (kept || !reply.isComplete) return
    kept = true
    await reading.keep(reply.heard())
  }
  try {
    await pump(answer, client, { reply, settle, onFirst: reading.onFirst })
  } catch (error) {
    // How the connection ends does not spoil a reply that is complete.
    if (!reply.isComplete) {
      // A client that has hung up wants no more of this reply, so the half it got is not kept as what was said.
      if (client.signal.aborted || !client.hasBegun) throw error
      client.write(`${reading.dialect.failure(problemOf(error).error)}`)
    }
  }
  await settle()
  client.end()
}

type Pumped = { readonly reply: Listener; readonly settle: () => Promise<void>; readonly onFirst: Reading['onFirst'] }

async function pump(answer: Answer, client: Client, { reply, settle, onFirst }: Pumped): Promise<unknown> {
  const events = new WholeEvents()
  const pass = (bytes: Uint8Array): Promise<unknown> | undefined => {
    if (bytes.length === 0) return undefined
    if (!client.hasBegun) {
      onFirst?.()
      client.begin(answer.status, { ...answer.headers, 'cache-control': 'no-cache' })
    }
    return client.write(bytes) ? undefined : client.drained()
  }
  await eachPiece(answer.body, (bytes) => {
    const whole = events.push(bytes)
    reply.hear(whole)
    return reply.isOver ? settle().then(() => pass(whole)) : pass(whole)
  })
  const rest = events.rest()
  reply.end(rest)
  // Half an event would spoil the report that follows it.
  if (!reply.isComplete && !reply.hasFailed) throw endedEarly(answer.where)
  if (reply.isOver) await settle()
  return pass(rest)
}

/** An answer that has come whole before anybody asked. */
function wholeAtHand({ body, where }: Answer): Buffer | undefined {
  const bytes = isGathered(body) ? body.takeWhole() : undefined
  if (bytes !== undefined && bytes.length > largestReply) throw tooLarge(where)
  return bytes && asBuffer(bytes)
}

const tooLarge = (where: string): MemoryError => notAReply(where, `more than ${largestReply} bytes`)

async function readWhole(answer: Answer): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const bytes of answer.body) {
    size += bytes.length
    if (size > largestReply) throw tooLarge(answer.where)
    chunks.push(bytes)
  }
  return chunks.length === 1 ? asBuffer(chunks[0] as Uint8Array) : Buffer.concat(chunks)
}
