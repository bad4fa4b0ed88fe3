import {
  onExisting as choices,
  type Imported,
  type ImportOptions,
  type OnExisting,
  type Tended,
} from '../domain/bundle.ts'
import { MemoryError } from '../domain/error.ts'
import { formatKey, parseKey, type Scope } from '../domain/key.ts'
import type { Store } from '../domain/ports.ts'
import { emptyHead } from '../domain/session.ts'
import { GraphAccess, isGraphKey } from './graph/access.ts'
import { type Came, GraphIntake } from './graph/intake.ts'
import type { Bytes } from './lines.ts'
import { type Linked, readBundle } from './read.ts'
import type { SessionRecord } from './records.ts'
import { stopIf } from './stop.ts'
import { keyIn, type Standing, type Survey, survey } from './survey.ts'
import { type Held, SessionWriter } from './write.ts'

/**
 * Puts the sessions of a bundle into a store. The bundle is opened twice: once to prove that it is whole, and then to
 * write it. An import that was interrupted is continued by importing the same bundle again.
 *
 * @example
 * const { messages } = await importBundle(store, () => createReadStream('acme.jsonl'), { onExisting: 'skip' })
 */
export async function importBundle(store: Store, open: () => Bytes, options: ImportOptions = {}): Promise<Imported> {
  const { onExisting = 'refuse', passphrase, signal } = options
  if (!choices.includes(onExisting))
    throw new MemoryError(
      'bad-option',
      `onExisting is ${JSON.stringify(onExisting)}; it must be one of ${choices.join(', ')}.`,
      { param: 'onExisting' },
    )
  const scope = options.scope === undefined ? undefined : parseKey(options.scope).scope
  const first = stoppable(readBundle(open(), passphrase), signal, 'Nothing was written.')
  await using graph = new GraphAccess(store)
  const surveyed = await survey(store, first, scope, graph)
  if (onExisting === 'refuse') refuseOthers(surveyed)
  const second = stoppable(
    readBundle(open(), passphrase),
    signal,
    'What was written stays; import the same bundle again to continue.',
  )
  return await writeAll({ store, graph }, asBefore(second, surveyed.hash), surveyed, { ...options, onExisting, scope })
}

async function* stoppable(
  records: AsyncGenerator<Linked>,
  signal: AbortSignal | undefined,
  left: string,
): AsyncGenerator<Linked> {
  for await (const linked of records) {
    stopIf(signal, `The import was stopped by the caller. ${left}`)
    yield linked
  }
}

/** The same records as at the first reading, or an error that says what to do. */
async function* asBefore(records: AsyncGenerator<Linked>, hash: string): AsyncGenerator<Linked> {
  let last = ''
  try {
    for await (const linked of records) {
      last = linked.hash
      yield linked
    }
  } catch (cause) {
    throw cause instanceof MemoryError && cause.code === 'bad-bundle' ? changed(cause) : cause
  }
  if (last !== hash) throw changed()
}

const changed = (cause?: unknown): MemoryError => {
  const message =
    'The bundle changed while it was being imported. Import it again once nobody writes to it; sessions written so far are continued.'
  return new MemoryError('bad-bundle', message, { cause })
}

function refuseOthers({ known, rows }: Survey): void {
  const others = [...[...known].filter(([, standing]) => standing.has === 'other').map(([name]) => name), ...rows]
  if (others.length === 0) return
  const named = others.length > 5 ? `${others.slice(0, 5).join(', ')} and ${others.length - 5} more` : others.join(', ')
  throw new MemoryError(
    'conflict',
    `The store has other contents for ${named}. Nothing was imported. Skip or replace what the store has, or import into another scope.`,
    { param: 'onExisting' },
  )
}

type Decided = Tended & { readonly scope: Scope | undefined; readonly onExisting: OnExisting }
type Tally = { -readonly [K in keyof Imported]: Imported[K] extends readonly string[] ? string[] : Imported[K] }

type Places = { readonly store: Store; readonly graph: GraphAccess }

async function writeAll(
  { store, graph }: Places,
  records: AsyncIterable<Linked>,
  { known }: Survey,
  options: Decided,
): Promise<Imported> {
  const tally: Tally = { sessions: 0, messages: 0, entries: 0, unchanged: 0, skipped: [], replaced: [] }
  const tell = () => options.progress?.({ sessions: tally.sessions, messages: tally.messages })
  const graphs = new GraphIntake(store, graph, options.onExisting)
  let into: SessionWriter | GraphIntake | undefined
  for await (const linked of records) {
    const { record } = linked
    if ('session' in record || 'end' in record) {
      if (into instanceof SessionWriter) {
        await into.finish()
        tally.sessions++
      }
      into = undefined
      count(tally, await graphs.finish('session' in record ? keyIn(options.scope, record.session).scope : undefined))
      tell()
    }
    if ('session' in record) {
      const [{ session }, { hash }] = [record, linked]
      const key = keyIn(options.scope, session)
      into = isGraphKey(key)
        ? graphs.begin(key, session, hash)
        : await writerFor(store, { session, hash }, known.get(formatKey(key)), options, tally)
    } else await into?.add(linked)
    if (into instanceof SessionWriter && 'message' in record && ++tally.messages % 500 === 0) tell()
    if (into instanceof SessionWriter && 'entry' in record) tally.entries++
  }
  return tally
}

/** Counts a graph as the session it belongs to. */
function count(tally: Tally, came: Came | undefined): void {
  if (came === undefined) return
  if (came.isChanged) tally.sessions++
  else if (came.skipped.length === 0) tally.unchanged++
  tally.entries += came.entries
  tally.skipped.push(...came.skipped)
  tally.replaced.push(...came.replaced)
}

/** Begins or continues a session, or leaves it alone. */
async function writerFor(
  store: Store,
  { session, hash }: { readonly session: SessionRecord; readonly hash: string },
  standing: Standing | undefined,
  { scope, onExisting }: Decided,
  tally: Tally,
): Promise<SessionWriter | undefined> {
  const key = keyIn(scope, session)
  if (standing?.has === 'same') {
    tally.unchanged++
    return undefined
  }
  if (standing?.has === 'other' && onExisting !== 'replace') {
    tally.skipped.push(formatKey(key))
    return undefined
  }
  if (standing?.has === 'beginning') return new SessionWriter(store, standing.held, session, hash)
  if (standing !== undefined) await eraseAsRead(store, standing.held)
  if (standing?.has === 'other') tally.replaced.push(formatKey(key))
  const { epoch } = await store.head(key, 0)
  return new SessionWriter(store, emptyHead(key, epoch), session, hash)
}

/** Makes room for a session, unless somebody has written to it since the bundle was compared with it. */
async function eraseAsRead(store: Store, held: Held): Promise<void> {
  const { revision, epoch } = await store.head(held.key, 0)
  if (revision !== held.revision || epoch !== held.epoch)
    throw new MemoryError(
      'conflict',
      `Session ${formatKey(held.key)} was written to during the import. What was written stays; import the same bundle again.`,
    )
  await store.erase(held.key)
}
