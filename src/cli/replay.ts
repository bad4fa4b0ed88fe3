import { readFile } from 'node:fs/promises'
import type { Command } from 'commander'
import type { Difference } from '../context/replay.ts'
import { MemoryError } from '../domain/error.ts'
import { parseKey } from '../domain/key.ts'
import type { Ledger, Verdict } from '../domain/ledger.ts'
import type { Profile } from '../domain/profile.ts'
import { exitCodes } from './failure.ts'
import { aligned, many, runOf, say } from './say.ts'
import { wholeNumber } from './settings.ts'
import { existingSession, existingStore, type StoreFlags, withStore } from './store.ts'

type Flags = StoreFlags & {
  readonly profile: string
  readonly from: string
  readonly budget?: string
  readonly query?: string
  readonly text?: boolean
}

const help = `
Both sides are built from what the session holds now, for the same question, budget and framing: those of the first
profile, unless told otherwise. What the first profile does not see of the scope, the other one is not shown either. The
table counts entries: messages, and whatever else a profile shows, such as summaries and facts.

Examples:
  threadkeep replay acme:ann --profile summary
  threadkeep replay acme:ann --from summary --profile ./mine.json --budget 4000
  threadkeep replay acme:ann --profile agent --query 'what is my cat called?' --text

${exitCodes}`

/** The command that shows what another profile would have shown of a session. */
export function addReplay(program: Command): void {
  withStore(program.command('replay'))
    .description('show what another profile would have shown, and what would have fared differently')
    .argument('<key>', 'the session, as scope:session')
    .requiredOption('--profile <name>', 'the other profile: its name, or a JSON file')
    .option('--from <name>', 'the profile to compare it with: its name, or a JSON file', 'thread')
    .option('--budget <tokens>', "tokens a model is shown at most (the first profile's)")
    .option('--query <text>', 'what is asked (what the user said last)')
    .option('--text', 'also the text of the other context')
    .addHelpText('after', help)
    .action(run)
}

async function run(text: string, flags: Flags): Promise<void> {
  const key = parseKey(text)
  const [from, other] = await Promise.all([profileFrom(flags.from, 'from'), profileFrom(flags.profile, 'profile')])
  const options = {
    ...(flags.budget === undefined ? {} : { budget: wholeNumber(flags.budget, 'budget', 1) }),
    ...(flags.query === undefined ? {} : { query: flags.query }),
  }
  const store = await existingStore(flags, process.env)
  const { openMemory } = await import('../index.ts')
  // The session is in the file, wherever the profile would keep it.
  await using memory = await openMemory({ store, profile: { ...from, durability: 'durable' } })
  await existingSession(store, key)
  const trace = await memory.trace(key, options)
  const { ledger, differences, text: shown } = memory.replay(trace, other)
  const [was, is] = [sideOf(trace.ledger), sideOf(ledger)]
  const answer = { key: text, budget: trace.budget, was, is, differences }
  const lines = [
    `${text} in at most ${many(trace.budget, 'token')}`,
    ...sideLines(was, is),
    ...differenceLines(differences),
  ]
  say(
    flags.json,
    flags.text === true ? { ...answer, text: shown } : answer,
    flags.text === true ? [...lines, '', shown] : lines,
  )
}

/** The profile of this name, or the one in this file. */
async function profileFrom(text: string, option: string): Promise<Profile> {
  const [{ profiles }, { profileOf }, { parseProfile }] = await Promise.all([
    import('../profiles/index.ts'),
    import('../open.ts'),
    import('../domain/parseProfile.ts'),
  ])
  if (Object.hasOwn(profiles, text)) return profileOf(text)
  const written = await readFile(text, 'utf8').catch((cause: unknown) => {
    const names = Object.keys(profiles).join(', ')
    throw new MemoryError(
      'bad-profile',
      `${option} is ${JSON.stringify(text)}; it must be one of ${names}, or a JSON file.`,
      { param: option, cause },
    )
  })
  return parseProfile(parsed(written, text, option))
}

function parsed(written: string, file: string, option: string): unknown {
  try {
    return JSON.parse(written)
  } catch (cause) {
    throw new MemoryError('bad-profile', `${file} holds no JSON. Write the profile as one JSON object.`, {
      param: option,
      cause,
    })
  }
}

const verdicts: readonly Verdict[] = ['whole', 'shortened', 'covered', 'dropped']

type Side = { readonly profile: string; readonly tokens: number; readonly verdicts: Readonly<Record<string, number>> }

/** What a profile shows, in numbers: its tokens, and how many entries fare how. */
function sideOf({ profile, spent, lines }: Ledger): Side {
  const counted = (verdict: Verdict): number =>
    lines.reduce((sum, line) => (line.verdict === verdict ? sum + line.count : sum), 0)
  return {
    profile,
    tokens: spent,
    verdicts: Object.fromEntries(verdicts.map((verdict) => [verdict, counted(verdict)])),
  }
}

const numbers: ReadonlySet<number> = new Set([2, 3, 4, 5, 6])

function sideLines(was: Side, is: Side): string[] {
  const row = (name: string, side: Side): string[] => [
    name,
    side.profile,
    `${side.tokens}`,
    ...verdicts.map((verdict) => `${side.verdicts[verdict]}`),
  ]
  return aligned([['', 'profile', 'tokens', ...verdicts], row('was', was), row('is', is)], numbers)
}

function differenceLines(differences: readonly Difference[]): string[] {
  if (differences.length === 0) return ['No message would have fared differently.']
  return aligned(
    differences.map(({ entries: [first, last], count, was, is }) => [
      runOf(first, last),
      many(count, 'message'),
      `${was} → ${is}`,
    ]),
  )
}
