import { createInterface, type Interface } from 'node:readline'
import { styleText } from 'node:util'
import type { Command } from 'commander'
import { maskStoreUrl } from '../../domain/error.ts'
import { parseKey } from '../../domain/key.ts'
import type { Profile } from '../../domain/profile.ts'
import {
  addEmbedderOption,
  addStoreLocation,
  durableStoreForms,
  type EmbedderFlags,
  resolveEmbedder,
  resolveStore,
  type StoreFlags,
} from '../openStore.ts'
import { type Environment, readOption, resolveProfileOption } from '../options.ts'
import { option, setHelp } from '../terminal/help.ts'
import { interruptedExitCode, releaseInterruptHandler } from '../terminal/interrupt.ts'
import { printNote } from '../terminal/output.ts'
import { terminalWidth } from '../terminal/table.ts'
import { chatCommands } from './chatCommands.ts'
import type { ChatSession, ChatSessionOptions } from './chatSession.ts'
import { addProviderOptions, apiKeyHelp, type ProviderFlags, selectProvider } from './providerOptions.ts'

type Flags = EmbedderFlags &
  StoreFlags &
  ProviderFlags & { readonly profile?: string; readonly budget?: string; readonly receipt?: boolean }

export function addChatCommand(program: Command): void {
  const chat = addEmbedderOption(
    addStoreLocation(program.command('chat'), `${durableStoreForms}, or ram: for a throw-away chat`),
  )
  const command = addProviderOptions(chat, 'openai with an upstream, else offline')
    .description('chat with a model in the terminal, with memory')
    .argument('[key]', 'session, as scope:session', 'demo:me')
    .addOption(option('--profile <name>', 'profile', { env: ['THREADKEEP_PROFILE'], fallback: 'thread' }))
    .addOption(option('--budget <tokens>', 'token budget of each prompt', { fallback: "the profile's" }))
    .option('--receipt', 'show the receipt of every turn')
    .option('--json', 'print one JSON object per turn: { reply, ledger }')
    .action((key: string, flags: Flags) => run(key, flags, process.env))
  setHelp(command, {
    details: [
      'Reads lines from the terminal or from a pipe. The chat knows what the server and the other commands have stored in the same session. Commands in the chat:',
      chatCommands,
    ],
    variables: apiKeyHelp,
    examples: [
      'threadkeep chat',
      'threadkeep chat work:ann --provider local --model llama3.2 --receipt',
      'threadkeep chat --store ram:',
      "printf 'My cat is called Miso.\\nWhat is my cat called?\\n' |\nthreadkeep chat --json",
    ],
  })
}

async function run(key: string, flags: Flags, environment: Environment): Promise<void> {
  const parsedKey = parseKey(key)
  const profileName = readOption(flags.profile, environment, 'THREADKEEP_PROFILE') ?? 'thread'
  const profile = await resolveProfileOption(profileName, flags.budget)
  // Loaded lazily, so that help and usage errors appear at once.
  const [{ openMemory }, { createModel }, { ChatSession }] = await Promise.all([
    import('../../index.ts'),
    import('../../providers/provider.ts'),
    import('./chatSession.ts'),
  ])
  const model = createModel(selectProvider(flags, environment) ?? { provider: 'offline' })
  const { url: store, key: storeKey } = resolveChatStore(flags, environment, profile)
  const embedding = await resolveEmbedder(flags, environment)
  await using memory = await openMemory({ profile, store, ...(storeKey && { storeKey }), ...embedding })
  const isTerminal = process.stdin.isTTY === true && process.stdout.isTTY === true && flags.json !== true
  const lines = createInterface({
    input: process.stdin,
    ...(isTerminal ? { output: process.stdout } : {}),
    terminal: isTerminal,
    prompt: styleText('bold', 'you> ', { stream: process.stdout }),
  })
  const options: ChatSessionOptions = {
    json: flags.json === true,
    receipt: flags.receipt === true,
    write: (text) => void process.stdout.write(text),
    ...(isTerminal ? { confirm: (question: string) => askOnLine(lines, question), columns: terminalWidth() } : {}),
  }
  const session = new ChatSession(memory, model, parsedKey, options)
  if (isTerminal) {
    const place = store === 'ram:' ? 'in RAM, lost on exit' : maskStoreUrl(store)
    options.write(`Chatting with ${model.name} as ${key}, profile ${profile.name}.\nMemory: ${place}\n`)
    options.write('Type a message, or /help for the commands. Ctrl-D ends the chat.\n\n')
  }
  handleInterrupts(session, lines, isTerminal)
  await readLines(session, lines, isTerminal)
}

/** Returns the store of all commands; a RAM-only profile that cannot use it chats in RAM. */
function resolveChatStore(flags: Flags, environment: Environment, { durability, scopes }: Profile) {
  const location = resolveStore(flags, environment)
  const isChosen = readOption(flags.store, environment, 'THREADKEEP_STORE') !== undefined
  return durability === 'ram' && !scopes.includes('scope') && !isChosen ? { ...location, url: 'ram:' } : location
}

/** Ctrl-C stops the reply that is being written; without one, it ends the chat. */
function handleInterrupts(session: ChatSession, lines: Interface, isTerminal: boolean): void {
  const interrupt = (): void => {
    if (isTerminal && session.abortReply()) return
    if (isTerminal) process.stdout.write('\n')
    process.exit(interruptedExitCode)
  }
  releaseInterruptHandler()
  process.on('SIGINT', interrupt)
  lines.on('SIGINT', interrupt)
}

async function readLines(session: ChatSession, lines: Interface, isTerminal: boolean): Promise<void> {
  if (isTerminal) lines.prompt()
  for await (const line of lines) {
    try {
      if ((await session.handleLine(line)) === 'exit') return lines.close()
    } catch (error) {
      // An interactive user can retry; a script must fail.
      if (!isTerminal) throw error
      const { toCliError } = await import('../errors.ts')
      printNote(toCliError(error).message)
    }
    if (isTerminal) {
      process.stdout.write('\n')
      lines.prompt()
    }
  }
  if (isTerminal) process.stdout.write('\n')
}

/** Asks a question on the line of the prompt; anything but yes is no. */
const askOnLine = (lines: Interface, question: string): Promise<boolean> =>
  new Promise((resolve) => lines.question(`${question} [y/N] `, (answer) => resolve(/^y(?:es)?$/i.test(answer.trim()))))
