import { hash } from 'node:crypto'
import { isObject } from '../../domain/checks.ts'
import { link, origin } from '../../portable/chain.ts'

const outcomes = ['allowed', 'refused', 'failed'] as const
export type Outcome = (typeof outcomes)[number]

/**
 * Line of the audit log, without any file content. `torn` is the hash of the bytes that an interrupted writer left before
 * this line.
 */
export type Line = {
  readonly at: string
  readonly user: string
  readonly operation: string
  readonly path: string
  readonly outcome: Outcome
  readonly why?: string
  readonly torn?: string
  readonly previous: string
  readonly hash: string
}

/**
 * State of the hash chain after a number of lines: their count and bytes, and the hash of the last. `torn` are bytes after
 * them that are not a line; only a line that contains their hash may follow.
 */
export type ChainState = {
  readonly count: number
  readonly bytes: number
  readonly hash: string
  readonly torn?: TornBytes | undefined
}

/** Linked list of torn fragments without their newlines, newest first; `length` is the total with newlines between. */
type TornBytes = { readonly bytes: Uint8Array; readonly before: TornBytes | undefined; readonly length: number }

/** Upper limit of what interrupted writers leave: a line or two each. */
export const maxTornBytes = 1_048_576

export const initialState: ChainState = { count: 0, bytes: 0, hash: origin }

/** Serializes the next line with its newline; `lacksNewline` if the text before it does not end with one. */
export function nextLine(
  state: ChainState,
  fields: Omit<Line, 'torn' | 'previous' | 'hash'>,
  lacksNewline: boolean,
): { readonly text: string; readonly hash: string } {
  const torn = tornHash(state)
  const linked = link(state.hash, { ...fields, ...(torn === undefined ? {} : { torn }), previous: state.hash })
  return { text: `${lacksNewline ? '\n' : ''}${linked.line}\n`, hash: linked.hash }
}

/** Advances the chain by one line, or returns the fault of the line as a verb phrase. */
export function advance(
  state: ChainState,
  bytes: Uint8Array,
): { readonly state: ChainState; readonly line?: Line } | string {
  if (bytes.length === 0) return 'is empty'
  const parsed = parseLine(bytes)
  if (parsed === undefined) {
    const length = (state.torn === undefined ? 0 : state.torn.length + 1) + bytes.length
    return length > maxTornBytes
      ? 'is not a valid log line'
      : { state: { ...state, torn: { bytes, before: state.torn, length } } }
  }
  const { hash: claimedHash, ...body } = parsed.fields
  if (body.previous !== state.hash)
    return 'does not continue the line before it: a line was changed, removed, added or moved'
  if (serialize(state.hash, body) !== parsed.text || !isAuditLine(parsed.fields)) return 'was changed'
  const torn = tornHash(state)
  if (body.torn !== torn)
    return torn === undefined ? 'records torn bytes that are missing' : 'follows bytes that are not a log line'
  const tornLength = state.torn === undefined ? 0 : state.torn.length + 1
  return {
    state: {
      count: state.count + 1,
      bytes: state.bytes + tornLength + bytes.length + 1,
      hash: String(claimedHash),
    },
    line: parsed.fields,
  }
}

function tornHash({ torn }: ChainState): string | undefined {
  if (torn === undefined) return undefined
  const fragments: Uint8Array[] = []
  for (let item: TornBytes | undefined = torn; item !== undefined; item = item.before)
    fragments.push(item.bytes, newline)
  return hash('sha256', Buffer.concat(fragments.slice(0, -1).reverse()))
}

const newline = Buffer.from('\n')

/** Rejects lines the server would never write: anyone with write access to the log can append a correctly linked line. */
function isAuditLine(fields: Readonly<Record<string, unknown>>): fields is Line {
  const { at, user, operation, path, outcome, why = '', torn = '', previous, hash: claimedHash, ...unknown } = fields
  const texts = [at, user, operation, path, why, torn, previous, claimedHash]
  return (
    texts.every((text) => typeof text === 'string') &&
    outcomes.some((one) => one === outcome) &&
    Object.keys(unknown).length === 0
  )
}

function serialize(previous: string, body: Readonly<Record<string, unknown>>): string | undefined {
  try {
    return link(previous, body).line
  } catch {
    // The body is nested too deeply to be a log line.
    return undefined
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Returns undefined for bytes that are not a JSON object. A line truncated by a crash never is one. */
function parseLine(bytes: Uint8Array): { readonly text: string; readonly fields: Record<string, unknown> } | undefined {
  try {
    const text = utf8.decode(bytes)
    const fields: unknown = JSON.parse(text)
    return isObject(fields) ? { text, fields } : undefined
  } catch {
    return undefined
  }
}
