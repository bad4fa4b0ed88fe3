import type { DerivedEntry, Json, Message } from '../../domain/entry.ts'
import {
  filesKey,
  formatKey,
  graphKey,
  isInternalKey,
  type Key,
  outboxKey,
  parseKey,
  parseScope,
} from '../../domain/key.ts'
import type { SearchIndex, Store } from '../../domain/ports.ts'
import { runInSlices, type Work } from '../../domain/work.ts'
import type { GraphRow, StoredGraphRow } from '../../graph/types.ts'
import type { ForgetTarget } from '../../memory/forgetTarget.ts'
import { yieldWhenLong } from '../../stores/yieldToEventLoop.ts'
import { clip } from '../../text/clip.ts'
import { formatCount } from '../../text/formatCount.ts'
import { createDryRun, type Erasure } from './dryRunStore.ts'

/** Entries that forgetting a target would erase. */
export type ForgetPreview = {
  readonly counts: PreviewCounts
  readonly sessions: readonly SessionPreview[]
  /** Everything outside of conversations, in words. */
  readonly others: readonly string[]
}

const countNames = [
  'sessions',
  'messages',
  'facts',
  'summaries',
  'knowledge',
  'files',
  'branches',
  'entities',
  'rows',
  'other',
] as const

/** Number of entries by kind. */
export type PreviewCounts = Record<(typeof countNames)[number], number>

export type SessionPreview = {
  readonly key: string
  readonly messages: number
  readonly facts: number
  readonly summaries: number
  /** The first messages that would go. */
  readonly first: readonly EntryPreview[]
  /** The first facts, summaries and pieces of knowledge that would go with them. */
  readonly derived: readonly EntryPreview[]
}

type EntryPreview = { readonly id: string; readonly text: string }

/** Messages that are shown of each session, and derived entries of each kind. */
const maxShownEntries = 5
const maxShownCharacters = 200

/** Finds everything that forgetting a target would erase, by rehearsing it. Nothing is changed. */
export async function rehearseForget(store: Store & SearchIndex, target: ForgetTarget): Promise<ForgetPreview> {
  const rehearsal = createDryRun(store)
  const { openMemory } = await import('../../index.ts')
  const memory = await openMemory({ store: rehearsal.store, upkeep: false })
  const { rows = 0 } = await memory.forget(target)
  await memory.close()
  const erasures = [...rehearsal.erasures.values()]
  const graph = await findGraphRows(store, target, erasures)
  const counts = createCounts()
  const sessions: SessionPreview[] = []
  const others: string[] = []
  for (const erasure of erasures) {
    if (isSession(erasure.key)) sessions.push(await previewSession(store, erasure, counts))
    else for (const name of await previewInternal(store, erasure, counts)) others.push(name)
  }
  counts.entities = graph.length
  counts.rows = rows
  for (const name of graph) others.push(`graph: ${name}`)
  return { counts, sessions, others }
}

const createCounts = (): PreviewCounts => Object.fromEntries(countNames.map((name) => [name, 0])) as PreviewCounts

/** True for a conversation: a session, or the messages in the own memory of a scope. */
const isSession = (key: Key): boolean => !isInternalKey(key)

async function previewSession(store: Store, erasure: Erasure, counts: PreviewCounts): Promise<SessionPreview> {
  const { key, isWhole } = erasure
  const messages = isWhole ? (await store.readHead(key, 0)).messages : erasure.messages.size
  const first = isWhole
    ? await store.readMessages(key, { limit: maxShownEntries })
    : [...erasure.messages.values()].slice(0, maxShownEntries)
  const derived = [...erasure.derived.values()]
  const [facts, summaries] = [countKind(derived, 'fact'), countKind(derived, 'summary')]
  if (isWhole && key.id !== '') counts.sessions++
  counts.messages += messages
  counts.facts += facts
  counts.summaries += summaries
  counts.knowledge += countKind(derived, 'knowledge')
  counts.other += countKind(derived, 'item')
  return {
    key: formatKey(key),
    messages,
    facts,
    summaries,
    first: first.map((message) => ({ id: message.id, text: formatMessage(message) })),
    derived: (['fact', 'summary', 'knowledge'] as const).flatMap((kind) =>
      derived
        .filter((entry) => entry.kind === kind)
        .slice(0, maxShownEntries)
        .map((entry) => ({ id: entry.id, text: formatDerived(entry) })),
    ),
  }
}

const formatDerived = (entry: DerivedEntry): string =>
  `${entry.kind}: ${clip(entry.kind === 'summary' ? entry.text : 'value' in entry ? formatStatement(entry) : '', maxShownCharacters, '…')}`

const formatStatement = ({ key, value }: { readonly key: string; readonly value: Json }): string =>
  `${key === '' ? '' : `${key}: `}${typeof value === 'string' ? value : JSON.stringify(value)}`

const countKind = (derived: readonly DerivedEntry[], kind: DerivedEntry['kind']): number =>
  derived.filter((entry) => entry.kind === kind).length

const formatMessage = ({ role, name, content }: Message): string =>
  `${name ?? role}: ${clip(content, maxShownCharacters, '…')}`

/** Counts an internal session: files, knowledge about a person, a branch, end events that wait for delivery. */
async function previewInternal(
  store: Store,
  { key, isWhole, derived, messages }: Erasure,
  counts: PreviewCounts,
): Promise<string[]> {
  if (key.id === filesKey(key.scope).id) {
    const names = await listFileNames(store, key.scope)
    if (isWhole) counts.files += names.length
    else counts.other += messages.size
    return isWhole ? names.map((name) => `file ${name}`) : [`${formatCount(messages.size, 'passage')} of files`]
  }
  const person = /^:person:(.+)$/.exec(key.id)?.[1]
  if (person !== undefined) {
    const knowledge = [...derived.values()].filter((entry) => entry.kind === 'knowledge')
    counts.knowledge += knowledge.length
    return knowledge.map((entry) => `knowledge about ${person}: ${formatStatement(entry)}`)
  }
  if (/^[^:]+:\d+$/.test(key.id)) {
    counts.branches++
    return [`branch of ${key.scope}:${key.id.split(':')[0]}`]
  }
  if (key.id !== outboxKey(key.scope).id || derived.size === 0) return []
  counts.other += derived.size
  return [`${formatCount(derived.size, 'end event')} waiting for delivery`]
}

async function listFileNames(store: Store, scope: string): Promise<readonly string[]> {
  const { readRecords } = await import('../../files/record.ts')
  return readRecords(await store.readHead(filesKey(scope), 0)).map(({ info }) => info.name)
}

/** Names the graph rows that would go: those of the scope, with the text, or extracted from erased messages only. */
async function findGraphRows(store: Store, target: ForgetTarget, erasures: readonly Erasure[]): Promise<string[]> {
  const scope = 'scope' in target ? parseScope(target.scope) : parseKey(target.key).scope
  if (store.capabilities.graph === undefined || (await store.readHead(graphKey(scope), 0)).revision === 0) return []
  const { openStoreGraph } = await import('../../graph/graph.ts')
  const graph = await openStoreGraph(store)
  try {
    const rows = (await graph?.archive.readAll(scope)) ?? []
    const bySession = new Map(erasures.map((erasure) => [erasure.key.id, erasure]))
    const isErased = (row: GraphRow): boolean =>
      'scope' in target ? !('text' in target) || containsText(row, target.text) : isDerived(row, bySession)
    return await runInSlices(nameGraphRows(rows, isErased), yieldWhenLong)
  } finally {
    await graph?.close()
  }
}

/** Cost of looking at a row, in characters. */
const rowWork = 40

function* nameGraphRows(rows: readonly StoredGraphRow[], isErased: (row: GraphRow) => boolean): Work<string[]> {
  const names: string[] = []
  for (const { row } of rows) {
    if (isErased(row)) names.push(...nameGraphRow(row))
    yield rowWork
  }
  return names
}

const containsText = (row: GraphRow, text: string): boolean =>
  JSON.stringify(row).toLowerCase().includes(JSON.stringify(text).slice(1, -1).toLowerCase())

/** An entity is erased with the last message that it was extracted from; a relationship is erased with its session. */
function isDerived(row: GraphRow, erasures: ReadonlyMap<string, Erasure>): boolean {
  if ('relationship' in row) return erasures.get(row.relationship.session ?? ':')?.isWhole === true
  if (!('entity' in row) || row.entity.origins.length === 0) return false
  return row.entity.origins.every(([session, message]) => {
    const erasure = erasures.get(session)
    return erasure?.isWhole === true || erasure?.messages.has(message) === true
  })
}

function nameGraphRow(row: GraphRow): string[] {
  if ('entity' in row) return [`${row.entity.type} ${row.entity.id}`]
  if ('node' in row) return [`${row.node.entityType} ${row.node.name}`]
  if ('relationship' in row) return [`${row.relationship.from} ${row.relationship.type} ${row.relationship.to}`]
  return 'link' in row ? [`${row.link.from} ${row.link.relationType} ${row.link.to}`] : []
}
