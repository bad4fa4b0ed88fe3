import type { Command } from 'commander'
import { formatKey, isInner, type Key, parseKey } from '../domain/key.ts'
import type { Index, Store } from '../domain/ports.ts'
import type { Graph } from '../graph/graph.ts'
import { chainText } from '../handoff/chain.ts'
import type { SessionDetails } from '../handoff/handoff.ts'
import { exitCodes } from './failure.ts'
import { glimpse, many, say, timeOf } from './say.ts'
import { setting, wholeNumber } from './settings.ts'
import { existingFile, existingSession, existingStore, type StoreFlags, storeSettings, withStore } from './store.ts'

type Flags = StoreFlags & { readonly limit: string; readonly after?: string }

const help = `
Examples:
  threadkeep sessions list acme
  threadkeep sessions show acme:ann --limit 20

${exitCodes}`

/** The commands that show which sessions there are, and what was said in one. */
export function addSessions(program: Command): void {
  const sessions = program.command('sessions').description('list sessions, or show one').addHelpText('after', help)
  withStore(sessions.command('list'))
    .description('list sessions in order of their keys')
    .argument('[scope]', 'only those of this scope')
    .option('--limit <number>', 'how many at most', '100')
    .option('--after <key>', 'go on after this key')
    .addHelpText('after', help)
    .action(list)
  withStore(sessions.command('show'))
    .description(
      'show what was said in a session, the newest messages last, and how well it came through when it was restored',
    )
    .argument(
      '<key>',
      'the session, as scope:session, or its id alone in the scope default; a scope shows its own memory',
    )
    .option('--limit <number>', 'how many messages at most', '50')
    .addHelpText('after', help)
    .action(show)
}

async function list(scope: string | undefined, flags: Flags): Promise<void> {
  const limit = wholeNumber(flags.limit, 'limit', 1)
  const store = await existingStore(flags, process.env)
  try {
    const found = await store.list({
      ...(scope === undefined ? {} : { scope: parseKey(scope).scope }),
      after: flags.after ?? '',
      limit,
    })
    // What the engine keeps for itself is no session that anybody could name.
    const shown = found.filter(({ key }) => !isInner(key))
    const titles = await titlesOf(
      store,
      shown.map(({ key }) => key),
      flags,
    )
    const items = shown.map(({ key, ...listed }) => ({
      key: formatKey(key),
      ...listed,
      ...titled(titles.get(formatKey(key))),
    }))
    const last = found.length === limit ? found.at(-1) : undefined
    const next = last && formatKey(last.key)
    const more = next === undefined ? [] : [`There may be more: --after ${next}`]
    const lines = items.map(
      ({ key, messages, touchedAt, title }) =>
        `${key}  ${many(messages, 'message')}, last written ${timeOf(touchedAt)}${title === undefined ? '' : `  ${title}`}`,
    )
    say(flags.json, { items, next: next ?? null }, items.length === 0 ? ['No sessions.'] : [...lines, ...more])
  } finally {
    await store.close()
  }
}

/** A key as it was typed; the id of a saved session alone is looked for in the usual workspace. */
async function keyIn(store: Store, text: string): Promise<Key> {
  const key = parseKey(text)
  if (key.id !== '' || !text.startsWith('session_') || (await store.head(key, 0)).revision > 0) return key
  const inDefault = parseKey(`${setting(undefined, process.env, 'THREADKEEP_WORKSPACE') ?? 'default'}:${text}`)
  return (await store.head(inDefault, 0)).revision > 0 ? inDefault : key
}

const titled = (title: string | undefined): { readonly title?: string } =>
  title === undefined ? {} : { title: glimpse(title) }

/** What saved sessions are called, by their keys. */
async function titlesOf(
  store: Store & Index,
  keys: readonly Key[],
  flags: Flags,
): Promise<ReadonlyMap<string, string>> {
  const titles = new Map<string, string>()
  await withGraph(store, new Set(keys.map(({ scope }) => scope)), flags, async (graph, scopes) => {
    for (const key of keys) {
      const row = scopes.has(key.scope) && key.id !== '' ? await graph.entity(key.scope, key.id) : undefined
      const title = row?.type === 'session' ? row.properties.title : undefined
      if (typeof title === 'string' && title !== '') titles.set(formatKey(key), title)
    }
  })
  return titles
}

/** Opens the graph of a store for those scopes that have one: a store without a graph gets none by being looked at. */
async function withGraph<T>(
  store: Store & Index,
  scopes: ReadonlySet<string>,
  flags: Flags,
  read: (graph: Graph, scopes: ReadonlySet<string>) => Promise<T>,
): Promise<T | undefined> {
  const { graphKey } = await import('../stores/sqlite/graph.ts')
  const known = new Set<string>()
  for (const scope of scopes) if ((await store.head(graphKey(scope), 0)).revision > 0) known.add(scope)
  if (known.size === 0) return undefined
  const { openGraph } = await import('../graph/graph.ts')
  const { key: storeKey } = storeSettings(flags, process.env)
  const graph = await openGraph(
    `sqlite:${await existingFile(flags, process.env)}`,
    storeKey === undefined ? {} : { storeKey },
  )
  try {
    return await read(graph, known)
  } finally {
    await graph.close()
  }
}

async function show(text: string, flags: Flags): Promise<void> {
  const limit = wholeNumber(flags.limit, 'limit', 1)
  const store = await existingStore(flags, process.env)
  try {
    const key = await keyIn(store, text)
    const { derived, messages, startedAt, touchedAt } = await existingSession(store, key)
    const said = await store.page(key, { limit, newest: true })
    const heading = `${formatKey(key)}: ${many(messages, 'message')}, ${many(derived.length, 'derived entry', 'derived entries')}, ${timeOf(startedAt)} to ${timeOf(touchedAt)}`
    const lines = said.map(({ id, role, name, content }) => `${id} ${name ?? role}: ${content}`)
    const known = derived.map(({ kind, id, ...entry }) => `${kind} ${id}: ${glimpse(JSON.stringify(entry))}`)
    const handedOver = await savedSession(store, key, flags)
    const value = {
      key: formatKey(key),
      messages,
      startedAt,
      touchedAt,
      items: said,
      derived,
      ...(handedOver === undefined ? {} : { saved: handedOver }),
    }
    say(flags.json, value, [heading, ...lines, ...known, ...(handedOver === undefined ? [] : savedLines(handedOver))])
  } finally {
    await store.close()
  }
}

/** What is known of a session that was saved to go on elsewhere: how well it came through, and its chain. */
async function savedSession(store: Store & Index, key: Key, flags: Flags): Promise<SessionDetails | undefined> {
  if (key.id === '') return undefined
  return withGraph(store, new Set([key.scope]), flags, async (graph) => {
    if ((await graph.entity(key.scope, key.id))?.type !== 'session') return undefined
    const [{ openMemory }, { Handoff }] = await Promise.all([import('../index.ts'), import('../handoff/handoff.ts')])
    // The store is closed by whoever opened it.
    const memory = await openMemory({ profile: 'handoff', store, upkeep: false })
    return new Handoff({ memory, graph, clock: Date.now }).get(key.scope, key.id)
  })
}

function savedLines({ preservation, chain, items, files }: SessionDetails): string[] {
  const part = (value: number): string => `${Math.round(100 * value)} %`
  const score = ({ similarity, facts }: { readonly similarity: number; readonly facts: number }): string =>
    `${part(similarity)} of the meaning, ${part(facts)} of the facts`
  const kinds = Object.entries(preservation?.categories ?? {}).map(([category, one]) => `  ${category}: ${score(one)}`)
  const kept =
    preservation === undefined
      ? []
      : [`restored ${preservation.at} into ${many(preservation.budget, 'token')}: ${score(preservation)}`, ...kinds]
  const links = chain.length < 2 ? [] : [`chain: ${chainText(chain)}`]
  return [`saved: ${many(items, 'item')}, ${many(files.length, 'file')}`, ...kept, ...links]
}
