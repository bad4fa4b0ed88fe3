import { createInterface, type Interface } from 'node:readline'
import type { Command } from 'commander'
import { parseKey } from '../domain/key.ts'
import type { ProviderSettings } from '../providers/provider.ts'
import { ChatSession, type ChatSessionOptions } from './chatSession.ts'
import { exitCodesHelp, toCliError } from './errors.ts'
import { addEmbedderOption, type EmbedderFlags, resolveEmbedder } from './openStore.ts'
import { type Environment, readOption, resolveProfileOption } from './options.ts'

type Flags = EmbedderFlags & {
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
Reads lines from the terminal or from a pipe. /receipt shows the receipt of the last turn, /forget deletes the session,
/help lists the commands, /quit exits. Memory is in RAM and lost on exit, unless --store names a file.
API keys come from OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY and XAI_API_KEY.

Examples:
  threadkeep chat
  threadkeep chat work:ann --provider local --model llama3.2 --receipt
  threadkeep chat --store sqlite:threadkeep.db
  printf 'My cat is called Miso.\\nWhat is my cat called?\\n' | threadkeep chat --json

${exitCodesHelp}`

export function addChatCommand(program: Command): void {
  addEmbedderOption(program.command('chat'))
    .description('chat with a model in the terminal, with memory')
    .argument('[key]', 'session, as scope:session', 'demo:me')
    .option('--profile <name>', 'profile (THREADKEEP_PROFILE; thread)')
    .option('--budget <tokens>', "token budget of each prompt (the profile's)")
    .option(
      '--provider <name>',
      'openai, anthropic, gemini, xai, local or offline (openai with an upstream, else offline)',
    )
    .option('--model <name>', "model name (the provider's default)")
    .option('--upstream <url>', "base URL of the provider's server (THREADKEEP_UPSTREAM, OPENAI_BASE_URL)")
    .option('--store <url>', 'store: ram: or sqlite:PATH (THREADKEEP_STORE; ram:)')
    .option(
      '--store-key <source>',
      'encrypt the store with the key from file:PATH, env:NAME or command:PROGRAM (THREADKEEP_STORE_KEY)',
    )
    .option('--receipt', 'show the receipt of every turn')
    .option('--json', 'print one JSON object per turn: { reply, ledger }')
    .addHelpText('after', help)
    .action((key: string, flags: Flags) => run(key, flags, process.env))
}

async function run(key: string, flags: Flags, environment: Environment): Promise<void> {
  const parsedKey = parseKey(key)
  const profileName = readOption(flags.profile, environment, 'THREADKEEP_PROFILE') ?? 'thread'
  const profile = await resolveProfileOption(profileName, flags.budget)
  // Loaded lazily, so that help and usage errors appear at once.
  const [{ openMemory }, { createModel }] = await Promise.all([
    import('../index.ts'),
    import('../providers/provider.ts'),
  ])
  const model = createModel(selectProvider(flags, environment))
  const store = readOption(flags.store, environment, 'THREADKEEP_STORE') ?? 'ram:'
  const storeKey = readOption(flags.storeKey, environment, 'THREADKEEP_STORE_KEY')
  const embedding = await resolveEmbedder(flags, environment)
  await using memory = await openMemory({ profile, store, ...(storeKey && { storeKey }), ...embedding })
  const isTerminal = process.stdin.isTTY === true && process.stdout.isTTY === true && flags.json !== true
  const options: ChatSessionOptions = {
    json: flags.json === true,
    receipt: flags.receipt === true,
    write: (text) => void process.stdout.write(text),
  }
  const session = new ChatSession(memory, model, parsedKey, options)
  const lines = createInterface({
    input: process.stdin,
    ...(isTerminal ? { output: process.stdout } : {}),
    terminal: isTerminal,
    prompt: '> ',
  })
  const interrupt = (): void => {
    if (isTerminal && session.abortReply()) return
    process.exit(130)
  }
  process.on('SIGINT', interrupt)
  lines.on('SIGINT', interrupt)
  if (isTerminal)
    options.write(
      `Chatting with ${model.name} as ${key}, profile ${profile.name}. Memory is ${store === 'ram:' ? 'lost on exit' : `stored in ${store}`}. Type /help to list the commands.\n`,
    )
  await readLines(session, lines, isTerminal)
}

async function readLines(session: ChatSession, lines: Interface, isTerminal: boolean): Promise<void> {
  if (isTerminal) lines.prompt()
  for await (const line of lines) {
    try {
      if ((await session.handleLine(line)) === 'quit') break
    } catch (error) {
      // An interactive user can retry; a script must fail.
      if (!isTerminal) throw error
      process.stderr.write(`${toCliError(error).message}\n`)
    }
    if (isTerminal) lines.prompt()
  }
  lines.close()
}

const apiKeyVariables: Readonly<Record<string, string>> = {
  openai: 'OPENAI_API_KEY',
  anthropic: 'ANTHROPIC_API_KEY',
  gemini: 'GEMINI_API_KEY',
  xai: 'XAI_API_KEY',
}

function selectProvider(flags: Flags, environment: Environment): ProviderSettings {
  const upstream = readOption(flags.upstream, environment, 'THREADKEEP_UPSTREAM', 'OPENAI_BASE_URL')
  const provider = flags.provider ?? (upstream === undefined ? 'offline' : 'openai')
  const variable = Object.hasOwn(apiKeyVariables, provider) ? apiKeyVariables[provider] : undefined
  return {
    provider,
    model: flags.model,
    // The environment names a server that speaks OpenAI's protocol, so other providers ignore it.
    baseUrl: provider === 'openai' || provider === 'local' ? upstream : flags.upstream,
    apiKey: variable === undefined ? undefined : environment[variable],
  }
}
