import { hash } from 'node:crypto'
import { constants, createReadStream } from 'node:fs'
import { open, readFile, rename } from 'node:fs/promises'
import { isObject } from '../../domain/error.ts'
import { chainStart, createChainLine } from '../../portable/chain.ts'

const outcomes = ['allowed', 'refused', 'failed'] as const
export type Outcome = (typeof outcomes)[number]

/**
 * Line of the audit log, without any file content. `torn` is the hash of the bytes that an interrupted writer left
 * before this line.
 */
export type AuditLine = {
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
 * State of the hash chain after a number of lines: their count and bytes, and the hash of the last. `torn` are bytes
 * after them that are not a line; only a line that contains their hash may follow.
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

export const initialState: ChainState = { count: 0, bytes: 0, hash: chainStart }

/** Serializes the next line with its newline; `lacksNewline` if the text before it does not end with one. */
export function nextLine(
  state: ChainState,
  fields: Omit<AuditLine, 'torn' | 'previous' | 'hash'>,
  lacksNewline: boolean,
): { readonly text: string; readonly hash: string } {
  const torn = tornHash(state)
  const linked = createChainLine(state.hash, {
    ...fields,
    ...(torn === undefined ? {} : { torn }),
    previous: state.hash,
  })
  return { text: `${lacksNewline ? '\n' : ''}${linked.line}\n`, hash: linked.hash }
}

/** Advances the chain by one line, or returns the fault of the line as a verb phrase. */
export function advance(
  state: ChainState,
  bytes: Uint8Array,
): { readonly state: ChainState; readonly line?: AuditLine } | string {
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

/**
 * Rejects lines the server would never write: anyone with write access to the log can append a correctly linked line.
 */
function isAuditLine(fields: Readonly<Record<string, unknown>>): fields is AuditLine {
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
    return createChainLine(previous, body).line
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

/** End of a log, stored in a `.head` file next to it, so that removing lines at the end is detected. */
type LogHead = Omit<ChainState, 'torn'>

/**
 * Result of a verification. An invalid log comes with its first faulty line and the fault as a verb phrase.
 * `unfinished`: the last line is being written, or its writer died.
 */
type VerificationResult =
  | { readonly valid: true; readonly lines: number; readonly hash: string; readonly unfinished: boolean }
  | { readonly valid: false; readonly lines: number; readonly line: number; readonly reason: string }

const maxLineBytes = 65_536
const newlineByte = 0x0a

const headFile = (file: string): string => `${file}.head`

/** Returns undefined if there is no head file, null if it is damaged. */
export async function readHead(file: string): Promise<LogHead | null | undefined> {
  const text = await readFile(headFile(file), 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  return text === undefined ? undefined : parseHead(text)
}

function parseHead(text: string): LogHead | null {
  try {
    const head: unknown = JSON.parse(text)
    if (!isObject(head)) return null
    const { count, bytes, hash } = head
    return isCount(count) && isCount(bytes) && typeof hash === 'string' ? { count, bytes, hash } : null
  } catch {
    return null
  }
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0

/** Writes the head file atomically and durably. */
export async function writeHead(file: string, { count, bytes, hash }: LogHead): Promise<void> {
  const temporary = `${headFile(file)}.unfinished`
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | (constants.O_NOFOLLOW ?? 0)
  {
    await using handle = await open(temporary, flags, 0o600)
    await handle.writeFile(`${JSON.stringify({ count, bytes, hash })}\n`)
    await handle.sync()
  }
  await rename(temporary, headFile(file))
}

/**
 * Reads a log from its start and verifies that every line is unchanged and in its place. Calls `onLine` with each valid
 * line.
 *
 * @example
 * await verifyAuditLog('audit.log', (line) => console.log(line.user, line.path)) // { valid: true, lines: 12, … }
 */
export async function verifyAuditLog(
  file: string,
  onLine: (line: AuditLine) => void = () => undefined,
): Promise<VerificationResult> {
  // Read before the log: a line written meanwhile is then one more than expected, never one less.
  const head = await readHead(file)
  let [state, lineNumber, tornLine]: [ChainState, number, number] = [initialState, 0, 0]
  const invalid = (line: number, reason: string): VerificationResult => ({
    valid: false,
    lines: state.count,
    line,
    reason,
  })
  for await (const bytes of splitLines(readChunks(file))) {
    lineNumber++
    const next = bytes === undefined ? 'is too long for a log line' : advance(state, bytes)
    if (typeof next === 'string')
      return tornLine > 0 ? invalid(tornLine, 'is not a valid log line') : invalid(lineNumber, next)
    state = next.state
    tornLine = state.torn === undefined ? 0 : tornLine || lineNumber
    if (next.line === undefined) continue
    if (head !== undefined && contradictsHead(state, head))
      return invalid(lineNumber, 'is not the line that was written here')
    onLine(next.line)
  }
  const verdict = verifyEnd(state, head)
  return typeof verdict === 'string' ? invalid(tornLine || lineNumber + 1, verdict) : verdict
}

/** True if the log has as many lines as the head recorded, but another last line. */
const contradictsHead = (state: ChainState, head: LogHead | null): boolean =>
  head !== null && state.count === head.count && (state.hash !== head.hash || state.bytes !== head.bytes)

function verifyEnd(state: ChainState, head: LogHead | null | undefined): VerificationResult | string {
  const isNew = state.count === 0 && state.torn === undefined
  if (head === null || (head === undefined && !isNew))
    return `may be missing: the .head file with the end of the log is ${head === null ? 'damaged' : 'missing'}`
  const missing = (head?.count ?? 0) - state.count
  if (missing > 0)
    return state.torn !== undefined
      ? 'is not a valid log line'
      : `is missing with everything after it: ${missing} of ${head?.count} lines`
  return { valid: true, lines: state.count, hash: state.hash, unfinished: state.torn !== undefined }
}

/** Yields nothing if the file does not exist. */
async function* readChunks(file: string): AsyncGenerator<Uint8Array> {
  try {
    yield* createReadStream(file)
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error
  }
}

/** Yields lines without their newlines; a line that is too long is yielded as undefined and ends the iteration. */
async function* splitLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array | undefined> {
  let rest: Uint8Array = new Uint8Array()
  for await (const chunk of chunks) {
    let start = 0
    const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    for (let end = bytes.indexOf(newlineByte); end >= 0; end = bytes.indexOf(newlineByte, start)) {
      yield bytes.subarray(start, end)
      start = end + 1
    }
    rest = bytes.subarray(start)
    if (rest.length > maxLineBytes) return yield undefined
  }
  if (rest.length > 0) yield rest
}
