import type { Command } from 'commander'
import { formatKey, parseKey } from '../domain/key.ts'
import type { ChatMessage } from '../domain/ledger.ts'
import type { Framing } from '../domain/profile.ts'
import {
  addEmbedderOption,
  addStoreOptions,
  type EmbedderFlags,
  openExistingStore,
  requireSession,
  resolveEmbedder,
  type StoreFlags,
  warnOfEmbeddingFault,
} from './openStore.ts'
import { parseInteger, readOption } from './options.ts'
import { loadProfile } from './replay.ts'
import { option, setHelp } from './terminal/help.ts'
import { type Line, printResult } from './terminal/output.ts'
import { createProgress } from './terminal/progress.ts'
import { formatReceipt, formatSpending } from './terminal/receipt.ts'
import { terminalWidth } from './terminal/table.ts'
import { wrapWords } from './terminal/wordWrap.ts'

type Flags = StoreFlags &
  EmbedderFlags & {
    readonly query?: string
    readonly budget?: string
    readonly profile?: string
    readonly framing?: string
    readonly person?: string
    readonly receipt?: boolean
  }

export function addContextCommand(program: Command): void {
  const command = addEmbedderOption(addStoreOptions(program.command('context')))
    .description('print what a model would be shown of a session')
    .argument('<key>', 'session, as scope:session')
    .addOption(
      option('--query <text>', 'question to build the context for', { fallback: 'the last message of the user' }),
    )
    .addOption(option('--budget <tokens>', 'token budget', { fallback: "the profile's" }))
    .addOption(
      option('--profile <name>', 'profile: a name, or a JSON file', {
        env: ['THREADKEEP_PROFILE'],
        fallback: 'thread',
      }),
    )
    .addOption(
      option('--framing <name>', 'wording around memory: open, sections or silent', { fallback: "the profile's" }),
    )
    .option('--person <id>', 'person who speaks, for profiles that read the memory of persons')
    .option('--receipt', 'also print what was shown, shortened and left out, with tokens and reasons')
    .action(run)
  setHelp(command, {
    details: [
      'Prints every message with its role, as the model would receive it. Nothing is stored. --json prints the messages and the receipt.',
    ],
    examples: [
      'threadkeep context demo:me',
      "threadkeep context demo:me --query 'what is my cat called?' --receipt",
      'threadkeep context demo:me --budget 500 --profile summary --json',
    ],
  })
}

async function run(text: string, flags: Flags): Promise<void> {
  const key = parseKey(text)
  const profile = await loadProfile(readOption(flags.profile, process.env, 'THREADKEEP_PROFILE') ?? 'thread', 'profile')
  const options = {
    ...(flags.query === undefined ? {} : { query: flags.query }),
    ...(flags.budget === undefined ? {} : { budget: parseInteger(flags.budget, 'budget', 1) }),
    ...(flags.framing === undefined ? {} : { framing: flags.framing as Framing }),
    ...(flags.person === undefined ? {} : { person: flags.person }),
  }
  const embedding = await resolveEmbedder(flags, process.env)
  const store = await openExistingStore(flags, process.env)
  const { openMemory } = await import('../index.ts')
  // The session is in a file, so a RAM-only profile must accept a durable store.
  await using memory = await openMemory({ store, profile: { ...profile, durability: 'durable' }, ...embedding })
  // A question can be asked in a new session of the scope.
  if (flags.query === undefined) await requireSession(store, key)
  using progress = createProgress(flags)
  progress.step('Building the context')
  const { messages, ledger } = await memory.context(key, options)
  progress.clear()
  await warnOfEmbeddingFault(memory)
  const receipt = flags.receipt === true ? ['', ...formatReceipt(ledger)] : ['', formatSpending(ledger)]
  printResult(flags.json, { key: formatKey(key), messages, ledger }, [...formatMessages(messages), ...receipt])
}

/** Formats the messages of a context, each under its role. */
export const formatMessages = (messages: readonly ChatMessage[]): Line[] =>
  messages.flatMap((message, index) => [
    ...(index === 0 ? [] : ['']),
    { text: `[${formatRole(message)}]`, style: 'bold' as const },
    ...(message.content === null ? [] : [wrapWords(message.content, terminalWidth())]),
    ...('tool_calls' in message
      ? (message.tool_calls ?? []).map(({ function: { name, arguments: input } }) => `calls ${name}(${input})`)
      : []),
  ])

function formatRole(message: ChatMessage): string {
  if (message.role === 'tool') return `tool ${message.tool_call_id}`
  return message.name === undefined ? message.role : `${message.role} ${message.name}`
}
