import type { IncomingHttpHeaders } from 'node:http'
import type { Incoming } from '../domain/chat.ts'
import type { Message, Tokens } from '../domain/entry.ts'
import { MemoryError } from '../domain/error.ts'
import { formatKey, type Key } from '../domain/key.ts'
import type { Ledger } from '../domain/ledger.ts'
import type { Memory } from '../memory.ts'
import { barringSecrets, marksIn } from '../text/secretMark.ts'
import { type Ask, isInstruction, parseAsk, type Sent } from './ask.ts'
import type { Backend } from './backend.ts'
import type { Lanes } from './lanes.ts'
import { type Compared, reconcile, reworded } from './reconcile.ts'
import { type Client, relay } from './relay.ts'
import type { SessionModels } from './sessionModels.ts'
import { asSent, type Shown, withMemory } from './show.ts'

/** What turns are made with. */
export type Room = {
  readonly memory: Memory
  readonly backend: Backend
  /** One turn of a session is heard at a time, so that two requests with the same news store it once. */
  readonly lanes: Lanes
  /** Who does the upkeep of each session, if that is the model its client asks. */
  readonly models: SessionModels | undefined
  readonly report: (error: unknown) => void
}

/** When a reply was asked for, and the receipt of what it was asked with. */
type Asked = { readonly epoch: number | undefined; readonly answers: Ledger | undefined }

/** A turn as memory has heard it: what to send, and when, if it is part of the conversation. */
type Heard = { readonly shown: Shown; readonly epoch: number | undefined }

/** One turn of a conversation: hear, recall, ask the model, pass its reply on and keep it. */
export async function takeTurn(room: Room, key: Key, body: Readonly<Record<string, unknown>>, headers: IncomingHttpHeaders, client: Client): Promise<void> {
  const { memory, backend, lanes } = room
  const ask = parseAsk(body, memory.tokenizer)
  const { shown, epoch } = await lanes.run(formatKey(key), () => hear(memory, key, ask))
  tell(client, shown, memory)
  room.models?.heard(key, body.model, headers.authorization)
  const answer = await backend.chat({ body, messages: shown.messages, spent: shown.spent, headers, signal: client.signal })
  await relay(answer, client, (reply) => keep(room, key, { epoch, answers: shown.ledger }, reply))
}

/** The user's words are safe before anything else happens. */
async function hear(memory: Memory, key: Key, ask: Ask): Promise<Heard> {
  const said = ask.sent.filter((message) => !isInstruction(message))
  // Without a word of the conversation this is no turn of it.
  if (said.length === 0) return { shown: asSent(ask, memory.tokenizer, 'messages'), epoch: undefined }
  const stored = (await memory.transcript(key, { limit: ask.sent.length, newest: true })).filter((message) => !isInstruction(message))
  const fresh = await memory.append(
    key,
    (await unheard(memory, key, stored, said)).map((message) => message.raw),
    { replyFollows: true },
  )
  const whole = [...stored, ...fresh]
  const turn = whole.at(-ask.turn.filter((message) => !isInstruction(message)).length)
  const epoch = await memory.epoch(key)
  return { shown: await recall(memory, key, ask, turn?.sequence ?? 0), epoch }
}

/**
 * What of the messages sent is not stored yet. Secrets are not kept: what a client resends is compared as it would be
 * kept. What was kept by another process, whose marks mean nothing here, is known by the rest; but rather is a message
 * kept twice than the newest one lost because another was like it but for its secret.
 */
async function unheard(memory: Memory, key: Key, stored: readonly Message[], said: readonly Sent[]): Promise<readonly Sent[]> {
  const hasMarks = (message: Message): boolean => marksIn(JSON.stringify(message)).length > 0
  if (!stored.some(hasMarks)) return reconcile(stored, said)
  const bare = (message: Compared): Compared => reworded(message, barringSecrets)
  const known = said.length - reconcile(stored.map(bare), said, said.map(bare)).length
  const kept = await Promise.all(said.slice(0, known).map((message) => memory.asKept(key, message)))
  // Of those that are alike but for their secrets, the first that has another one is new, and all that follow it.
  for (const [place, message] of stored.slice(-known).entries()) {
    if (known === 0 || !hasMarks(message)) continue
    const isKnown = memory.knowsSecrets(key, JSON.stringify(message))
    const isSame = isKnown ? sameAs(kept[place], message) : place < said.length - 1
    if (!isSame) return said.slice(place)
  }
  return said.slice(known)
}

const sameAs = (one: Compared | undefined, other: Compared): boolean =>
  one !== undefined && JSON.stringify(reworded(one, asIs)) === JSON.stringify(reworded(other, asIs))
const asIs = (text: string): string => text

async function recall(memory: Memory, key: Key, ask: Ask, first: number): Promise<Shown> {
  const budget: Tokens = memory.profile.budget - ask.owed
  if (budget < 1) return asSent(ask, memory.tokenizer, 'budget')
  try {
    return withMemory(ask, await memory.context(key, { budget }), first, memory.tokenizer)
  } catch (error) {
    if (error instanceof MemoryError && error.code === 'budget-too-small') return asSent(ask, memory.tokenizer, 'budget')
    throw error
  }
}

function tell({ response }: Client, shown: Shown, { profile }: Memory): void {
  response.setHeader('x-threadkeep-tokens', `${shown.spent}/${profile.budget}`)
  response.setHeader('x-threadkeep-profile', encodeURIComponent(profile.name))
  const faults = shown.ledger?.degraded.map(({ step, why }) => `${step} ${why}`) ?? []
  const degraded = [...(shown.degraded === undefined ? [] : [shown.degraded]), ...faults]
  if (degraded.length > 0) response.setHeader('x-threadkeep-degraded', degraded.join('; ').replace(/[^\x20-\x7e]/g, '?'))
}

/** A reply that cannot be kept is still the client's; one that comes after its session was forgotten must not bring it back. */
async function keep({ memory, report }: Room, key: Key, { epoch, answers }: Asked, reply: Incoming): Promise<void> {
  try {
    if (epoch !== undefined) await memory.append(key, [reply], { epoch, ...(answers === undefined ? {} : { answers }) })
  } catch (error) {
    if (!(error instanceof MemoryError && error.code === 'erased')) report(error)
  }
}
