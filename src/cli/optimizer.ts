import type { Command } from 'commander'
import type { Snapshot } from '../domain/entry.ts'
import { MemoryError } from '../domain/error.ts'
import { parseKey } from '../domain/key.ts'
import type { Head } from '../domain/session.ts'
import type { OptimizerStatus } from '../upkeep/optimizer/optimizer.ts'
import { exitCodes } from './failure.ts'
import { aligned, say, timeOf } from './say.ts'
import { existingSession, existingStore, type StoreFlags, withStore } from './store.ts'

type Flags = StoreFlags & { readonly snapshots?: boolean }

const help = `
The parameters are those of the session that was optimized last; a session that never was has the first ones.

Examples:
  threadkeep optimizer
  threadkeep optimizer acme --json
  threadkeep optimizer acme:ann --snapshots

${exitCodes}`

/** The command that shows what the optimizer has saved, and what it has learnt. */
export function addOptimizer(program: Command): void {
  withStore(program.command('optimizer'))
    .description('show how the optimizer is doing in a session, in those of a scope, or in all')
    .argument('[key]', 'the session, as scope:session, or a scope')
    .option('--snapshots', 'what each run found and did in a session, the newest last')
    .addHelpText('after', help)
    .action(run)
}

async function run(text: string | undefined, flags: Flags): Promise<void> {
  const key = text === undefined ? undefined : parseKey(text)
  const session = key === undefined || key.id === '' ? undefined : key
  if (flags.snapshots === true && session === undefined)
    throw new MemoryError('bad-option', '--snapshots goes with a session: write it as scope:session.', { param: 'key' })
  const store = await existingStore(flags, process.env)
  const { openMemory } = await import('../index.ts')
  await using memory = await openMemory({ store })
  const head = session && (await existingSession(store, session))
  const status = await memory.upkeep.optimizer(text)
  if (flags.snapshots !== true || head === undefined) return say(flags.json, status, statusLines(status))
  const snapshots = snapshotsOf(head)
  say(flags.json, { ...status, snapshots }, snapshots.length === 0 ? ['No runs.'] : table(snapshots))
}

function statusLines({
  totalOptimizations,
  totalTokensSaved,
  avgSavingsPerRun,
  currentParameters: now,
}: OptimizerStatus): string[] {
  return aligned([
    ['runs', `${totalOptimizations}`],
    ['tokens saved', `${totalTokensSaved}, ${avgSavingsPerRun} in a run`],
    ['trigger', `${now.compressionTrigger} of the budget`],
    ['window', `${now.fullMessageWindow} messages always whole`],
    ['minimum relevance', `${now.minRelevance}`],
    ['target', `${now.targetUsageRatio} of the budget`],
  ])
}

const snapshotsOf = ({ derived }: Head): readonly Snapshot[] =>
  derived.flatMap((entry) => (entry.kind === 'notes' ? (entry.tuning?.snapshots ?? []) : []))

const titles = ['time', 'before', 'after', 'compressed', 'dropped', 'promoted', 'trigger', 'window', 'relevance']
const numbers: ReadonlySet<number> = new Set(titles.map((_, at) => at).slice(1))

function table(snapshots: readonly Snapshot[]): string[] {
  const rows = snapshots.map(
    ({ at, tokensBefore, tokensAfter, compressed, dropped, promoted, trigger, window, minRelevance }) => [
      timeOf(at),
      ...[tokensBefore, tokensAfter, compressed, dropped, promoted, trigger, window, minRelevance].map(String),
    ],
  )
  return aligned([titles, ...rows], numbers)
}
