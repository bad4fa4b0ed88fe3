import type { Command } from 'commander'
import { messageId, type Summary } from '../domain/entry.ts'
import { parseKey } from '../domain/key.ts'
import type { Lost } from '../upkeep/upkeep.ts'
import { exitCodes } from './failure.ts'
import { aligned, glimpse, many, runOf, say } from './say.ts'
import { existingSession, existingStore, type StoreFlags, withStore } from './store.ts'

type Flags = StoreFlags & { readonly lost?: boolean }

const help = `
Each line tells the tier, the version, who made it, the messages it stands for, its words, and how it begins; --json gives
all of it. With --lost: the message that still says it, what kind of thing it is, and the thing itself.

Examples:
  threadkeep summaries acme:ann
  threadkeep summaries acme:ann --lost

${exitCodes}`

/** The command that shows what stands for the older part of a session, and what it leaves out. */
export function addSummaries(program: Command): void {
  withStore(program.command('summaries'))
    .description('show the summaries of a session, or what they do not say')
    .argument('<key>', 'the session, as scope:session')
    .option('--lost', 'names, numbers and rules that the summaries do not say, each with the message that does')
    .addHelpText('after', help)
    .action(run)
}

async function run(text: string, flags: Flags): Promise<void> {
  const key = parseKey(text)
  const store = await existingStore(flags, process.env)
  const { openMemory } = await import('../index.ts')
  await using memory = await openMemory({ store })
  await existingSession(store, key)
  const items = await memory.upkeep.summaries(key)
  if (items.length === 0) return say(flags.json, { key: text, items }, ['No summaries.'])
  if (flags.lost !== true) return say(flags.json, { key: text, items }, await linesOf(items))
  const lost = await memory.upkeep.losses(key)
  say(flags.json, { key: text, items: lost }, lostLines(lost))
}

async function linesOf(summaries: readonly Summary[]): Promise<string[]> {
  const { countWords } = await import('../upkeep/summarise/summary.ts')
  return aligned(
    summaries.map(({ tier, version, by, covers: [first, last], text }) => [
      tier,
      `version ${version}`,
      `by ${by}`,
      runOf(messageId(first), messageId(last)),
      many(countWords(text), 'word'),
      glimpse(text),
    ]),
  )
}

function lostLines(lost: readonly Lost[]): string[] {
  const rows = lost.flatMap(({ losses }) =>
    losses.map(({ kind, text, source }) => [source.message, kind, glimpse(text)]),
  )
  return rows.length === 0 ? ['Nothing that must survive is missing.'] : aligned(rows)
}
