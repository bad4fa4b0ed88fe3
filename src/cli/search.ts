import type { Command } from 'commander'
import { type Entry, getEntryText } from '../domain/entry.ts'
import { MemoryError } from '../domain/error.ts'
import type { Store } from '../domain/ports.ts'
import {
  addEmbedderOption,
  addStoreOptions,
  countMessages,
  type EmbedderFlags,
  finishEmbedding,
  openExistingStore,
  resolveEmbedder,
  type StoreFlags,
  warnOfEmbeddingFault,
} from './openStore.ts'
import { parseDate, parseInteger } from './options.ts'
import { option, setHelp } from './terminal/help.ts'
import { formatTime, printResult } from './terminal/output.ts'
import { createProgress, type Progress } from './terminal/progress.ts'
import { formatTable } from './terminal/table.ts'

type Flags = StoreFlags &
  EmbedderFlags & {
    readonly limit: string
    readonly session?: string
    readonly kinds?: string
    readonly from?: string
    readonly to?: string
  }

const searchableKinds: readonly Entry['kind'][] = ['message', 'summary', 'fact', 'knowledge', 'item']

export function addSearchCommand(program: Command): void {
  const command = addEmbedderOption(addStoreOptions(program.command('search')))
    .description('search a scope, best match first; time expressions in the query, such as last week, are honoured')
    .summary('search a scope, best match first')
    .argument('<scope>', 'scope to search')
    .argument('<query...>', 'search query')
    .addOption(option('--session <id>', 'only this session of the scope', { fallback: 'all sessions' }))
    .addOption(
      option('--kinds <list>', `only these kinds of entries: ${searchableKinds.join(', ')}`, { fallback: 'all' }),
    )
    .option('--from <date>', 'only entries from this date on, such as 2026-03-01')
    .option('--to <date>', 'only entries up to this date')
    .option('--limit <number>', 'maximum number of results', '10')
    .action(run)
  setHelp(command, {
    details: [
      'Each line shows the score, the session, the entry, its time and the passage that matches. With --embedder, entries are also found by meaning. The first search embeds the whole store and stores the vectors; later searches embed what is new.',
    ],
    examples: [
      "threadkeep search acme 'what is my cat called?'",
      'threadkeep search acme pets --embedder ollama:nomic-embed-text',
      'threadkeep search acme invoice --kinds message,fact --from 2026-03-01',
    ],
  })
}

async function run(scope: string, query: readonly string[], flags: Flags): Promise<void> {
  const text = query.join(' ')
  if (text.trim() === '')
    throw new MemoryError('bad-option', 'The query is empty. Name the words to search for.', { param: 'query' })
  const options = {
    limit: parseInteger(flags.limit, 'limit', 1),
    dates: true,
    ...(flags.session === undefined ? {} : { session: flags.session }),
    ...(flags.kinds === undefined ? {} : { kinds: parseKinds(flags.kinds) }),
    ...(flags.from === undefined ? {} : { from: parseDate(flags.from, 'from') }),
    ...(flags.to === undefined ? {} : { to: parseDate(flags.to, 'to') }),
  }
  const embedding = await resolveEmbedder(flags, process.env)
  const { openMemory } = await import('../index.ts')
  const store = await openExistingStore(flags, process.env)
  await using memory = await openMemory({ store, ...embedding })
  using progress = createProgress(flags)
  if (embedding.embedder !== undefined) await finishEmbedding(memory, progress)
  const results = await withIndexProgress(store, scope, progress, () => memory.search(scope, text, options))
  progress.clear()
  await warnOfEmbeddingFault(memory)
  const rows = results.map(({ key, entry, score, passage, repeats = [] }) => [
    score.toFixed(2),
    `${key} ${entry.id}`,
    formatTime(entry.at),
    `${getEntryText(entry).slice(...(passage ?? []))}${repeats.length === 0 ? '' : ` (and ${repeats.length} more with the same text)`}`,
  ])
  printResult(flags.json, { items: results }, results.length === 0 ? ['No results.'] : formatTable(rows))
}

const pollIntervalMs = 100

/** Shows how many messages the search has indexed: the first search of a scope reads all its messages. */
async function withIndexProgress<T>(
  store: Store,
  scope: string,
  progress: Progress,
  search: () => Promise<T>,
): Promise<T> {
  const { indexedMessages } = store.capabilities
  let total: number | undefined
  const timer = setInterval(() => {
    const done = indexedMessages?.() ?? 0
    if (done > 0) progress.count('Indexing messages', done, total)
    else progress.step('Searching')
  }, pollIntervalMs)
  try {
    const counting = countMessages(store, scope).then(
      (count) => (total = count),
      () => undefined,
    )
    const [result] = await Promise.all([search(), counting])
    return result
  } finally {
    clearInterval(timer)
  }
}

function parseKinds(list: string): Entry['kind'][] {
  return list.split(',').map((name) => {
    const kind = searchableKinds.find((searchable) => searchable === name.trim())
    if (kind === undefined)
      throw new MemoryError(
        'bad-option',
        `Unknown kind ${JSON.stringify(name)} in --kinds. Use ${searchableKinds.join(', ')}.`,
        { param: 'kinds' },
      )
    return kind
  })
}
