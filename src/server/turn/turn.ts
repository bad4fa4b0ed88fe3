import type { IncomingHttpHeaders } from 'node:http'
import type { Incoming } from '../../domain/chat.ts'
import { formatKey } from '../../domain/key.ts'
import { messageCost } from '../../text/cost.ts'
import type { Backend, Call } from '../upstreams/backend.ts'
import { withTalk } from '../protocols/ask.ts'
import type { Heard as Reply, Sent } from '../protocols/dialect.ts'
import type { Lanes } from './lanes.ts'
import type { Home, Memories } from '../memoryRegistry.ts'
import { keepReceipt, receiptId } from '../receipts/receipts.ts'
import { type Reading, relay } from './relay.ts'
import type { SessionModels } from '../upstreams/sessionModels.ts'
import type { PriceTable } from '../observability/prices.ts'
import { type Course, faultsOf, passedTurn, type Request, receiptOf, turnOf } from './account.ts'
import { type Heard, hear, reachOf, withoutBegun } from './hear.ts'
import { keepReply } from './keep.ts'
import type { Shown } from './shown.ts'
import { isSide } from './side.ts'
import { headerOf, isOffTheRecord, placeOf, type Stance, type TakeFile, takeFiles, wished } from './wishes.ts'

/** What turns are made with. */
export type Room = {
  readonly memories: Memories
  readonly backend: Backend
  /** One turn of a session is heard at a time, so that two requests with the same news store it once. */
  readonly lanes: Lanes
  /** Who does the upkeep of each session, if that is the model its client asks. */
  readonly models: SessionModels | undefined
  readonly prices: PriceTable
  /** Takes in a file that stands in a message to a tenant. */
  readonly takeFile: TakeFile | undefined
  readonly report: (error: unknown) => void
}

/** One turn of a conversation: hear, recall, ask the model, pass its reply on and keep it. */
export async function takeTurn(room: Room, request: Request): Promise<void> {
  const { key, headers } = request
  if (key === undefined) return passThrough(room, request, 'none')
  const isOff = isOffTheRecord(headers['x-threadkeep-store']) || (key.id !== '' && !room.memories.hasSessions)
  const degraded = request.ask.files.length === 0 ? none : await takeFiles(room.takeFile, key, request.ask, isOff)
  // What leaves nothing begins nothing either.
  const template = isOff ? undefined : headerOf(headers, 'x-threadkeep-template')
  const home = room.memories.atHand(key, template) ?? (await room.memories.of(key, template))
  room.memories.enter(home.memory)
  try {
    const course = await heardInTurn(room, request, home, { key, isOff, degraded })
    if (course === undefined) return await passThrough(room, request, 'side')
    tell(request, course)
    try {
      const answer = await room.backend.ask(callOf(request, course.heard.shown))
      course.answer = answer
      if (!isOff) room.models?.heard(key, request.ask.model, answer.from, headers, request.isGuarded)
      await relay(answer, request.client, readingOf(room, request, course))
    } finally {
      request.onTurn(turnOf(request, course))
    }
  } finally {
    const closing = room.memories.leave(home.memory)
    if (closing !== undefined) await closing
  }
}

const none: readonly string[] = []

/** Hears a turn, after those of its session that came before it: until it is stored, the session is as it was read here. Nothing, if it is none. */
async function heardInTurn(room: Room, request: Request, home: Home, stance: Stance): Promise<Course | undefined> {
  const { memory, preamble } = home
  const { key, isOff } = stance
  const { ask, begun } = withoutBegun(request.ask)
  const before = performance.now()
  const lane = formatKey(key)
  const free = room.lanes.enter(lane)
  if (free !== undefined) await free
  try {
    const head = await memory.parts.sessions.head(key, reachOf(request.ask))
    if (isSide(request.ask, head)) return undefined
    const { person, isRetry, isOneTalk } = wished(memory, request, stance, head)
    const after = ask.previous === undefined ? undefined : await placeOf(memory, key, ask.previous)
    const priced = begun === undefined ? ask : withTalk(ask, { owed: ask.owed + messageCost(memory.tokenizer, begun) })
    const hearing = {
      memory,
      key,
      dialect: request.dialect,
      ask: priced,
      preamble,
      isOff,
      person,
      after,
      isRetry,
      isOneTalk,
    }
    const heard = await request.traced.memory('search_memory', key.scope, () =>
      hear(hearing, after === undefined ? head : undefined),
    )
    return courseOf(home, stance, begun, heard, performance.now() - before)
  } finally {
    room.lanes.leave(lane)
  }
}

const courseOf = (
  home: Home,
  { key, isOff, degraded }: Stance,
  begun: Sent | undefined,
  heard: Heard,
  memoryMillis: number,
): Course => ({
  home,
  key,
  heard,
  receipt: receiptId(key),
  begun,
  isOff,
  faults: faultsOf(heard, degraded),
  memoryMillis,
  first: undefined,
  reply: undefined,
  answer: undefined,
})

const callOf = (request: Request, { body, spent }: Pick<Shown, 'body' | 'spent'>): Call => ({
  dialect: request.dialect.name,
  body,
  spent,
  headers: headersOf(request),
  isGuarded: request.isGuarded,
  signal: request.client.signal,
})

/** How the answer to a turn is read: its reply is kept. */
const readingOf = (room: Room, request: Request, course: Course): Reading => ({
  dialect: request.dialect,
  streams: request.ask.streams,
  onFirst: () => {
    course.first = performance.now() - request.began
  },
  keep: (reply) => keep(room, request, course, reply),
  amend: request.headers['x-threadkeep-body'] === 'receipt' ? (text) => withReceipt(text, course.receipt) : undefined,
})

/** The client's headers, and where its trace goes on, if it has one. */
const headersOf = ({ headers, traced }: Request): IncomingHttpHeaders =>
  Object.keys(traced.headers).length === 0 ? headers : { ...headers, ...traced.headers }

/** A request that memory takes no part in. */
async function passThrough(room: Room, request: Request, memory: 'none' | 'side'): Promise<void> {
  const { dialect, ask, client } = request
  client.tell('x-threadkeep-memory', memory)
  // What memory would have resolved means nothing to the model server.
  const body = memory === 'side' ? dialect.write(ask, [], 0) : ask.body
  const answer = await room.backend.ask(callOf(request, { body, spent: 0 }))
  let reply: Reply | undefined
  let first: number | undefined
  try {
    await relay(answer, client, {
      dialect,
      streams: ask.streams,
      isLenient: memory === 'none',
      onFirst: () => {
        first = performance.now() - request.began
      },
      keep: async (heard) => {
        reply = heard
      },
    })
  } finally {
    request.onTurn(passedTurn(request, answer, first, reply))
  }
}

function tell({ client }: Request, course: Course): void {
  const { shown, epoch } = course.heard
  const { profile } = course.home.memory
  client.tell('x-threadkeep-memory', course.isOff ? 'off the record' : 'on')
  client.tell('x-threadkeep-tokens', `${shown.spent}/${profile.budget}`)
  client.tell('x-threadkeep-profile', course.home.profile)
  if (epoch !== undefined) client.tell('x-threadkeep-receipt', course.receipt)
  const { faults } = course
  if (faults.length > 0) client.tell('x-threadkeep-degraded', faults.join('; ').replace(/[^\x20-\x7e]/g, '?'))
}

/** Stores the reply and its receipt. One that cannot be kept is still the client's. */
async function keep(room: Room, request: Request, course: Course, heard: Reply): Promise<void> {
  const { home, key, begun } = course
  const { memory } = home
  const { epoch, question, shown } = course.heard
  // What a client has begun and the model went on with is one reply.
  const reply = begun === undefined ? heard.reply : { ...heard.reply, content: begun.content + textOf(heard.reply) }
  course.reply = heard
  if (epoch === undefined) return
  try {
    const store = () =>
      room.lanes.run(formatKey(key), () => keepReply(memory, key, { reply, question, epoch, ledger: shown.ledger }))
    const kept = await request.traced.memory('create_memory', key.scope, store)
    if (kept === undefined) return
    const { sequence, at } = kept.message
    await keepReceipt(
      memory.parts.sessions,
      kept.key,
      receiptOf(room.prices, request, course, { reply: heard, sequence, at }),
    )
  } catch (error) {
    room.report(error)
  }
}

const textOf = ({ content }: Incoming): string => (typeof content === 'string' ? content : '')

/** The receipt's id in the answer itself, for clients that cannot read headers. */
function withReceipt(text: string, receipt: string): string {
  return JSON.stringify({ ...(JSON.parse(text) as object), threadkeep: { receipt } })
}
