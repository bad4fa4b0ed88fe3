import { existsSync } from 'node:fs'
import type { Command } from 'commander'
import { MemoryError } from '../domain/error.ts'
import { formatKey, isInternalKey } from '../domain/key.ts'
import { listSessions, resolveStore } from './openStore.ts'
import { jsonOption } from './options.ts'
import { completionScripts } from './terminal/completionScripts.ts'
import { setHelp } from './terminal/help.ts'
import { printResult } from './terminal/output.ts'

const shells = Object.keys(completionScripts)

export function addCompletionCommands(program: Command): void {
  const completion = program
    .command('completion')
    .description('print a script that completes commands, options and session keys in a shell')
    .summary('print a completion script for a shell')
    .argument('<shell>', shells.join(', '))
    .addOption(jsonOption())
    .action(printScript)
  setHelp(completion, {
    examples: [
      'threadkeep completion bash > ~/.local/share/bash-completion/completions/threadkeep',
      'threadkeep completion zsh > ~/.zsh/completions/_threadkeep',
      'threadkeep completion fish > ~/.config/fish/completions/threadkeep.fish',
    ],
  })
  const complete = program
    .command('complete', { hidden: true })
    .description('list the completions of a command line, one per line with its meaning after a tab')
    .argument('[words...]', 'words after threadkeep; the last one is completed')
    .addOption(jsonOption())
    .action((words: readonly string[], flags: { json?: boolean }) => printCompletions(program, words, flags))
  setHelp(complete, { examples: ['threadkeep complete -- ses', 'threadkeep complete -- facts demo:'] })
}

function printScript(shell: string, flags: { readonly json?: boolean }): void {
  const script = Object.hasOwn(completionScripts, shell) ? completionScripts[shell] : undefined
  if (script === undefined)
    throw new MemoryError('bad-option', `Unknown shell ${JSON.stringify(shell)}. Use one of: ${shells.join(', ')}.`, {
      param: 'shell',
    })
  if (flags.json === true) printResult(true, { shell, script }, [])
  else process.stdout.write(script)
}

type Candidate = { readonly value: string; readonly meaning: string }

/** Never fails: a shell asks while a user types. */
async function printCompletions(
  program: Command,
  words: readonly string[],
  flags: { readonly json?: boolean },
): Promise<void> {
  const found = await findCandidates(program, words).catch(() => [])
  const [last = ''] = words.slice(-1)
  const items = found.filter(({ value }) => value.startsWith(last))
  const lines = items.map(({ value, meaning }) => (meaning === '' ? value : `${value}\t${meaning}`))
  printResult(flags.json, { items }, lines)
}

async function findCandidates(program: Command, words: readonly string[]): Promise<readonly Candidate[]> {
  const current = words.at(-1) ?? ''
  const { command, operands, pending } = walk(program, words.slice(0, -1))
  if (pending !== undefined) return pending === 'scope' || pending === 'key' ? listNames(words, pending) : []
  if (current.startsWith('-')) return listOptions(command)
  if (command.commands.length > 0) return listCommands(command)
  const { registeredArguments } = command
  const argument = registeredArguments[Math.min(operands, registeredArguments.length - 1)]
  if (argument === undefined || operands >= registeredArguments.length) return []
  if (command.name() === 'completion') return shells.map((value) => ({ value, meaning: '' }))
  const name = argument.name()
  return name === 'key' || name === 'scope' ? listNames(words, name) : []
}

type Position = {
  readonly command: Command
  /** Number of operands of the command before the current word. */
  readonly operands: number
  /** Name of the option whose value is the current word. */
  readonly pending: string | undefined
}

/** Follows the words to a command. */
function walk(program: Command, words: readonly string[]): Position {
  let [command, operands, pending]: [Command, number, string | undefined] = [program, 0, undefined]
  for (const word of words) {
    if (pending !== undefined) {
      pending = undefined
      continue
    }
    const option = word.startsWith('-')
      ? command.options.find(({ short, long }) => word === short || word === long)
      : undefined
    if (option !== undefined) pending = option.required || option.optional ? option.name() : undefined
    if (word.startsWith('-')) continue
    const child = command.commands.find((candidate) => candidate.name() === word)
    if (child === undefined) operands++
    else command = child
  }
  return { command, operands, pending }
}

const listCommands = (command: Command): readonly Candidate[] =>
  command
    .createHelp()
    .visibleCommands(command)
    .map((child) => ({ value: child.name(), meaning: child.summary() || child.description() }))

const listOptions = (command: Command): readonly Candidate[] =>
  command
    .createHelp()
    .visibleOptions(command)
    .flatMap(({ long, description }) =>
      long === undefined || long === null ? [] : [{ value: long, meaning: description }],
    )

const maxNames = 1_000

/** Lists the sessions or scopes of the store that the words name. A missing store is not created. */
async function listNames(words: readonly string[], kind: 'key' | 'scope'): Promise<readonly Candidate[]> {
  const readFlag = (flag: string): string | undefined => {
    const index = words.lastIndexOf(flag)
    return index < 0 ? undefined : words[index + 1]
  }
  const [store, storeKey] = [readFlag('--store'), readFlag('--store-key')]
  const location = resolveStore({ ...(store && { store }), ...(storeKey && { storeKey }) }, process.env)
  const { openStore, parseSqliteUrl } = await import('../stores/open.ts')
  const file = parseSqliteUrl(location.url)
  if (file === undefined || !existsSync(file)) return []
  const opened = await openStore(location.url, location.key)
  const names = new Set<string>()
  try {
    for await (const { key } of listSessions(opened)) {
      if (kind === 'scope') names.add(key.scope)
      else if (key.id !== '' && !isInternalKey(key)) names.add(formatKey(key))
      if (names.size >= maxNames) break
    }
  } finally {
    await opened.close()
  }
  return [...names].map((value) => ({ value, meaning: '' }))
}
