import { hash } from 'node:crypto'
import { isObject } from '../domain/checks.ts'
import { MemoryError } from '../domain/error.ts'
import { canonical } from './canonical.ts'

/** A line of a bundle and the hash in it, which stands for everything up to and including the line. */
export type Link = { readonly line: string; readonly hash: string }

/** What stands in a line beside its hash. */
export type Body = Readonly<Record<string, unknown>>

/** What comes before the first line. */
export const origin = ''

/**
 * Writes a line that continues a chain: its `hash` is the SHA-256 of the hash before it and its own canonical body.
 *
 * @example
 * const header = link(origin, { bundle: 'threadkeep', version: 1 })
 * const next = link(header.hash, { end: { sessions: 0, messages: 0, entries: 0 } })
 */
export function link(previous: string, body: Body): Link {
  const fields = Object.entries(body).map(([name, value]): Field => [name, canonical(value)])
  const sum = hash('sha256', previous + joined(fields))
  return { line: joined([...fields, ['hash', canonical(sum)]]), hash: sum }
}

/** A long message is written as JSON once, not once more with its hash beside it. */
type Field = readonly [name: string, json: string]
const joined = (fields: readonly Field[]): string =>
  `{${fields
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, json]) => `${JSON.stringify(name)}:${json}`)
    .join(',')}}`

/** Reads a line back; one that is not, byte for byte, what `link` would write here is refused. */
export function unlink(previous: string, line: string, number: number): { readonly body: Body; readonly hash: string } {
  const { hash: claimed, ...body } = parsed(line, number)
  const right = relinked(previous, body, number)
  if (right.hash !== claimed)
    throw damaged(number, 'does not continue the lines before it: something was changed, removed, added or moved')
  if (right.line !== line) throw damaged(number, 'is not written as an export writes it')
  return { body, hash: right.hash }
}

function relinked(previous: string, body: Body, number: number): Link {
  try {
    return link(previous, body)
  } catch {
    throw damaged(number, 'is nested too deeply')
  }
}

function parsed(line: string, number: number): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(line)
    if (isObject(value)) return value
  } catch {
    // told below, with what to do about it
  }
  throw damaged(number, 'is not a JSON object')
}

/** The error for a bundle that cannot be trusted from this line on. */
export const damaged = (line: number, fault: string): MemoryError =>
  new MemoryError('bad-bundle', `Line ${line} of the bundle ${fault}. Fetch the bundle again, or export it again.`, {
    param: `line ${line}`,
  })
