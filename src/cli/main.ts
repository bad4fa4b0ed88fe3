#!/usr/bin/env node
import { readFileSync } from 'node:fs'
import { Command } from 'commander'
import { addAudit } from './audit.ts'
import { addChat } from './chat.ts'
import { addConfig } from './config.ts'
import { addDoctor } from './doctor.ts'
import { addExport } from './export.ts'
import { addFacts } from './facts.ts'
import { exitCodes, failureOf } from './failure.ts'
import { addForget } from './forget.ts'
import { addImport } from './import.ts'
import { addKeys } from './keys.ts'
import { addKnowledge } from './knowledge.ts'
import { addMcp } from './mcp.ts'
import { addOptimizer } from './optimizer.ts'
import { addRemember } from './remember.ts'
import { addReplay } from './replay.ts'
import { addRestore } from './restore.ts'
import { addSave } from './save.ts'
import { printable } from './say.ts'
import { addSearch } from './search.ts'
import { addServe } from './serve.ts'
import { addSessions } from './sessions.ts'
import { addSummaries } from './summaries.ts'

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string
}

const program = new Command('threadkeep')
  .description('Keeps the thread of a conversation: what a language model is shown, inside a hard token budget.')
  .version(version)
  .exitOverride()
  .configureOutput({ outputError: () => undefined })
  .addHelpText(
    'after',
    `\nExamples:\n  threadkeep serve\n  threadkeep chat --receipt\n  threadkeep mcp --workspace my-project\n\n${exitCodes}`,
  )

const talking = [addServe, addChat, addMcp, addSave, addRestore]
const looking = [addSessions, addSearch, addFacts, addSummaries, addOptimizer, addReplay]
const keeping = [addRemember, addKnowledge, addForget, addExport, addImport, addDoctor, addAudit, addKeys, addConfig]
for (const add of [...talking, ...looking, ...keeping]) add(program)

// A reader that has seen enough, such as head, is no failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1))

try {
  await program.parseAsync()
} catch (error) {
  const { exit, ...failure } = failureOf(error)
  process.exitCode = exit
  if (failure.message !== '')
    process.stderr.write(
      process.argv.includes('--json')
        ? `${JSON.stringify({ error: failure })}\n`
        : `threadkeep: ${printable(failure.message)}\n`,
    )
}
