import type { Command } from 'commander'
import { type Entry, getEntryText } from '../domain/entry.ts'
import { MemoryError } from '../domain/error.ts'
import { exitCodesHelp } from './errors.ts'
import {
  addEmbedderOption,
  addStoreOptions,
  type EmbedderFlags,
  finishEmbedding,
  openExistingStore,
  resolveEmbedder,
  type StoreFlags,
  warnOfEmbeddingFault,
} from './openStore.ts'
import { parseDate, parseInteger } from './options.ts'
import { formatTime, printResult, truncateLine } from './output.ts'

type Flags = StoreFlags &
  EmbedderFlags & {
    readonly limit: string
    readonly session?: string
    readonly kinds?: string
    readonly from?: string
    readonly to?: string
  }

const searchableKinds: readonly Entry['kind'][] = ['message', 'summary', 'fact', 'knowledge', 'item']

const help = `
With --embedder, entries are also found by meaning. The first search embeds the whole store and stores the vectors;
later searches embed what is new.

Examples:
  threadkeep search acme 'what is my cat called?'
  threadkeep search acme 'pets' --embedder ollama:nomic-embed-text
  threadkeep search acme invoice --kinds message,fact --from 2026-03-01 --to 2026-04-01

${exitCodesHelp}`

export function addSearchCommand(program: Command): void {
  addEmbedderOption(addStoreOptions(program.command('search')))
    .description('search a scope, best match first; time expressions in the query, such as last week, are honoured')
    .argument('<scope>', 'scope to search')
    .argument('<query...>', 'search query')
    .option('--session <id>', 'only this session of the scope')
    .option('--kinds <list>', `only these kinds of entries: ${searchableKinds.join(', ')}`)
    .option('--from <date>', 'only entries from this date on, such as 2026-03-01')
    .option('--to <date>', 'only entries up to this date')
    .option('--limit <number>', 'maximum number of results', '10')
    .addHelpText('after', help)
    .action(run)
}

async function run(scope: string, query: readonly string[], flags: Flags): Promise<void> {
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
  await using memory = await openMemory({ store: await openExistingStore(flags, process.env), ...embedding })
  if (embedding.embedder !== undefined) await finishEmbedding(memory)
  const results = await memory.search(scope, query.join(' '), options)
  await warnOfEmbeddingFault(memory)
  const lines = results.map(
    ({ key, entry, score, passage, repeats = [] }) =>
      `${score.toFixed(2)}  ${key} ${entry.id}, ${formatTime(entry.at)}: ${truncateLine(getEntryText(entry).slice(...(passage ?? [])), 160)}${repeats.length === 0 ? '' : ` (and ${repeats.length} more with the same text)`}`,
  )
  printResult(flags.json, { items: results }, results.length === 0 ? ['No results.'] : lines)
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
