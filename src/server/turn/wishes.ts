import type { IncomingHttpHeaders } from 'node:http'
import { aboutIn } from '../../domain/entry.ts'
import { MemoryError } from '../../domain/error.ts'
import { formatKey, type Key, personKey } from '../../domain/key.ts'
import type { Head } from '../../domain/session.ts'
import type { Memory } from '../../memory.ts'
import type { Ask } from '../protocols/dialect.ts'
import { Refusal } from '../http/problem.ts'
import { findReceipt } from '../receipts/receipts.ts'
import type { Request } from './account.ts'
import { pageOf } from './branch.ts'
import type { Hearing } from './hear.ts'

/** Where a turn belongs, and whether anything of it is kept. */
export type Stance = { readonly key: Key; readonly isOff: boolean; readonly degraded: readonly string[] }

/** Takes in a file that stands in a message to a tenant. */
export type TakeFile = (
  scope: string,
  file: { readonly name: string; readonly type: string; readonly bytes: Uint8Array },
) => Promise<unknown>

/** What a client wishes for beside its words; wished wrongly, it is refused before anything is stored. */
export function wished(
  memory: Memory,
  request: Request,
  { key, isOff }: Stance,
  head: Head,
): Pick<Hearing, 'person' | 'isRetry' | 'isOneTalk'> {
  const { headers, isMapped } = request
  const about = aboutIn(head.derived)
  if (isOff && about?.movedTo !== undefined) throw movedTo(key, `${key.scope}:${about.movedTo}`)
  return {
    person: personIn(memory, key, headerOf(headers, 'x-threadkeep-person') ?? about?.person),
    isRetry: Number(headers['x-stainless-retry-count'] ?? 0) > 0,
    isOneTalk: !isMapped,
  }
}

/** Whether nothing of a turn is to be kept. What is meant as no and written otherwise must not count as yes. */
export function isOffTheRecord(wish: string | readonly string[] | undefined): boolean {
  if (wish === undefined) return false
  const word = String(wish).trim().toLowerCase()
  if (word === 'true' || word === 'false') return word === 'false'
  throw new Refusal(
    400,
    'bad_header',
    `x-threadkeep-store is ${JSON.stringify(word.slice(0, 40))}; it must be true or false.`,
    'x-threadkeep-store',
  )
}

/** Who speaks, if the profile wants to know. */
function personIn({ profile }: Memory, { scope }: Key, person: string | undefined): string | undefined {
  if (person === undefined || !profile.sees.includes('person')) return undefined
  personKey(scope, person)
  return person
}

const movedTo = (key: Key, to: string): MemoryError =>
  new MemoryError('moved', `Session ${formatKey(key)} goes on as ${to}.`, { to, param: 'key' })

/** Files belong to tenants: in a session they are refused, whatever they are sent as. One that cannot be read is the model's all the same. */
export async function takeFiles(
  takeFile: TakeFile | undefined,
  key: Key,
  ask: Ask,
  isOff: boolean,
): Promise<readonly string[]> {
  if (ask.files.length === 0) return []
  if (key.id !== '')
    throw new Refusal(400, 'files_not_allowed', 'File uploads not allowed for ephemeral sessions', 'messages')
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
export async function placeOf(memory: Memory, key: Key, previous: string): Promise<number> {
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
  if ((await pageOf(memory, key, receipt.sequence)).length > 0) return receipt.sequence
  throw new Refusal(
    404,
    'previous_response_not_found',
    `The response ${JSON.stringify(previous.slice(0, 80))} is no longer part of this session: the conversation went on from an earlier one.`,
    'previous_response_id',
  )
}

/** What a header says, if it says anything. */
export const headerOf = (headers: IncomingHttpHeaders, name: string): string | undefined => {
  const value = headers[name]
  return typeof value === 'string' && value.trim() !== '' ? value.trim() : undefined
}
