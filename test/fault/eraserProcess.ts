/**
 * Program that appends and forgets at random, while others do the same. After each acknowledged erasure it searches the
 * file and its log for all texts that it has erased so far, and writes what it finds to stdout.
 */
import { openSync, readFileSync, readSync } from 'node:fs'
import { seededRandom } from './random.ts'
import { openStoreFile } from './runOperation.ts'

export type EraserOptions = {
  readonly file: string
  readonly name: string
  readonly seed: number
  readonly steps: number
}

const { file, name, seed, steps } = JSON.parse(process.argv[2] as string) as EraserOptions
const { memory } = await openStoreFile(file)
// Never closed: closing any descriptor of the database would release the locks that SQLite holds on it.
const database = openSync(file, 'r')

function readBytes(): Buffer {
  const chunks = [readFileSync(`${file}-wal`)]
  for (let position = 0; ; position += 65_536) {
    const chunk = Buffer.alloc(65_536)
    const length = readSync(database, chunk, 0, chunk.length, position)
    chunks.push(chunk.subarray(0, length))
    if (length < chunk.length) return Buffer.concat(chunks)
  }
}

type Stored = { readonly marker: string; readonly session: string; readonly id: string }
const random = seededRandom(seed)
const stored: Stored[] = []
/** Texts that must not be in the file anymore. */
const erased: string[] = []

async function append(step: number): Promise<void> {
  const session = `fault:${random() < 0.5 ? 'shared' : name}`
  const marker = `${name}-${step}#`
  const length = random() < 0.1 ? 9_000 : Math.floor(random() * 900)
  const content = `${marker} ${'so it goes on, '.repeat(length / 15)}`
  // Ids in random order make SQLite split pages in the middle.
  const operationId = `${random()} ${marker} id ${'x'.repeat(length % 300)}`
  const [message] = await memory.append(session, [{ role: 'user', content }], { operationId })
  if (message !== undefined) stored.push({ marker, session, id: message.id })
}

async function erase(): Promise<void> {
  const [target] = stored.splice(Math.floor(random() * stored.length), 1)
  if (target === undefined) return
  const isSession = target.session !== 'fault:shared' && random() < 0.3
  const others = isSession ? stored.filter(({ session }) => session === target.session) : []
  await memory.forget(isSession ? { key: target.session } : { key: target.session, messageId: target.id })
  for (const other of others) stored.splice(stored.indexOf(other), 1)
  const markers = [target, ...others].map(({ marker }) => marker)
  // The operation id of a single message stays, because it prevents that the message is stored again.
  erased.push(...markers.flatMap((marker) => [`${marker} so`, ...(isSession ? [`${marker} id`] : [])]))
  const bytes = readBytes()
  for (const text of erased) if (bytes.includes(text)) process.stdout.write(`${text}\n`)
}

for (let step = 0; step < steps; step++) await (random() < 0.7 ? append(step) : erase())
await memory.close()
