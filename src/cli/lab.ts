import type { Command } from 'commander'
import { MemoryError } from '../domain/error.ts'
import { jsonOption, parseInteger } from './options.ts'
import { option, setHelp } from './terminal/help.ts'
import { checkOutFile, forceOption, type OutFlags, writeOutFile } from './terminal/outFile.ts'
import { printResult } from './terminal/output.ts'
import { createProgress } from './terminal/progress.ts'
import { formatTable } from './terminal/table.ts'

type Flags = OutFlags & {
  readonly sizes: string
  readonly types: string
  readonly compression: string
  readonly algorithm: string
  readonly budget?: string
  readonly seed: string
  readonly out?: string
  readonly json?: boolean
}

const namedSizes: Readonly<Record<string, number>> = { small: 1_000, medium: 5_000, large: 25_000 }
const maxSize = 1_000_000

export function addLabCommand(program: Command): void {
  const command = program
    .command('lab')
    .description('compare sizes, types, compression and algorithms on generated conversations')
    .option('--sizes <list>', 'sizes of the conversations', 'small,medium')
    .option('--types <list>', 'types of conversations', 'chat,code,mixed')
    .option('--compression <list>', 'compression of the export', 'none,zstd')
    .option('--algorithm <list>', 'algorithms that restore', 'handoff,thread,window,bm25')
    .addOption(
      option('--budget <tokens>', 'token budget of the restored text', { fallback: 'a quarter of the conversation' }),
    )
    .option('--seed <number>', 'seed of the generated conversations', '1')
    .option('--out <file>', 'write an HTML report')
    .addOption(forceOption())
    .addOption(jsonOption())
    .action(run)
  setHelp(command, {
    details: [
      'For every combination of size, type, compression and algorithm, generates a conversation, saves it in a SQLite store, exports it, imports it into a new store, restores a text within the budget and compares it with the original. --out writes one HTML page with plots and tables that needs no script and no network.',
      {
        Sizes: 'tokens, or small (1000), medium (5000), large (25000)',
        Types: 'chat, support, assistant, code, mixed',
        Compression: 'none, zstd',
        Algorithms:
          'handoff (as threadkeep restore), the profiles thread, support, summary, agent and ephemeral, window (the last tokens of the conversation), bm25',
      },
    ],
    examples: [
      'threadkeep lab --out report.html',
      'threadkeep lab --sizes small,20000 --types code --algorithm handoff,thread',
      'threadkeep lab --sizes small --json',
    ],
  })
}

async function run(flags: Flags): Promise<void> {
  if (flags.out !== undefined) checkOutFile(flags.out, 'out', flags)
  const [{ algorithms, compressions, runLab }, { conversationKinds }] = await Promise.all([
    import('../evaluation/lab/lab.ts'),
    import('../evaluation/generate/generate.ts'),
  ])
  const seed = parseInteger(flags.seed, 'seed', 0, 1_000_000)
  const options = {
    sizes: [...new Set(splitList(flags.sizes, 'sizes').map(parseSize))],
    types: parseNames(flags.types, 'types', conversationKinds),
    compressions: parseNames(flags.compression, 'compression', compressions),
    algorithms: parseNames(flags.algorithm, 'algorithm', algorithms),
    budget: flags.budget === undefined ? undefined : parseInteger(flags.budget, 'budget', 1),
    seed,
  }
  using progress = createProgress(flags)
  const onProgress = (done: number, total: number, label: string): void => progress.count(`${label}:`, done, total)
  const rows = await runLab({ ...options, onProgress })
  progress.clear()
  const { createLabReport, labColumns } = await import('../evaluation/lab/report.ts')
  if (flags.out !== undefined) await writeOutFile([Buffer.from(createLabReport(rows, seed))], flags.out, 'out', flags)
  const table = [labColumns.map(([title]) => title), ...rows.map((row) => labColumns.map(([, format]) => format(row)))]
  const written = flags.out === undefined ? [] : [`Wrote ${flags.out}.`]
  printResult(flags.json, { seed, rows, ...(flags.out === undefined ? {} : { report: flags.out }) }, [
    ...formatTable(table, {
      header: true,
      numeric: new Set([...labColumns.keys()].filter((column) => column === 0 || column > 3)),
    }),
    ...written,
  ])
}

function splitList(text: string, option: string): string[] {
  const names = text
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '')
  if (names.length > 0) return names
  throw new MemoryError('bad-option', `--${option} is empty. Give at least one value, separated by commas.`, {
    param: option,
  })
}

const parseSize = (text: string): number => namedSizes[text] ?? parseInteger(text, 'sizes', 100, maxSize)

function parseNames<T extends string>(text: string, option: string, known: readonly T[]): T[] {
  const names = splitList(text, option).map((name) => {
    const found = known.find((candidate) => candidate === name)
    if (found !== undefined) return found
    throw new MemoryError(
      'bad-option',
      `--${option} has ${JSON.stringify(name)}. Use one or more of: ${known.join(', ')}.`,
      { param: option },
    )
  })
  return [...new Set(names)]
}
