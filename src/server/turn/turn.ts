import type { IncomingHttpHeaders } from 'node:http'
import type { Incoming } from '../../domain/chat.ts'
import { aboutIn } from '../../domain/entry.ts'
import { MemoryError } from '../../domain/error.ts'
import { formatKey, type Key, personKey } from '../../domain/key.ts'
import type { Memory } from '../../memory.ts'
import { messageCost } from '../../text/cost.ts'
import type { Backend } from '../backend.ts'
import type { Ask, Heard as Reply } from '../dialects/dialect.ts'
import type { Lanes } from '../lanes.ts'
import type { Home, Memories } from '../memories.ts'
import { Refusal } from '../problem.ts'
import { findReceipt, keepReceipt, receiptId } from '../receipts.ts'
import { relay } from '../relay.ts'
import type { SessionModels } from '../sessionModels.ts'
import type { PriceTable } from '../watch/prices.ts'
import { type Course, faultsOf, passedTurn, type Request, receiptOf, turnOf } from './account.ts'
import { whereIs } from './branch.ts'
import { type Hearing, hear, withoutBegun } from './hear.ts'
import { keepReply } from './keep.ts'
import { isSide } from './side.ts'

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
  readonly takeFile: ((scope: string, file: { readonly name: string; readonly type: string; readonly bytes: Uint8Array }) => Promise<unknown>) | undefined
  readonly report: (error: unknown) => void
}

/** One turn of a conversation: hear, recall, ask the model, pass its reply on and keep it. */
export async function takeTurn(room: Room, request: Request): Promise<void> {
  const { key, headers } = request
  if (key === undefined) return passThrough(room, request, 'none')
  const isOff = isOffTheRecord(headers['x-threadkeep-store']) || (key.id !== '' && !room.memories.hasSessions)
  const degraded = await takeFiles(room, key, request.ask, isOff)
  // What leaves nothing begins nothing either.
  const home = await room.memories.of(key, isOff ? undefined : headerOf(headers, 'x-threadkeep-template'))
  await room.memories.using(home.memory, () => turn(room, request, home, { key, isOff, degraded }))
}

type Stance = { readonly key: Key; readonly isOff: boolean; readonly degraded: readonly string[] }

async function turn(room: Room, request: Request, home: Home, { key, isOff, degraded }: Stance): Promise<void> {
  const { dialect, headers, client } = request
  const { memory } = home
  const head = await memory.parts.sessions.head(key, 0)
  if (isSide({ ...request.ask, metadata: request.ask.body.metadata }, head)) return passThrough(room, request, 'side')
  const { ask, begun } = withoutBegun(request.ask)
  const about = aboutIn(head.derived)
  if (isOff && about?.movedTo !== undefined) throw movedTo(key, `${key.scope}:${about.movedTo}`)
  const hearing: Hearing = {
    ...{ memory, key, dialect, isOff, preamble: home.preamble },
    ask: begun === undefined ? ask : { ...ask, owed: ask.owed + messageCost(memory.tokenizer, begun) },
    person: personIn(memory, key, headerOf(headers, 'x-threadkeep-person') ?? about?.person),
    after: ask.previous === undefined ? undefined : await place(memory, key, ask.previous),
    isRetry: Number(headers['x-stainless-retry-count'] ?? 0) > 0,
    isOneTalk: !request.isMapped,
  }
  const before = performance.now()
  const heard = await request.traced.memory('search_memory', key.scope, () => room.lanes.run(formatKey(key), () => hear(hearing)))
  const receipt = receiptId(key)
  const course: Course = {
    home,
    key,
    heard,
    receipt,
    begun,
    isOff,
    degraded,
    memoryMillis: performance.now() - before,
    first: undefined,
    reply: undefined,
    answer: undefined,
  }
  tell(request, course)
  try {
    course.answer = await room.backend.ask({
      dialect: dialect.name,
      body: heard.shown.body,
      spent: heard.shown.spent,
      headers: { ...headers, ...request.traced.headers },
      isGuarded: request.isGuarded,
      signal: client.signal,
    })
    if (!isOff) room.models?.heard(key, ask.model, course.answer.from, headers, request.isGuarded)
    await relay(course.answer, client, {
      dialect,
      onFirst: () => {
        course.first = performance.now() - request.began
      },
      keep: (reply) => keep(room, request, course, reply),
      amend: headers['x-threadkeep-body'] === 'receipt' ? (text) => withReceipt(text, receipt) : undefined,
    })
  } finally {
    request.onTurn(turnOf(request, course))
  }
}

/** Whether nothing of a turn is to be kept. What is meant as no and written otherwise must not count as yes. */
function isOffTheRecord(wish: string | readonly string[] | undefined): boolean {
  const word = String(wish ?? 'true')
    .trim()
    .toLowerCase()
  if (word === 'true' || word === 'false') return word === 'false'
  throw new Refusal(400, 'bad_header', `x-threadkeep-store is ${JSON.stringify(word.slice(0, 40))}; it must be true or false.`, 'x-threadkeep-store')
}

/** Who speaks, if the profile wants to know; told wrongly, it is refused before anything is stored. */
function personIn({ profile }: Memory, { scope }: Key, person: string | undefined): string | undefined {
  if (person === undefined || !profile.sees.includes('person')) return undefined
  personKey(scope, person)
  return person
}

const movedTo = (key: Key, to: string): MemoryError => new MemoryError('moved', `Session ${formatKey(key)} goes on as ${to}.`, { to, param: 'key' })

/** Files belong to tenants: in a session they are refused, whatever they are sent as. One that cannot be read is the model's all the same. */
async function takeFiles({ takeFile }: Room, key: Key, ask: Ask, isOff: boolean): Promise<readonly string[]> {
  if (ask.files.length === 0) return []
  if (key.id !== '') throw new Refusal(400, 'files_not_allowed', 'File uploads not allowed for ephemeral sessions', 'messages')
  if (isOff || takeFile === undefined) return []
  const degraded: string[] = []
  for (const { name, type, bytes } of ask.files) {
    if (bytes === undefined) continue
    try {
      await takeFile(key.scope, { name, type, bytes })
    } catch (error) {
      if (!(error instanceof MemoryError)) throw error
      degraded.push(`file ${error.code}`)
    }
  }
  return degraded
}

/** Where the reply stands that a client goes on from. */
async function place(memory: Memory, key: Key, previous: string): Promise<number> {
  const receipt = await findReceipt(memory.parts.sessions, key, { response: previous })
  if (receipt?.sequence == null) {
    throw new Refusal(
      404,
      'previous_response_not_found',
      `There is no response ${JSON.stringify(previous.slice(0, 80))} in this session. Go on from one of its own, or send the conversation as input.`,
      'previous_response_id',
    )
  }
  // What was cut off by an edit is another line of the conversation by now.
  if ((await whereIs(memory, key, receipt.sequence)) === key) return receipt.sequence
  throw new Refusal(
    404,
    'previous_response_not_found',
    `The response ${JSON.stringify(previous.slice(0, 80))} is no longer part of this session: the conversation went on from an earlier one.`,
    'previous_response_id',
  )
}

/** A request that memory takes no part in. */
async function passThrough(room: Room, request: Request, memory: 'none' | 'side'): Promise<void> {
  const { dialect, ask, headers, client } = request
  client.response.setHeader('x-threadkeep-memory', memory)
  // What memory would have resolved means nothing to the model server.
  const body = memory === 'side' ? dialect.write(ask, [], 0) : ask.body
  const answer = await room.backend.ask({
    dialect: dialect.name,
    body,
    spent: 0,
    headers: { ...headers, ...request.traced.headers },
    isGuarded: request.isGuarded,
    signal: client.signal,
  })
  let reply: Reply | undefined
  let first: number | undefined
  try {
    await relay(answer, client, {
      dialect,
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

function tell({ client: { response } }: Request, course: Course): void {
  const { shown, epoch } = course.heard
  const { profile } = course.home.memory
  response.setHeader('x-threadkeep-memory', course.isOff ? 'off the record' : 'on')
  response.setHeader('x-threadkeep-tokens', `${shown.spent}/${profile.budget}`)
  response.setHeader('x-threadkeep-profile', encodeURIComponent(profile.name))
  if (epoch !== undefined) response.setHeader('x-threadkeep-receipt', course.receipt)
  const degraded = faultsOf(course)
  if (degraded.length > 0) response.setHeader('x-threadkeep-degraded', degraded.join('; ').replace(/[^\x20-\x7e]/g, '?'))
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
    const store = () => room.lanes.run(formatKey(key), () => keepReply(memory, key, { reply, question, epoch, ledger: shown.ledger }))
    const kept = await request.traced.memory('create_memory', key.scope, store)
    if (kept === undefined) return
    const { sequence, at } = kept.message
    await keepReceipt(memory.parts.sessions, key, receiptOf(room.prices, request, course, { reply: heard, sequence, at }))
  } catch (error) {
    room.report(error)
  }
}

const textOf = ({ content }: Incoming): string => (typeof content === 'string' ? content : '')

/** The receipt's id in the answer itself, for clients that cannot read headers. */
function withReceipt(text: string, receipt: string): string {
  return JSON.stringify({ ...(JSON.parse(text) as object), threadkeep: { receipt } })
}

const headerOf = (headers: IncomingHttpHeaders, name: string): string | undefined => {
  const value = headers[name]
  return typeof value === 'string' && value.trim() !== '' ? value.trim() : undefined
}
