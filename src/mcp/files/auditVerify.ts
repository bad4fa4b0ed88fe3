import { constants, createReadStream } from 'node:fs'
import { open, readFile, rename } from 'node:fs/promises'
import { isObject } from '../../domain/checks.ts'
import { advance, type ChainState, initialState, type Line } from './auditChain.ts'

/** End of a log, stored in a `.head` file next to it, so that removing lines at the end is detected. */
export type LogHead = Omit<ChainState, 'torn'>

/**
 * Result of a verification. An invalid log comes with its first faulty line and the fault as a verb phrase. `unfinished`: the
 * last line is being written, or its writer died.
 */
export type Verdict =
  | { readonly whole: true; readonly lines: number; readonly hash: string; readonly unfinished: boolean }
  | { readonly whole: false; readonly lines: number; readonly line: number; readonly why: string }

const maxLineBytes = 65_536
const newline = 0x0a

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
 * Reads a log from its start and verifies that every line is unchanged and in its place. Calls `onLine` with each valid line.
 *
 * @example
 * await verifyAuditLog('audit.log', (line) => console.log(line.user, line.path)) // { valid: true, lines: 12, … }
 */
export async function verifyLog(file: string, onLine: (line: Line) => void = () => undefined): Promise<Verdict> {
  // Read before the log: a line written meanwhile is then one more than expected, never one less.
  const head = await readHead(file)
  let [state, lineNumber, tornLine]: [ChainState, number, number] = [initialState, 0, 0]
  const invalid = (line: number, reason: string): Verdict => ({ whole: false, lines: state.count, line, why: reason })
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

function verifyEnd(state: ChainState, head: LogHead | null | undefined): Verdict | string {
  const isNew = state.count === 0 && state.torn === undefined
  if (head === null || (head === undefined && !isNew))
    return `may be missing: the .head file with the end of the log is ${head === null ? 'damaged' : 'missing'}`
  const missing = (head?.count ?? 0) - state.count
  if (missing > 0)
    return state.torn !== undefined
      ? 'is not a valid log line'
      : `is missing with everything after it: ${missing} of ${head?.count} lines`
  return { whole: true, lines: state.count, hash: state.hash, unfinished: state.torn !== undefined }
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
    for (let end = bytes.indexOf(newline); end >= 0; end = bytes.indexOf(newline, start)) {
      yield bytes.subarray(start, end)
      start = end + 1
    }
    rest = bytes.subarray(start)
    if (rest.length > maxLineBytes) return yield undefined
  }
  if (rest.length > 0) yield rest
}
