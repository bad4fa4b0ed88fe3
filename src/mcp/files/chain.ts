import { hash } from 'node:crypto'
import { isObject } from '../../domain/checks.ts'
import { link, origin } from '../../portable/chain.ts'

const outcomes = ['allowed', 'refused', 'failed'] as const
export type Outcome = (typeof outcomes)[number]

/** A line of the log. `torn` is the hash of what a writer left that was cut short before this line; nothing of a file's content is ever in it. */
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
 * How far a log was followed: lines that count, the bytes they take and the hash of the last. `torn` are bytes after
 * them that are no line, left by a writer that was cut short; only a line that owns up to them may follow.
 */
export type Reach = {
  readonly count: number
  readonly bytes: number
  readonly hash: string
  readonly torn?: Torn | undefined
}

/** Bytes without their newline, after others of the kind; `length` is that of all of them together. */
type Torn = { readonly bytes: Uint8Array; readonly before: Torn | undefined; readonly length: number }

/** Writers that died have left no more than this, in bytes: a line or two each. */
export const mostLeft = 1_048_576

/** A log before its first line. */
export const beginning: Reach = { count: 0, bytes: 0, hash: origin }

/** The next line of a log, with its newline; `isOpen` if what stands before it does not end with one. */
export function nextLine(
  reach: Reach,
  fields: Omit<Line, 'torn' | 'previous' | 'hash'>,
  isOpen: boolean,
): { readonly text: string; readonly hash: string } {
  const torn = tornOf(reach)
  const { line, hash: sum } = link(reach.hash, {
    ...fields,
    ...(torn === undefined ? {} : { torn }),
    previous: reach.hash,
  })
  return { text: `${isOpen ? '\n' : ''}${line}\n`, hash: sum }
}

/** A log with one line more, or what is wrong with that line. */
export function follow(reach: Reach, bytes: Uint8Array): { readonly reach: Reach; readonly line?: Line } | string {
  if (bytes.length === 0) return 'is empty'
  const said = parsed(bytes)
  if (said === undefined) {
    const length = (reach.torn === undefined ? 0 : reach.torn.length + 1) + bytes.length
    return length > mostLeft
      ? 'is no line of the log'
      : { reach: { ...reach, torn: { bytes, before: reach.torn, length } } }
  }
  const { hash: claimed, ...body } = said.fields
  if (body.previous !== reach.hash)
    return 'does not continue the line before it: a line was changed, removed, added or moved'
  if (relinked(reach.hash, body) !== said.text || !isLine(said.fields)) return 'was changed'
  const torn = tornOf(reach)
  if (body.torn !== torn)
    return torn === undefined ? 'owns up to bytes that are gone' : 'comes after bytes that are no line of the log'
  const taken = reach.torn === undefined ? 0 : reach.torn.length + 1
  return {
    reach: { count: reach.count + 1, bytes: reach.bytes + taken + bytes.length + 1, hash: String(claimed) },
    line: said.fields,
  }
}

function tornOf({ torn }: Reach): string | undefined {
  if (torn === undefined) return undefined
  const pieces: Uint8Array[] = []
  for (let at: Torn | undefined = torn; at !== undefined; at = at.before) pieces.push(at.bytes, newline)
  return hash('sha256', Buffer.concat(pieces.slice(0, -1).reverse()))
}

const newline = Buffer.from('\n')

/** Whoever can write the log can link a line to it; one that the server would never have written is not taken for its own. */
function isLine(fields: Readonly<Record<string, unknown>>): fields is Line {
  const { at, user, operation, path, outcome, why = '', torn = '', previous, hash: sum, ...more } = fields
  const texts = [at, user, operation, path, why, torn, previous, sum]
  return (
    texts.every((text) => typeof text === 'string') &&
    outcomes.some((one) => one === outcome) &&
    Object.keys(more).length === 0
  )
}

function relinked(previous: string, body: Readonly<Record<string, unknown>>): string | undefined {
  try {
    return link(previous, body).line
  } catch {
    // nested deeper than any line that was ever written
    return undefined
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** A line that is JSON; what a crash leaves of one never is. */
function parsed(bytes: Uint8Array): { readonly text: string; readonly fields: Record<string, unknown> } | undefined {
  try {
    const text = utf8.decode(bytes)
    const fields: unknown = JSON.parse(text)
    return isObject(fields) ? { text, fields } : undefined
  } catch {
    return undefined
  }
}
