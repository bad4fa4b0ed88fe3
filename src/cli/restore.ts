import type { Command } from 'commander'
import { MemoryError } from '../domain/error.ts'
import type { RestoreRequest, RestoreResult } from '../handoff/restore/restore.ts'
import { formatCount } from '../text/formatCount.ts'
import {
  addHandoffOptions,
  type HandoffFlags,
  type OpenHandoff,
  openHandoff,
  toStepProgress,
  withCliErrors,
  withSessionWorkspace,
} from './openHandoff.ts'
import { requireStoreUrl, resolveStore } from './openStore.ts'
import { parseInteger } from './options.ts'
import { option, setHelp } from './terminal/help.ts'
import { printNote, printResult } from './terminal/output.ts'
import { createProgress, type Progress } from './terminal/progress.ts'

type Flags = HandoffFlags & { readonly budget?: string; readonly query?: string; readonly directory?: string }

export function addRestoreCommand(program: Command): void {
  const command = addHandoffOptions(program.command('restore'))
    .description('print the context that continues a saved session, or import sessions from a directory')
    .argument('[session]', 'session (default: the most recent one of the workspace)')
    .addOption(option('--budget <tokens>', 'token budget of the text', { fallback: '8000' }))
    .option('--query <text>', 'subject of the new chat')
    .option('--directory <folder>', 'import the sessions in this folder instead')
    .action(run)
  setHelp(command, {
    details: [
      'Prints the text to standard output, never longer than the budget: paste it into a new chat. It ends with the session id of the new chat. Changes to files are reported on standard error; --json prints everything.',
      '--directory imports sessions written by threadkeep save --directory into the store instead. Newer sessions in the store are kept; damaged sessions are skipped and reported.',
    ],
    examples: [
      'threadkeep restore --workspace my-project --budget 4000',
      "threadkeep restore session_1763236000000_1f0c2b3a --query 'the failing login test'",
      'threadkeep restore --directory backup',
    ],
  })
}

async function run(session: string | undefined, rawFlags: Flags): Promise<void> {
  const flags = withSessionWorkspace(rawFlags, session)
  if (session !== undefined && flags.directory !== undefined)
    throw new MemoryError('bad-option', 'A session and --directory cannot be combined. Choose one.', {
      param: 'directory',
    })
  const budget = flags.budget === undefined ? undefined : parseInteger(flags.budget, 'budget', 1)
  const location = resolveStore(flags, process.env)
  // Importing may create the store; restoring needs an existing one.
  const url = flags.directory === undefined ? await requireStoreUrl(flags, process.env) : location.url
  await using opened = await openHandoff(flags, process.env, { url, key: location.key })
  using progress = createProgress(flags)
  if (flags.directory !== undefined) return await importDirectory(opened, flags.directory, flags, progress)
  const request: RestoreRequest = {
    ...(session === undefined ? {} : { sessionId: session }),
    ...(budget === undefined ? {} : { budget }),
    ...(flags.query === undefined ? {} : { query: flags.query }),
    method: 'command',
  }
  const onProgress = toStepProgress(progress)
  const restored = await withCliErrors(() =>
    opened.handoff.restore(opened.workspace, request, { client: 'cli', progress: onProgress }),
  )
  progress.clear()
  printRestored(restored, flags)
}

function printRestored(restored: RestoreResult, { json, allow }: Flags): void {
  const { context, sessionId, continues, tokens, fileReferences, warnings } = restored
  printResult(json, restored, [context])
  if (json === true) return
  const uninspected =
    fileReferences.length === 0
      ? []
      : [`${formatCount(fileReferences.length, 'file')} not inspected. Allow a folder with --allow.`]
  const changed = fileReferences
    .filter(({ status }) => status !== 'unchanged')
    .map(({ path, status, note }) => `${path}: ${status}${note === undefined ? '' : `, ${note}`}`)
  const lines = [
    `New session ${sessionId} continues ${continues}: ${formatCount(tokens, 'token')}.`,
    ...(allow === undefined ? uninspected : changed),
    ...warnings.map((warning) => `warning: ${warning}`),
  ]
  printNote(...lines)
}

async function importDirectory(
  { handoff }: OpenHandoff,
  directory: string,
  flags: Flags,
  progress: Progress,
): Promise<void> {
  const filter = flags.workspace === undefined ? {} : { workspace: flags.workspace }
  const done = await handoff.import({ directory, progress: toStepProgress(progress), ...filter })
  progress.clear()
  const unchanged = done.unchanged === 0 ? [] : [`${formatCount(done.unchanged, 'session')} unchanged.`]
  printResult(flags.json, done, [
    `Imported ${formatCount(done.messages, 'message')} of ${formatCount(done.sessions, 'session')}.`,
    ...unchanged,
    ...done.skipped.map(({ session, why }) => `skipped ${session}: ${why}`),
  ])
}
