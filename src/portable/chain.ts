import { hash } from 'node:crypto'
import { isObject, MemoryError } from '../domain/error.ts'
import { runSync, type Work } from '../domain/work.ts'
import { toCanonicalJson, toCanonicalJsonInSteps } from './canonical.ts'

/** A line of a hash chain; its hash covers all lines up to and including it. */
export type ChainLine = { readonly line: string; readonly hash: string }

/** The fields of a line without its hash. */
export type LineBody = Readonly<Record<string, unknown>>

/** The previous hash of the first line. */
export const chainStart = ''

/**
 * Creates the next line of a chain. Its `hash` is the SHA-256 of the previous hash and the canonical body.
 *
 * @example
 * const header = createChainLine(chainStart, { bundle: 'threadkeep', version: 1 })
 * const next = createChainLine(header.hash, { end: { sessions: 0, messages: 0, entries: 0 } })
 */
export const createChainLine = (previousHash: string, body: LineBody): ChainLine =>
  runSync(createChainLineInSteps(previousHash, body))

/** `createChainLine` as interruptible work. */
export function* createChainLineInSteps(previousHash: string, body: LineBody): Work<ChainLine> {
  const fields: SerializedField[] = []
  for (const [name, value] of Object.entries(body)) fields.push([name, yield* toCanonicalJsonInSteps(value)])
  const digest = hash('sha256', previousHash + joinFields(fields))
  return { line: joinFields([...fields, ['hash', toCanonicalJson(digest)]]), hash: digest }
}

/** Fields are serialized once for both the hash and the line, because messages may be long. */
type SerializedField = readonly [name: string, json: string]
const joinFields = (fields: readonly SerializedField[]): string =>
  `{${fields
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, json]) => `${JSON.stringify(name)}:${json}`)
    .join(',')}}`

/** Parses a line; throws unless it is byte for byte what `createChainLine` would create at this position. */
export const verifyChainLine = (previousHash: string, line: string, lineNumber: number): VerifiedLine =>
  runSync(verifyChainLineInSteps(previousHash, line, lineNumber))

type VerifiedLine = { readonly body: LineBody; readonly hash: string }

/** `verifyChainLine` as interruptible work. */
export function* verifyChainLineInSteps(previousHash: string, line: string, lineNumber: number): Work<VerifiedLine> {
  const { hash: claimedHash, ...body } = parseObject(line, lineNumber)
  yield line.length
  const expected = yield* recreateLineInSteps(previousHash, body, lineNumber)
  if (expected.hash !== claimedHash)
    throw damagedBundleError(
      lineNumber,
      'does not continue the lines before it: something was changed, removed, added or moved',
    )
  if (expected.line !== line) throw damagedBundleError(lineNumber, 'is not written as an export writes it')
  return { body, hash: expected.hash }
}

function* recreateLineInSteps(previousHash: string, body: LineBody, lineNumber: number): Work<ChainLine> {
  try {
    return yield* createChainLineInSteps(previousHash, body)
  } catch {
    throw damagedBundleError(lineNumber, 'is nested too deeply')
  }
}

function parseObject(line: string, lineNumber: number): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(line)
    if (isObject(value)) return value
  } catch {
    // reported below
  }
  throw damagedBundleError(lineNumber, 'is not a JSON object')
}

/** Creates the error for a bundle that is invalid from this line on; `problem` completes "Line n of the bundle …". */
export const damagedBundleError = (lineNumber: number, problem: string): MemoryError =>
  new MemoryError(
    'bad-bundle',
    `Line ${lineNumber} of the bundle ${problem}. Fetch the bundle again, or export it again.`,
    { param: `line ${lineNumber}` },
  )
