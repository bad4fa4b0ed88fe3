import type { Command } from 'commander'
import { type Entry, textOf } from '../domain/entry.ts'
import { MemoryError } from '../domain/error.ts'
import { exitCodes } from './failure.ts'
import { glimpse, say, timeOf } from './say.ts'
import { dateOf, wholeNumber } from './settings.ts'
import { existingStore, type StoreFlags, withStore } from './store.ts'

type Flags = StoreFlags & {
  readonly limit: string
  readonly session?: string
  readonly kinds?: string
  readonly from?: string
  readonly to?: string
}

const kinds: readonly Entry['kind'][] = ['message', 'summary', 'fact', 'knowledge', 'item']

const help = `
Examples:
  threadkeep search acme 'what is my cat called?'
  threadkeep search acme invoice --kinds message,fact --from 2026-03-01 --to 2026-04-01

${exitCodes}`

/** The command that finds what a scope holds on a question. */
export function addSearch(program: Command): void {
  withStore(program.command('search'))
    .description('find what a scope holds on a question, best first; a time in it, such as last week, counts')
    .argument('<scope>', 'the scope to search')
    .argument('<question...>', 'what to look for')
    .option('--session <id>', 'only this session of the scope')
    .option('--kinds <list>', `only these kinds of entries: ${kinds.join(', ')}`)
    .option('--from <date>', 'only what is not older, such as 2026-03-01')
    .option('--to <date>', 'only what is not newer')
    .option('--limit <number>', 'how many at most', '10')
    .addHelpText('after', help)
    .action(run)
}

async function run(scope: string, question: readonly string[], flags: Flags): Promise<void> {
  const options = {
    limit: wholeNumber(flags.limit, 'limit', 1),
    dates: true,
    ...(flags.session === undefined ? {} : { session: flags.session }),
    ...(flags.kinds === undefined ? {} : { kinds: kindsOf(flags.kinds) }),
    ...(flags.from === undefined ? {} : { from: dateOf(flags.from, 'from') }),
    ...(flags.to === undefined ? {} : { to: dateOf(flags.to, 'to') }),
  }
  const { openMemory } = await import('../index.ts')
  await using memory = await openMemory({ store: await existingStore(flags, process.env) })
  const found = await memory.search(scope, question.join(' '), options)
  const lines = found.map(
    ({ key, entry, score }) =>
      `${score.toFixed(2)}  ${key} ${entry.id}, ${timeOf(entry.at)}: ${glimpse(textOf(entry), 160)}`,
  )
  say(flags.json, { items: found }, found.length === 0 ? ['Nothing was found.'] : lines)
}

function kindsOf(list: string): Entry['kind'][] {
  return list.split(',').map((name) => {
    const kind = kinds.find((one) => one === name.trim())
    if (kind === undefined)
      throw new MemoryError('bad-option', `kinds has ${JSON.stringify(name)}; it may hold ${kinds.join(', ')}.`, {
        param: 'kinds',
      })
    return kind
  })
}
