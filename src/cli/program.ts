import { readFileSync } from 'node:fs'
import { Command } from 'commander'
import { addAuditCommand } from './audit.ts'
import { addBenchCommand } from './bench.ts'
import { addChatCommand } from './chat/chat.ts'
import { addCompletionCommands } from './completion.ts'
import { addConfigCommand } from './config.ts'
import { addContextCommand } from './context.ts'
import { addDoctorCommand } from './doctor.ts'
import { addExportCommand } from './export.ts'
import { addFactsCommand } from './facts.ts'
import { addForgetCommand } from './forget/forget.ts'
import { addImportCommand } from './import.ts'
import { addKeysCommand } from './keys.ts'
import { addKnowledgeCommand } from './knowledge.ts'
import { addLabCommand } from './lab.ts'
import { addMcpCommand } from './mcp.ts'
import { addMigrateCommand } from './migrate.ts'
import { addOptimizerCommand } from './optimizer.ts'
import { addRememberCommand } from './remember.ts'
import { addReplayCommand } from './replay.ts'
import { addRestoreCommand } from './restore.ts'
import { addSaveCommand } from './save.ts'
import { addSearchCommand } from './search.ts'
import { addServeCommand } from './serve.ts'
import { addSessionsCommand } from './sessions.ts'
import { addSummariesCommand } from './summaries.ts'
import { configureHelp, setHelp } from './terminal/help.ts'
import { addUpkeepCommand } from './upkeep.ts'

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string
}

type AddCommand = (program: Command) => void

/** Commands by the headings of the help text. */
const groups: Readonly<Record<string, readonly AddCommand[]>> = {
  'Use memory:': [addServeCommand, addChatCommand, addMcpCommand, addContextCommand],
  'Look into memory:': [
    addSessionsCommand,
    addSearchCommand,
    addFactsCommand,
    addSummariesCommand,
    addReplayCommand,
    addOptimizerCommand,
  ],
  'Change memory:': [addRememberCommand, addKnowledgeCommand, addForgetCommand, addUpkeepCommand],
  'Move memory:': [addSaveCommand, addRestoreCommand, addExportCommand, addImportCommand, addMigrateCommand],
  'Operate:': [addDoctorCommand, addKeysCommand, addConfigCommand, addAuditCommand, addCompletionCommands],
  'Measure:': [addBenchCommand, addLabCommand],
}

/** Creates the `threadkeep` command with all its subcommands. */
export function createProgram(): Command {
  const program = new Command('threadkeep')
    .description('Conversation memory: decides what a language model is shown, inside a hard token budget.')
    .version(version, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print help')
  for (const [group, commands] of Object.entries(groups)) {
    program.commandsGroup(group)
    for (const add of commands) add(program)
  }
  setHelp(program, {
    details: [
      'All commands work on the same memory: the file threadkeep.db in the current folder, unless --store or THREADKEEP_STORE names another. Every command has --help and --json.',
    ],
    variables: {
      THREADKEEP_STORE: 'store of all commands (sqlite:threadkeep.db)',
      NO_COLOR: 'print no colours',
      CI: 'show no progress',
    },
    examples: [
      'threadkeep serve',
      'threadkeep chat --receipt',
      'threadkeep context demo:me',
      'threadkeep mcp --workspace my-project',
    ],
  })
  configureHelp(program)
  return program
}

/**
 * Returns the arguments to parse. Throws Commander's error for an unknown command also when help is asked for, where
 * Commander itself prints the help of the parent. `help COMMAND` becomes `COMMAND --help`, also for subcommands.
 */
export function resolveArguments(program: Command, args: readonly string[]): readonly string[] {
  const isHelp = args[0] === 'help'
  const names = isHelp ? args.slice(1) : args
  let command = program
  for (const name of names) {
    if (command.commands.length === 0 || name.startsWith('-')) break
    const child = command.commands.find((candidate) => candidate.name() === name)
    // Without the help option, Commander reports the name with a suggestion.
    if (child === undefined) command.parse([name], { from: 'user' })
    command = child ?? command
  }
  return isHelp ? [...names, '--help'] : args
}
