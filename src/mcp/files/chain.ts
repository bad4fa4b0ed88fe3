import { hash } from 'node:crypto'
import { isObject } from '../../domain/checks.ts'
import { link, origin } from '../../portable/chain.ts'

export type Outcome = 'allowed' | 'refused' | 'failed'

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
export type Reach = { readonly count: number; readonly bytes: number; readonly hash: string; readonly torn: Uint8Array }

/** A log before its first line. */
export const beginning: Reach = { count: 0, bytes: 0, hash: origin, torn: new Uint8Array() }

/** The next line of a log, with its newline; `isOpen` if what stands before it does not end with one. */
export function nextLine(reach: Reach, fields: Omit<Line, 'torn' | 'previous' | 'hash'>, isOpen: boolean): { readonly text: string; readonly hash: string } {
  const torn = tornOf(reach)
  const { line, hash: sum } = link(reach.hash, { ...fields, ...(torn === undefined ? {} : { torn }), previous: reach.hash })
  return { text: `${isOpen ? '\n' : ''}${line}\n`, hash: sum }
}

/** A log with one line more, or what is wrong with that line. */
export function follow(reach: Reach, bytes: Uint8Array): { readonly reach: Reach; readonly line?: Line } | string {
  if (bytes.length === 0) return 'is empty'
  const said = parsed(bytes)
  if (said === undefined) return { reach: { ...reach, torn: joined(reach.torn, bytes) } }
  const { hash: claimed, ...body } = said.fields
  if (body.previous !== reach.hash) return 'does not continue the line before it: a line was changed, removed, added or moved'
  if (relinked(reach.hash, body) !== said.text) return 'was changed'
  const torn = tornOf(reach)
  if (body.torn !== torn) return torn === undefined ? 'owns up to bytes that are gone' : 'comes after bytes that are no line of the log'
  const taken = torn === undefined ? 0 : reach.torn.length + 1
  return {
    reach: { count: reach.count + 1, bytes: reach.bytes + taken + bytes.length + 1, hash: String(claimed), torn: new Uint8Array() },
    // Byte for byte what was written, from fields of these types.
    line: said.fields as unknown as Line,
  }
}

const tornOf = ({ torn }: Reach): string | undefined => (torn.length === 0 ? undefined : hash('sha256', torn))

function relinked(previous: string, body: Readonly<Record<string, unknown>>): string | undefined {
  try {
    return link(previous, body).line
  } catch {
    // nested deeper than any line that was ever written
    return undefined
  }
}

function joined(torn: Uint8Array, bytes: Uint8Array): Uint8Array {
  return torn.length === 0 ? bytes : Buffer.concat([torn, Buffer.from('\n'), bytes])
}

/** A line that is JSON; what a crash leaves of one never is. */
function parsed(bytes: Uint8Array): { readonly text: string; readonly fields: Record<string, unknown> } | undefined {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
    const fields: unknown = JSON.parse(text)
    return isObject(fields) ? { text, fields } : undefined
  } catch {
    return undefined
  }
}
