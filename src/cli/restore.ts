import type { Command } from 'commander'
import { MemoryError } from '../domain/error.ts'
import type { Restored } from '../handoff/restore/restore.ts'
import { exitCodes } from './failure.ts'
import { type HandoffFlags, inCommands, inWorkspaceOf, type Opened, openHandoff, withHandoff } from './handoff.ts'
import { many, printable, progressLine, say } from './say.ts'
import { wholeNumber } from './settings.ts'
import { existingFile, storeSettings } from './store.ts'

type Flags = HandoffFlags & { readonly budget?: string; readonly query?: string; readonly directory?: string }

const help = `
The text is written to the standard output and never has more tokens than the budget: paste it into a new chat. It ends
with the id of the session that the new chat is; what has become of files is told on the standard error; --json gives everything.

With --directory, sessions that threadkeep save --directory has written are taken into the store instead; what is newer
here stays, and a session that is damaged is left out and named.

Examples:
  threadkeep restore --workspace my-project --budget 4000
  threadkeep restore session_1763236000000_1f0c2b3a --query 'the failing login test' | pbcopy
  threadkeep restore --directory backup

${exitCodes}`

/** The command that prints what a new chat begins with, or takes in a directory of sessions. */
export function addRestore(program: Command): void {
  withHandoff(program.command('restore'))
    .description('print what a new chat needs to go on with a saved one, or take in sessions from a directory')
    .argument('[session]', 'the session; the most recent one of the workspace when left out')
    .option('--budget <tokens>', 'how many tokens the text may have (8000)')
    .option('--query <text>', 'what the new chat is about')
    .option('--directory <folder>', 'take in the sessions there instead')
    .addHelpText('after', help)
    .action(run)
}

async function run(session: string | undefined, given: Flags): Promise<void> {
  const flags = inWorkspaceOf(given, session)
  if (session !== undefined && flags.directory !== undefined)
    throw new MemoryError('bad-option', 'A session to restore and --directory do not go together; choose one.', {
      param: 'directory',
    })
  const budget = flags.budget === undefined ? undefined : wholeNumber(flags.budget, 'budget', 1)
  const { url, key } = storeSettings(flags, process.env)
  // Sessions can be taken into a new file; restored from only where there are some.
  const place = flags.directory === undefined ? `sqlite:${await existingFile(flags, process.env)}` : url
  await using opened = await openHandoff(flags, process.env, { url: place, key })
  const line = progressLine()
  const progress = (done: number, total: number, told: string): void => line.tell(`${done} of ${total}: ${told}`)
  try {
    if (flags.directory !== undefined) return await take(opened, flags.directory, flags, progress, line.end)
    const request = {
      ...(session === undefined ? {} : { sessionId: session }),
      ...(budget === undefined ? {} : { budget }),
      ...(flags.query === undefined ? {} : { query: flags.query }),
      means: 'command' as const,
    }
    const restored = await inCommands(() =>
      opened.handoff.restore(opened.workspace, request, { client: 'cli', progress }),
    )
    line.end()
    tell(restored, flags)
  } finally {
    line.end()
  }
}

function tell(restored: Restored, { json, allow }: Flags): void {
  const { context, sessionId, continues, tokens, fileReferences, warnings } = restored
  say(json, restored, [context])
  if (json === true) return
  const unseen =
    fileReferences.length === 0
      ? []
      : [`${many(fileReferences.length, 'file was', 'files were')} not looked at: --allow opens a folder to that.`]
  const seen = fileReferences
    .filter(({ status }) => status !== 'unchanged')
    .map(({ path, status, note }) => `${path} is ${status}${note === undefined ? '' : `: ${note}`}`)
  const lines = [
    `The new chat is session ${sessionId}, which goes on from ${continues}; ${many(tokens, 'token')}.`,
    ...(allow === undefined ? unseen : seen),
    ...warnings.map((one) => `warning: ${one}`),
  ]
  process.stderr.write(lines.map((one) => `${printable(one)}\n`).join(''))
}

async function take(
  { handoff }: Opened,
  directory: string,
  flags: Flags,
  progress: (done: number, total: number, told: string) => void,
  end: () => void,
): Promise<void> {
  const only = flags.workspace === undefined ? {} : { workspace: flags.workspace }
  const done = await handoff.import({ directory, progress, ...only })
  end()
  const unchanged =
    done.unchanged === 0 ? [] : [`${many(done.unchanged, 'session was', 'sessions were')} there already.`]
  say(flags.json, done, [
    `${many(done.messages, 'message')} of ${many(done.sessions, 'session')} ${done.messages === 1 ? 'was' : 'were'} taken in.`,
    ...unchanged,
    ...done.skipped.map(({ session, why }) => `left out: ${session}: ${why}`),
  ])
}
