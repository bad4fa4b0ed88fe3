import { readFile } from 'node:fs/promises'
import type { Command } from 'commander'
import type { Difference } from '../context/replay.ts'
import { MemoryError } from '../domain/error.ts'
import { parseKey } from '../domain/key.ts'
import type { Ledger, Verdict } from '../domain/ledger.ts'
import type { Profile } from '../domain/profile.ts'
import { formatCount } from '../text/formatCount.ts'
import { addStoreOptions, openExistingStore, requireSession, type StoreFlags } from './openStore.ts'
import { parseInteger } from './options.ts'
import { option, setHelp } from './terminal/help.ts'
import { formatRange, type Line, printResult } from './terminal/output.ts'
import { formatTable } from './terminal/table.ts'

type Flags = StoreFlags & {
  readonly profile: string
  readonly from: string
  readonly budget?: string
  readonly query?: string
  readonly text?: boolean
}

export function addReplayCommand(program: Command): void {
  const command = addStoreOptions(program.command('replay'))
    .description('compare the contexts that two profiles build from a session')
    .argument('<key>', 'session, as scope:session')
    .requiredOption('--profile <name>', 'second profile: a name, or a JSON file')
    .option('--from <name>', 'first profile: a name, or a JSON file', 'thread')
    .addOption(option('--budget <tokens>', 'token budget', { fallback: "the first profile's" }))
    .addOption(option('--query <text>', 'query', { fallback: 'the last message of the user' }))
    .option('--text', 'also print the text of the second context')
    .action(run)
  setHelp(command, {
    details: [
      'Builds both contexts from the current session, with the query, budget and framing of the first profile unless options override them. The second profile sees only those scope entries that the first one sees. The table counts entries: messages, and other entries a profile shows, such as summaries and facts.',
    ],
    examples: [
      'threadkeep replay acme:ann --profile summary',
      'threadkeep replay acme:ann --from summary --profile ./mine.json --budget 4000',
      "threadkeep replay acme:ann --profile agent --query 'what is my cat called?' --text",
    ],
  })
}

async function run(text: string, flags: Flags): Promise<void> {
  const key = parseKey(text)
  const [from, other] = await Promise.all([loadProfile(flags.from, 'from'), loadProfile(flags.profile, 'profile')])
  const options = {
    ...(flags.budget === undefined ? {} : { budget: parseInteger(flags.budget, 'budget', 1) }),
    ...(flags.query === undefined ? {} : { query: flags.query }),
  }
  const store = await openExistingStore(flags, process.env)
  const { openMemory } = await import('../index.ts')
  // The session is in a file, so a RAM-only profile must accept a durable store.
  await using memory = await openMemory({ store, profile: { ...from, durability: 'durable' } })
  await requireSession(store, key)
  const trace = await memory.trace(key, options)
  const { ledger, differences, text: contextText } = memory.replay(trace, other)
  const [was, is] = [countVerdicts(trace.ledger), countVerdicts(ledger)]
  const result = { key: text, budget: trace.budget, was, is, differences }
  const lines = [
    `${text}, budget ${formatCount(trace.budget, 'token')}`,
    ...formatCounts(was, is),
    ...formatDifferences(differences),
  ]
  printResult(
    flags.json,
    flags.text === true ? { ...result, text: contextText } : result,
    flags.text === true ? [...lines, '', contextText] : lines,
  )
}

/** Returns the built-in profile with this name, or reads a profile from a JSON file. */
export async function loadProfile(text: string, option: string): Promise<Profile> {
  const [{ profiles }, { resolveProfile }, { parseProfile }] = await Promise.all([
    import('../profiles/index.ts'),
    import('../open.ts'),
    import('../domain/parseProfile.ts'),
  ])
  if (Object.hasOwn(profiles, text)) return resolveProfile(text)
  const json = await readFile(text, 'utf8').catch((cause: unknown) => {
    const names = Object.keys(profiles).join(', ')
    throw new MemoryError(
      'bad-profile',
      `Unknown profile ${JSON.stringify(text)}. Set --${option} to one of: ${names}, or to a JSON file.`,
      { param: option, cause },
    )
  })
  return parseProfile(parseProfileJson(json, text, option))
}

function parseProfileJson(json: string, file: string, option: string): unknown {
  try {
    return JSON.parse(json)
  } catch (cause) {
    throw new MemoryError('bad-profile', `${file} is not valid JSON. Write the profile as one JSON object.`, {
      param: option,
      cause,
    })
  }
}

const verdicts: readonly Verdict[] = ['whole', 'shortened', 'covered', 'dropped']

/** Tokens of a context and the number of its entries by verdict. */
type VerdictCounts = {
  readonly profile: string
  readonly tokens: number
  readonly verdicts: Readonly<Record<string, number>>
}

function countVerdicts({ profile, spent, lines }: Ledger): VerdictCounts {
  const count = (verdict: Verdict): number =>
    lines.reduce((sum, line) => (line.verdict === verdict ? sum + line.count : sum), 0)
  return {
    profile,
    tokens: spent,
    verdicts: Object.fromEntries(verdicts.map((verdict) => [verdict, count(verdict)])),
  }
}

const numericColumns: ReadonlySet<number> = new Set([2, 3, 4, 5, 6])

function formatCounts(was: VerdictCounts, is: VerdictCounts): Line[] {
  const toRow = (label: string, counts: VerdictCounts): string[] => [
    label,
    counts.profile,
    `${counts.tokens}`,
    ...verdicts.map((verdict) => `${counts.verdicts[verdict]}`),
  ]
  return formatTable([['', 'profile', 'tokens', ...verdicts], toRow('was', was), toRow('is', is)], {
    header: true,
    numeric: numericColumns,
  })
}

function formatDifferences(differences: readonly Difference[]): Line[] {
  if (differences.length === 0) return ['No differences.']
  return formatTable(
    differences.map(({ entries: [first, last], count, was, is }) => [
      formatRange(first, last),
      formatCount(count, 'message'),
      `${was} → ${is}`,
    ]),
  )
}
