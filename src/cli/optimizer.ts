import type { Command } from 'commander'
import type { TuningRun } from '../domain/entry.ts'
import { MemoryError } from '../domain/error.ts'
import { parseKey } from '../domain/key.ts'
import type { SessionHead } from '../domain/session.ts'
import type { OptimizerStatus } from '../upkeep/optimizer/optimizer.ts'
import { addStoreOptions, openExistingStore, requireSession, type StoreFlags } from './openStore.ts'
import { setHelp } from './terminal/help.ts'
import { formatTime, type Line, printResult } from './terminal/output.ts'
import { formatTable } from './terminal/table.ts'

type Flags = StoreFlags & { readonly snapshots?: boolean }

export function addOptimizerCommand(program: Command): void {
  const command = addStoreOptions(program.command('optimizer'))
    .description('show optimizer results of a session, a scope or the whole store')
    .argument('[key]', 'session, as scope:session, or a scope')
    .option('--snapshots', 'show every run in a session, newest last')
    .action(run)
  setHelp(command, {
    details: [
      'The optimizer runs in sessions of the profile agent and decides which messages are shown in full. Shows the parameters of the session that was optimized last; a session that was never optimized has the defaults.',
    ],
    examples: ['threadkeep optimizer', 'threadkeep optimizer acme --json', 'threadkeep optimizer acme:ann --snapshots'],
  })
}

async function run(text: string | undefined, flags: Flags): Promise<void> {
  const key = text === undefined ? undefined : parseKey(text)
  const session = key === undefined || key.id === '' ? undefined : key
  if (flags.snapshots === true && session === undefined)
    throw new MemoryError('bad-option', '--snapshots needs a session. Write it as scope:session.', { param: 'key' })
  const store = await openExistingStore(flags, process.env)
  const { openMemory } = await import('../index.ts')
  await using memory = await openMemory({ store })
  const head = session && (await requireSession(store, session))
  const status = await memory.upkeep.optimizerStatus(text)
  if (flags.snapshots !== true || head === undefined) return printResult(flags.json, status, formatStatus(status))
  const snapshots = findSnapshots(head)
  printResult(flags.json, { ...status, snapshots }, snapshots.length === 0 ? ['No runs.'] : formatSnapshots(snapshots))
}

function formatStatus({
  totalOptimizations,
  totalTokensSaved,
  avgSavingsPerRun,
  currentParameters: parameters,
}: OptimizerStatus): Line[] {
  return formatTable([
    ['runs', `${totalOptimizations}`],
    ['tokens saved', `${totalTokensSaved}, ${avgSavingsPerRun} per run`],
    ['trigger', `${parameters.compressionTrigger} of the budget`],
    ['window', `${parameters.fullMessageWindow} messages always shown in full`],
    ['minimum relevance', `${parameters.minRelevance}`],
    ['target', `${parameters.targetUsageRatio} of the budget`],
  ])
}

const findSnapshots = ({ derived }: SessionHead): readonly TuningRun[] =>
  derived.flatMap((entry) => (entry.kind === 'notes' ? (entry.tuning?.snapshots ?? []) : []))

const columns = ['time', 'before', 'after', 'compressed', 'dropped', 'promoted', 'trigger', 'window', 'relevance']
const numericColumns: ReadonlySet<number> = new Set(columns.map((_, column) => column).slice(1))

function formatSnapshots(snapshots: readonly TuningRun[]): Line[] {
  const rows = snapshots.map(
    ({ at, tokensBefore, tokensAfter, compressed, dropped, promoted, trigger, window, minRelevance }) => [
      formatTime(at),
      ...[tokensBefore, tokensAfter, compressed, dropped, promoted, trigger, window, minRelevance].map(String),
    ],
  )
  return formatTable([columns, ...rows], { header: true, numeric: numericColumns })
}
