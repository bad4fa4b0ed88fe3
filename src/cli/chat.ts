import { createInterface, type Interface } from 'node:readline'
import type { Command } from 'commander'
import { parseKey } from '../domain/key.ts'
import type { ProviderSettings } from '../providers/provider.ts'
import { exitCodes, failureOf } from './failure.ts'
import { type Environment, profileWith, setting } from './settings.ts'
import { type Manner, Talk } from './talk.ts'

type Flags = {
  readonly profile?: string
  readonly budget?: string
  readonly provider?: string
  readonly model?: string
  readonly upstream?: string
  readonly receipt?: boolean
  readonly store?: string
  readonly storeKey?: string
  readonly json?: boolean
}

const help = `
Lines are read from the terminal or from a pipe. /receipt shows what the last turn was shown and what it cost,
/forget forgets the session, /help lists the commands, /quit ends. Memory is in RAM and gone at the end, unless --store
names a file to keep it in.
Keys come from OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY and XAI_API_KEY.

Examples:
  threadkeep chat
  threadkeep chat work:ann --provider local --model llama3.2 --receipt
  threadkeep chat --store sqlite:threadkeep.db
  printf 'My cat is called Miso.\\nWhat is my cat called?\\n' | threadkeep chat --json

${exitCodes}`

/** The command that talks in the terminal, with memory. */
export function addChat(program: Command): void {
  program
    .command('chat')
    .description('talk with a model in the terminal, with memory')
    .argument('[key]', 'the session, as scope:session', 'demo:me')
    .option('--profile <name>', 'how memory works (THREADKEEP_PROFILE; thread)')
    .option('--budget <tokens>', "tokens a model is shown at most (the profile's)")
    .option(
      '--provider <name>',
      'openai, anthropic, gemini, xai, local or offline (openai with an upstream, else offline)',
    )
    .option('--model <name>', "the model's name (the provider's default)")
    .option('--upstream <url>', "base address of the provider's server (THREADKEEP_UPSTREAM, OPENAI_BASE_URL)")
    .option('--store <url>', 'where memory is kept: ram: or sqlite:PATH (THREADKEEP_STORE; ram:)')
    .option(
      '--store-key <source>',
      'encrypt it with the key from file:PATH, env:NAME or command:PROGRAM (THREADKEEP_STORE_KEY)',
    )
    .option('--receipt', 'show the receipt of every turn')
    .option('--json', 'one JSON object for each turn: { reply, ledger }')
    .addHelpText('after', help)
    .action((key: string, flags: Flags) => run(key, flags, process.env))
}

async function run(key: string, flags: Flags, environment: Environment): Promise<void> {
  const parsed = parseKey(key)
  const profile = await profileWith(setting(flags.profile, environment, 'THREADKEEP_PROFILE') ?? 'thread', flags.budget)
  // Loaded only now, so that help is given and mistakes are told at once.
  const [{ openMemory }, { modelFrom }] = await Promise.all([import('../index.ts'), import('../providers/provider.ts')])
  const model = modelFrom(choice(flags, environment))
  const store = setting(flags.store, environment, 'THREADKEEP_STORE') ?? 'ram:'
  const storeKey = setting(flags.storeKey, environment, 'THREADKEEP_STORE_KEY')
  await using memory = await openMemory({ profile, store, ...(storeKey === undefined ? {} : { storeKey }) })
  const isTerminal = process.stdin.isTTY === true && process.stdout.isTTY === true && flags.json !== true
  const manner: Manner = {
    json: flags.json === true,
    receipt: flags.receipt === true,
    write: (text) => void process.stdout.write(text),
  }
  const talk = new Talk(memory, model, parsed, manner)
  const lines = createInterface({
    input: process.stdin,
    ...(isTerminal ? { output: process.stdout } : {}),
    terminal: isTerminal,
    prompt: '> ',
  })
  const interrupt = (): void => {
    if (isTerminal && talk.stop()) return
    process.exit(130)
  }
  process.on('SIGINT', interrupt)
  lines.on('SIGINT', interrupt)
  if (isTerminal)
    manner.write(
      `Talking to ${model.name} as ${key}, profile ${profile.name}. /help lists the commands; memory is ${store === 'ram:' ? 'gone at the end' : `kept in ${store}`}.\n`,
    )
  await converse(talk, lines, isTerminal)
}

async function converse(talk: Talk, lines: Interface, isTerminal: boolean): Promise<void> {
  if (isTerminal) lines.prompt()
  for await (const line of lines) {
    try {
      if ((await talk.take(line)) === 'quit') break
    } catch (error) {
      // Whoever sits at the terminal can try again; a script should not go on as if nothing had happened.
      if (!isTerminal) throw error
      process.stderr.write(`${failureOf(error).message}\n`)
    }
    if (isTerminal) lines.prompt()
  }
  lines.close()
}

const keys: Readonly<Record<string, string>> = {
  openai: 'OPENAI_API_KEY',
  anthropic: 'ANTHROPIC_API_KEY',
  gemini: 'GEMINI_API_KEY',
  xai: 'XAI_API_KEY',
}

function choice(flags: Flags, environment: Environment): ProviderSettings {
  const upstream = setting(flags.upstream, environment, 'THREADKEEP_UPSTREAM', 'OPENAI_BASE_URL')
  const provider = flags.provider ?? (upstream === undefined ? 'offline' : 'openai')
  const key = Object.hasOwn(keys, provider) ? keys[provider] : undefined
  return {
    provider,
    model: flags.model,
    // The address in the environment is that of a server that speaks OpenAI's protocol, and no other should get it.
    baseUrl: provider === 'openai' || provider === 'local' ? upstream : flags.upstream,
    apiKey: key === undefined ? undefined : environment[key],
  }
}
