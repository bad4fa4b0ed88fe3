import type { IncomingHttpHeaders } from 'node:http'
import { MemoryError } from '../../domain/error.ts'
import { formatKey, type Key } from '../../domain/key.ts'
import type { Memory } from '../../memory.ts'
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
import { hear } from './hear.ts'
import type { Shown } from './shown.ts'
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
  const { key, ask, headers } = request
  if (key === undefined) return passThrough(room, request, 'none')
  await takeFiles(room, key, ask)
  const home = await room.memories.of(key, headerOf(headers, 'x-threadkeep-template'))
  await room.memories.using(home.memory, () => turn(room, request, home, key))
}

async function turn(room: Room, request: Request, home: Home, key: Key): Promise<void> {
  const { ask, dialect, headers, client } = request
  const { memory } = home
  const isOff = headers['x-threadkeep-store'] === 'false' || (key.id !== '' && !room.memories.hasSessions)
  if (isSide({ ...ask, metadata: ask.body.metadata }, await memory.parts.sessions.head(key, 0))) return passThrough(room, request, 'side')
  const person = headerOf(headers, 'x-threadkeep-person') ?? (memory.profile.sees.includes('person') ? (await memory.about(key))?.person : undefined)
  const after = ask.previous === undefined ? undefined : await place(memory, key, ask.previous)
  const hearing = { memory, key, dialect, ask, preamble: home.preamble, isOff, person, after }
  const before = performance.now()
  const heard = await request.traced.memory('search_memory', key.scope, () => room.lanes.run(formatKey(key), () => hear(hearing)))
  const receipt = receiptId(key)
  const course: Course = { home, key, heard, receipt, memoryMillis: performance.now() - before, first: undefined, reply: undefined, answer: undefined }
  tell(request, memory, heard.shown, isOff ? 'off the record' : 'on', heard.epoch === undefined ? undefined : receipt)
  room.models?.heard(key, ask.model, request.isGuarded ? undefined : headers.authorization)
  try {
    const call = {
      dialect: dialect.name,
      body: heard.shown.body,
      spent: heard.shown.spent,
      headers: { ...headers, ...request.traced.headers },
      isGuarded: request.isGuarded,
      signal: client.signal,
    }
    course.answer = await room.backend.ask(call)
    await relay(course.answer, client, {
      dialect,
      onFirst: () => {
        course.first = performance.now() - request.began
      },
      keep: (reply) => keep(room, request, course, reply),
      amend: headers['x-threadkeep-body'] === 'receipt' ? (text) => withReceipt(text, receipt) : undefined,
    })
  } finally {
    request.onTurn(turnOf(request, course, heard.epoch !== undefined))
  }
}

/** Files belong to tenants: in a session they are refused, whatever they are sent as. */
async function takeFiles({ takeFile }: Room, key: Key, ask: Ask): Promise<void> {
  if (ask.files.length === 0) return
  if (key.id !== '') throw new Refusal(400, 'files_not_allowed', 'File uploads not allowed for ephemeral sessions', 'messages')
  for (const { name, type, bytes } of ask.files) if (bytes !== undefined) await takeFile?.(key.scope, { name, type, bytes })
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
  return receipt.sequence
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

function tell({ client: { response } }: Request, { profile }: Memory, shown: Shown, memory: string, receipt: string | undefined): void {
  response.setHeader('x-threadkeep-memory', memory)
  response.setHeader('x-threadkeep-tokens', `${shown.spent}/${profile.budget}`)
  response.setHeader('x-threadkeep-profile', encodeURIComponent(profile.name))
  if (receipt !== undefined) response.setHeader('x-threadkeep-receipt', receipt)
  const degraded = faultsOf(shown)
  if (degraded.length > 0) response.setHeader('x-threadkeep-degraded', degraded.join('; ').replace(/[^\x20-\x7e]/g, '?'))
}

/**
 * Stores the reply and its receipt. One that cannot be kept is still the client's; one that comes after its session was
 * forgotten must not bring it back.
 */
async function keep(room: Room, request: Request, course: Course, reply: Reply): Promise<void> {
  course.reply = reply
  const { home, key, heard } = course
  if (heard.epoch === undefined) return
  const { memory } = home
  const { epoch } = heard
  const { ledger } = heard.shown
  try {
    const append = () => memory.append(key, [reply.reply], { epoch, ...(ledger === undefined ? {} : { answers: ledger }) })
    const [stored] = await request.traced.memory('create_memory', key.scope, () => room.lanes.run(formatKey(key), append))
    const { expiresAt } = await memory.parts.sessions.head(key, 0)
    await keepReceipt(
      memory.parts.sessions,
      key,
      receiptOf(room.prices, request, course, { reply, sequence: stored?.sequence ?? null, at: stored?.at ?? 0 }),
      expiresAt,
    )
  } catch (error) {
    if (!(error instanceof MemoryError && error.code === 'erased')) room.report(error)
  }
}

/** The receipt's id in the answer itself, for clients that cannot read headers. */
function withReceipt(text: string, receipt: string): string {
  return JSON.stringify({ ...(JSON.parse(text) as object), threadkeep: { receipt } })
}

const headerOf = (headers: IncomingHttpHeaders, name: string): string | undefined => {
  const value = headers[name]
  return typeof value === 'string' && value.trim() !== '' ? value.trim() : undefined
}
