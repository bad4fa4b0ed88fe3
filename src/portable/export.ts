import type { ExportOptions, Tended, Transferred } from '../domain/bundle.ts'
import { MemoryError } from '../domain/error.ts'
import { formatKey, type Key, parseKey } from '../domain/key.ts'
import type { Store } from '../domain/ports.ts'
import type { Head } from '../domain/session.ts'
import { type Body, link, origin } from './chain.ts'
import { encrypted } from './encrypt.ts'
import { GraphAccess, isGraphKey } from './graph/access.ts'
import { marked, recordOf, type SessionRecord } from './records.ts'
import { stopIf } from './stop.ts'

/** How many messages or sessions are in memory at a time. */
const page = 500

/**
 * Everything a store remembers, as the bytes of a bundle: sessions in the order of their keys, each with its messages
 * and derived entries, as it was when its turn came, and the graph of a scope where the engine keeps it. What is over but
 * not yet ended is exported too.
 *
 * @example
 * await pipeline(exportBundle(store, { scope: 'acme' }), createWriteStream('acme.jsonl'))
 */
export function exportBundle(store: Store, options: ExportOptions = {}): AsyncGenerator<Uint8Array> {
  const plain = chained(bodies(store, options))
  return options.lock === undefined ? plain : encrypted(plain, options.lock)
}

async function* chained(bodies: AsyncIterable<readonly Body[]>): AsyncGenerator<Uint8Array> {
  let previous = origin
  for await (const some of bodies) {
    const lines = some.map((body) => {
      const { line, hash } = link(previous, body)
      previous = hash
      return `${line}\n`
    })
    yield Buffer.from(lines.join(''))
  }
}

/** What stands on the lines, a few at a time. */
async function* bodies(store: Store, options: ExportOptions): AsyncGenerator<readonly Body[]> {
  await using graph = new GraphAccess(store)
  const done = { sessions: 0, messages: 0, entries: 0 }
  yield [marked]
  for await (const key of keysOf(store, options)) {
    const head = await store.head(key, 0)
    // forgotten since it was listed
    if (head.revision === 0) continue
    const rows = isGraphKey(key) ? await graph.archive().then((archive) => archive?.rows(key.scope) ?? []) : []
    yield [{ session: sessionOf(head, rows.length) }]
    for await (const messages of messagesOf(store, head)) {
      yield messages
      done.messages += messages.length
      tell(options, done)
    }
    const derived = [...head.derived].sort((a, b) => (a.id < b.id ? -1 : 1))
    if (derived.length > 0) yield derived.map((entry) => ({ entry }))
    for (let at = 0; at < rows.length; at += page) yield rows.slice(at, at + page).map(({ row }) => ({ graph: row }))
    done.sessions++
    done.entries += derived.length + rows.length
    tell(options, done)
  }
  yield [{ end: done }]
}

function tell({ signal, progress }: Tended, { sessions, messages }: Transferred): void {
  stopIf(signal, 'The export was stopped by the caller; what was written of the bundle is not complete.')
  progress?.({ sessions, messages })
}

async function* keysOf(store: Store, { scope, key }: ExportOptions): AsyncGenerator<Key> {
  if (key !== undefined) return yield parseKey(key)
  const only = scope === undefined ? {} : { scope: parseKey(scope).scope }
  let after = ''
  for (;;) {
    const listed = await store.list({ ...only, after, limit: page })
    for (const session of listed) yield session.key
    if (listed.length < page) return
    after = formatKey((listed.at(-1) as (typeof listed)[number]).key)
  }
}

function sessionOf(
  { key, startedAt, touchedAt, expiresAt, last, messages, derived }: Head,
  rows: number,
): SessionRecord {
  return { key: formatKey(key), startedAt, touchedAt, expiresAt, last, messages, entries: derived.length + rows }
}

/** The messages the head counts; those that were added since are left for the next export. */
async function* messagesOf(store: Store, { key, last, messages }: Head): AsyncGenerator<readonly Body[]> {
  let after = 0
  let found = 0
  while (found < messages) {
    const some = await store.page(key, { after, before: last + 1, limit: page })
    if (some.length === 0) break
    yield some.map((message) => ({ message: recordOf(message) }))
    found += some.length
    after = some.at(-1)?.sequence ?? last
  }
  if (found !== messages)
    throw new MemoryError(
      'conflict',
      `Messages of session ${formatKey(key)} were forgotten while it was being exported. The bundle is not complete; export again.`,
    )
}
