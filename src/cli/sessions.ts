import type { Command } from 'commander'
import { formatKey, graphKey, isInternalKey, type Key, parseKey, parseScope } from '../domain/key.ts'
import type { SearchIndex, Store } from '../domain/ports.ts'
import type { SessionListItem } from '../domain/session.ts'
import type { Graph } from '../graph/types.ts'
import type { SessionDetails } from '../handoff/handoff.ts'
import { formatCount } from '../text/formatCount.ts'
import { addStoreOptions, listSessions, openExistingStore, requireSession, type StoreFlags } from './openStore.ts'
import { parseInteger, readOption } from './options.ts'
import { explainNoSessions } from './terminal/emptyResults.ts'
import { setHelp } from './terminal/help.ts'
import { formatTime, type Line, printResult, toSingleLine } from './terminal/output.ts'
import { fitLine, formatTable } from './terminal/table.ts'

type Flags = StoreFlags & { readonly limit: string; readonly after?: string }

export function addSessionsCommand(program: Command): void {
  const sessions = setHelp(program.command('sessions').description('list sessions, or show one'), {
    examples: ['threadkeep sessions list acme', 'threadkeep sessions show acme:ann --limit 20'],
  })
  setHelp(
    addStoreOptions(sessions.command('list'))
      .description('list sessions sorted by key')
      .argument('[scope]', 'only sessions of this scope')
      .option('--limit <number>', 'maximum number of sessions', '100')
      .option('--after <key>', 'continue after this key')
      .action(list),
    { examples: ['threadkeep sessions list', 'threadkeep sessions list acme --limit 20 --after acme:ann'] },
  )
  setHelp(
    addStoreOptions(sessions.command('show'))
      .description('show the messages of a session, newest last, and how much of it was preserved when it was restored')
      .argument(
        '<key>',
        'session, as scope:session, or its id alone in the scope default; a scope shows its own memory',
      )
      .option('--limit <number>', 'maximum number of messages', '50')
      .action(show),
    { examples: ['threadkeep sessions show acme:ann', 'threadkeep sessions show acme:ann --limit 20 --json'] },
  )
}

async function list(scope: string | undefined, flags: Flags): Promise<void> {
  const limit = parseInteger(flags.limit, 'limit', 1)
  const store = await openExistingStore(flags, process.env)
  try {
    const found = await findVisibleSessions(store, scope, flags.after ?? '', limit + 1)
    const sessions = found.slice(0, limit)
    const titles = await findTitles(
      store,
      sessions.map(({ key }) => key),
    )
    const items = sessions.map(({ key, ...session }) => {
      const title = titles.get(formatKey(key))
      return { key: formatKey(key), ...session, ...(title === undefined ? {} : { title: toSingleLine(title) }) }
    })
    const last = found.length > limit ? sessions.at(-1) : undefined
    const next = last && formatKey(last.key)
    const more = next === undefined ? [] : [`Continue with --after ${next}`]
    const rows = items.map(({ key, messages, touchedAt, title = '' }) => [
      key,
      formatCount(messages, 'message'),
      `last written ${formatTime(touchedAt)}`,
      title,
    ])
    const lines = items.length === 0 ? [await explainNoSessions(scope)] : [...formatTable(rows), ...more]
    printResult(flags.json, { items, next: next ?? null }, lines)
  } finally {
    await store.close()
  }
}

/** Lists sessions, without the internal keys of the engine and without scopes that hold no messages of their own. */
async function findVisibleSessions(
  store: Store,
  scope: string | undefined,
  after: string,
  limit: number,
): Promise<readonly SessionListItem[]> {
  const found: SessionListItem[] = []
  for await (const session of listSessions(store, scope === undefined ? undefined : parseScope(scope), after)) {
    if (isVisible(session)) found.push(session)
    if (found.length >= limit) break
  }
  return found
}

const isVisible = ({ key, messages }: SessionListItem): boolean =>
  !isInternalKey(key) && (key.id !== '' || messages > 0)

async function show(text: string, flags: Flags): Promise<void> {
  const limit = parseInteger(flags.limit, 'limit', 1)
  const store = await openExistingStore(flags, process.env)
  try {
    const key = await resolveSessionKey(store, text)
    const { derived, messages, startedAt, touchedAt } = await requireSession(store, key)
    const items = await store.readMessages(key, { limit, newest: true })
    const saved = await findSavedSession(store, key)
    const value = {
      key: formatKey(key),
      messages,
      startedAt,
      touchedAt,
      items,
      derived,
      ...(saved === undefined ? {} : { saved }),
    }
    printResult(flags.json, value, [
      `${formatKey(key)}: ${formatCount(messages, 'message')}, ${formatCount(derived.length, 'derived entry', 'derived entries')}, ${formatTime(startedAt)} to ${formatTime(touchedAt)}`,
      ...items.map(({ id, role, name, content }) => `${id} ${name ?? role}: ${content}`),
      ...derived.map(({ kind, id, ...entry }) => fitLine(`${kind} ${id}: ${JSON.stringify(entry)}`)),
      ...(saved === undefined ? [] : await formatSavedSession(saved)),
    ])
  } finally {
    await store.close()
  }
}

/** Parses a key. The id of a saved session without a scope is looked up in the default workspace. */
async function resolveSessionKey(store: Store, text: string): Promise<Key> {
  const key = parseKey(text)
  if (key.id !== '' || !text.startsWith('session_') || (await store.readHead(key, 0)).revision > 0) return key
  const workspace = readOption(undefined, process.env, 'THREADKEEP_WORKSPACE') ?? 'default'
  const inWorkspace = parseKey(`${workspace}:${text}`)
  return (await store.readHead(inWorkspace, 0)).revision > 0 ? inWorkspace : key
}

/** Returns the titles of saved sessions by key. */
async function findTitles(store: Store & SearchIndex, keys: readonly Key[]): Promise<ReadonlyMap<string, string>> {
  const titles = new Map<string, string>()
  await withGraph(store, new Set(keys.map(({ scope }) => scope)), async (graph, scopes) => {
    for (const key of keys) {
      const row = scopes.has(key.scope) && key.id !== '' ? await graph.getEntity(key.scope, key.id) : undefined
      const title = row?.type === 'session' ? row.properties.title : undefined
      if (typeof title === 'string' && title !== '') titles.set(formatKey(key), title)
    }
  })
  return titles
}

/** Opens the graph of a store for the scopes that have one. A store without a graph is not given one by a read. */
async function withGraph<T>(
  store: Store & SearchIndex,
  scopes: ReadonlySet<string>,
  read: (graph: Graph, scopes: ReadonlySet<string>) => Promise<T>,
): Promise<T | undefined> {
  const scopesWithGraph = new Set<string>()
  for (const scope of scopes) if ((await store.readHead(graphKey(scope), 0)).revision > 0) scopesWithGraph.add(scope)
  if (scopesWithGraph.size === 0) return undefined
  const { openStoreGraph } = await import('../graph/graph.ts')
  const graph = await openStoreGraph(store)
  if (graph === undefined) return undefined
  try {
    return await read(graph, scopesWithGraph)
  } finally {
    await graph.close()
  }
}

/** Returns the handoff details of a session: preservation, chain, items and files. Undefined if it was never saved. */
async function findSavedSession(store: Store & SearchIndex, key: Key): Promise<SessionDetails | undefined> {
  if (key.id === '') return undefined
  return withGraph(store, new Set([key.scope]), async (graph) => {
    if ((await graph.getEntity(key.scope, key.id))?.type !== 'session') return undefined
    const [{ openMemory }, { Handoff }] = await Promise.all([import('../index.ts'), import('../handoff/handoff.ts')])
    // Not closed here: that would close the store of the caller.
    const memory = await openMemory({ profile: 'handoff', store, upkeep: false })
    return new Handoff({ memory, graph, clock: Date.now }).get(key.scope, key.id)
  })
}

async function formatSavedSession({ preservation, chain, items, files }: SessionDetails): Promise<Line[]> {
  const { formatChain } = await import('../handoff/chain.ts')
  const formatPercent = (share: number): string => `${Math.round(100 * share)} %`
  const formatScore = ({ similarity, facts }: { readonly similarity: number; readonly facts: number }): string =>
    `wording similarity ${formatPercent(similarity)}, facts preserved ${formatPercent(facts)}`
  const categories = Object.entries(preservation?.categories ?? {}).map(
    ([category, score]) => `  ${category}: ${formatScore(score)}`,
  )
  const restored =
    preservation === undefined
      ? []
      : [
          `restored ${preservation.at} into ${formatCount(preservation.budget, 'token')}: ${formatScore(preservation)}`,
          ...categories,
        ]
  const links = chain.length < 2 ? [] : [`chain: ${formatChain(chain)}`]
  return [`saved: ${formatCount(items, 'item')}, ${formatCount(files.length, 'file')}`, ...restored, ...links]
}
