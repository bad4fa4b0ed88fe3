import { constants, createReadStream } from 'node:fs'
import { open, readFile, rename } from 'node:fs/promises'
import { isObject } from '../../domain/checks.ts'
import { beginning, follow, type Line, type Reach } from './chain.ts'

/** What is kept beside a log of how far it goes, so that it is seen when lines at its end are cut off. */
export type Head = Omit<Reach, 'torn'>

/** Whether a log is whole; of one that is not, the first line at fault and why. `unfinished`: its last line is being written, or its writer died. */
export type Verdict =
  | { readonly whole: true; readonly lines: number; readonly hash: string; readonly unfinished: boolean }
  | { readonly whole: false; readonly lines: number; readonly line: number; readonly why: string }

/** No line of a log is longer. */
const longest = 65_536
const newline = 0x0a

const headFile = (file: string): string => `${file}.head`

/** How far a log goes by what is kept beside it; `undefined` if nothing is, `null` if it cannot be made sense of. */
export async function readHead(file: string): Promise<Head | null | undefined> {
  const text = await readFile(headFile(file), 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  return text === undefined ? undefined : parsedHead(text)
}

function parsedHead(text: string): Head | null {
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

/** Keeps how far a log goes: as it was or as it is now, whenever the power goes. */
export async function writeHead(file: string, { count, bytes, hash }: Head): Promise<void> {
  const unfinished = `${headFile(file)}.unfinished`
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | (constants.O_NOFOLLOW ?? 0)
  {
    await using handle = await open(unfinished, flags, 0o600)
    await handle.writeFile(`${JSON.stringify({ count, bytes, hash })}\n`)
    await handle.sync()
  }
  await rename(unfinished, headFile(file))
}

/**
 * Reads a log from its start and says whether every line is as it was written, where it was written.
 *
 * @example
 * await verifyLog('audit.log', (line) => console.log(line.user, line.path)) // { whole: true, lines: 12, … }
 */
export async function verifyLog(file: string, tell: (line: Line) => void = () => undefined): Promise<Verdict> {
  // Before the log: a line written meanwhile is one more than expected, never one less.
  const head = await readHead(file)
  let [reach, number, torn]: [Reach, number, number] = [beginning, 0, 0]
  const broken = (line: number, why: string): Verdict => ({ whole: false, lines: reach.count, line, why })
  for await (const bytes of linesIn(chunksOf(file))) {
    number++
    const next = bytes === undefined ? 'is longer than any line of the log' : follow(reach, bytes)
    if (typeof next === 'string') return torn > 0 ? broken(torn, 'is no line of the log') : broken(number, next)
    reach = next.reach
    torn = reach.torn === undefined ? 0 : torn || number
    if (next.line === undefined) continue
    if (head !== undefined && isElsewhere(reach, head)) return broken(number, 'is not the line that was written here')
    tell(next.line)
  }
  const verdict = ending(reach, head)
  return typeof verdict === 'string' ? broken(torn || number + 1, verdict) : verdict
}

/** Where a log is as long as it was, it ended with the same line. */
const isElsewhere = (reach: Reach, head: Head | null): boolean =>
  head !== null && reach.count === head.count && (reach.hash !== head.hash || reach.bytes !== head.bytes)

function ending(reach: Reach, head: Head | null | undefined): Verdict | string {
  const isNew = reach.count === 0 && reach.torn === undefined
  if (head === null || (head === undefined && !isNew))
    return `may be gone: the record of the log's end is ${head === null ? 'damaged' : 'missing'}`
  const gone = (head?.count ?? 0) - reach.count
  if (gone > 0)
    return reach.torn !== undefined
      ? 'is no line of the log'
      : `is gone, with everything after it: ${gone} of ${head?.count} lines`
  return { whole: true, lines: reach.count, hash: reach.hash, unfinished: reach.torn !== undefined }
}

/** The bytes of a file; none of one that is not there. */
async function* chunksOf(file: string): AsyncGenerator<Uint8Array> {
  try {
    yield* createReadStream(file)
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error
  }
}

/** The lines of a log as bytes, the last one also without its newline; one that is too long is `undefined`, and the last. */
async function* linesIn(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array | undefined> {
  let rest: Uint8Array = new Uint8Array()
  for await (const chunk of chunks) {
    let from = 0
    const all = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    for (let to = all.indexOf(newline); to >= 0; to = all.indexOf(newline, from)) {
      yield all.subarray(from, to)
      from = to + 1
    }
    rest = all.subarray(from)
    if (rest.length > longest) return yield undefined
  }
  if (rest.length > 0) yield rest
}
