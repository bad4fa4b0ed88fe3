import { readFileSync } from 'node:fs'
import { Command } from 'commander'
import { addAuditCommand } from './audit.ts'
import { addBenchCommand } from './bench.ts'
import { addChatCommand } from './chat.ts'
import { addConfigCommand } from './config.ts'
import { addDoctorCommand } from './doctor.ts'
import { exitCodesHelp } from './errors.ts'
import { addExportCommand } from './export.ts'
import { addFactsCommand } from './facts.ts'
import { addForgetCommand } from './forget.ts'
import { addImportCommand } from './import.ts'
import { addKeysCommand } from './keys.ts'
import { addKnowledgeCommand } from './knowledge.ts'
import { addLabCommand } from './lab.ts'
import { addMcpCommand } from './mcp.ts'
import { addOptimizerCommand } from './optimizer.ts'
import { addRememberCommand } from './remember.ts'
import { addReplayCommand } from './replay.ts'
import { addRestoreCommand } from './restore.ts'
import { addSaveCommand } from './save.ts'
import { addSearchCommand } from './search.ts'
import { addServeCommand } from './serve.ts'
import { addSessionsCommand } from './sessions.ts'
import { addSummariesCommand } from './summaries.ts'

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string
}

/** Commands in the order of the help text. */
const commands = [
  addServeCommand,
  addChatCommand,
  addMcpCommand,
  addSaveCommand,
  addRestoreCommand,
  addSessionsCommand,
  addSearchCommand,
  addFactsCommand,
  addSummariesCommand,
  addOptimizerCommand,
  addReplayCommand,
  addRememberCommand,
  addKnowledgeCommand,
  addForgetCommand,
  addExportCommand,
  addImportCommand,
  addDoctorCommand,
  addAuditCommand,
  addKeysCommand,
  addConfigCommand,
  addBenchCommand,
  addLabCommand,
]

/** Creates the `threadkeep` command with all its subcommands. */
export function createProgram(): Command {
  const program = new Command('threadkeep')
    .description('Conversation memory: decides what a language model is shown, inside a hard token budget.')
    .version(version)
    .exitOverride()
    .configureOutput({ outputError: () => undefined })
    .addHelpText(
      'after',
      `\nExamples:\n  threadkeep serve\n  threadkeep chat --receipt\n  threadkeep mcp --workspace my-project\n\n${exitCodesHelp}`,
    )
  for (const add of commands) add(program)
  return program
}
