import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import type { Command } from 'commander'
import { MemoryError } from '../domain/error.ts'
import type { Keep, SaveRequest } from '../handoff/save/request.ts'
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
import { resolveStore } from './openStore.ts'
import { option, setHelp } from './terminal/help.ts'
import { printResult } from './terminal/output.ts'
import { createProgress, type Progress } from './terminal/progress.ts'

type Flags = HandoffFlags & {
  readonly session?: string
  readonly continues?: string
  readonly title?: string
  readonly keep?: string
  readonly directory?: string
  readonly compress: boolean
  readonly force?: boolean
}

export function addSaveCommand(program: Command): void {
  const command = addHandoffOptions(program.command('save'))
    .description('save a conversation to continue it elsewhere, or write saved sessions to a directory')
    .argument('[file]', 'transcript (default: standard input)')
    .option('--session <id>', 'session to save again, or to write')
    .option('--continues <id>', 'session that this one continues')
    .option('--title <text>', 'title of the session')
    .addOption(
      option('--keep <part>', 'part of the transcript to store: all or needed', { fallback: 'as before, else all' }),
    )
    .option('--directory <folder>', 'write saved sessions to this folder instead')
    .option('--no-compress', 'write plain JSON')
    .addOption(option('--force', 'with --directory, replace sessions that the folder has already'))
    .action(run)
  setHelp(command, {
    details: [
      'A transcript is text with a speaker at the start of lines (User: … Assistant: …), a JSON array of messages, or JSON Lines of messages. Without a file, it is read from standard input. Saving the same session again stores only new messages; text printed by threadkeep restore is left out.',
      '--keep needed stores only the lines that restoring is likely to need, with the summary, the items and the files, and not the full transcript. A session keeps this choice when it is saved again.',
      '--directory writes the sessions of the workspace as folders instead: sessions/WORKSPACE/SESSION with metadata, entities, relationships and transcript, compressed with zstd, and the files they share beside them. Import them elsewhere with threadkeep restore --directory.',
    ],
    examples: [
      'threadkeep save chat.txt --workspace my-project',
      'threadkeep save chat.jsonl --session session_1763236000000_1f0c2b3a',
      'threadkeep save --directory backup',
      'threadkeep save --directory backup --no-compress',
    ],
  })
}

type Transcript = Pick<SaveRequest, 'conversationContext' | 'messages'>

async function run(file: string | undefined, rawFlags: Flags): Promise<void> {
  const flags = withSessionWorkspace(rawFlags, rawFlags.session)
  const { directory } = flags
  if (file !== undefined && directory !== undefined)
    throw new MemoryError('bad-option', 'A file and --directory cannot be combined. Choose one.', {
      param: 'directory',
    })
  const location = resolveStore(flags, process.env)
  if (location.url === 'ram:')
    throw new MemoryError('bad-option', 'store is "ram:", which is lost on exit. Use sqlite:PATH.', { param: 'store' })
  const transcript = directory === undefined ? await readTranscript(file) : {}
  await using opened = await openHandoff(flags, process.env, location)
  using progress = createProgress(flags)
  await withCliErrors(() =>
    directory === undefined
      ? saveTranscript(opened, transcript, flags, progress)
      : writeDirectory(opened, directory, flags, progress),
  )
}

async function saveTranscript(
  { handoff, workspace }: OpenHandoff,
  transcript: Transcript,
  flags: Flags,
  progress: Progress,
): Promise<void> {
  const { session, continues, title, keep } = flags
  const request = {
    ...transcript,
    ...(session === undefined ? {} : { sessionId: session }),
    ...(continues === undefined ? {} : { continues }),
    ...(title === undefined ? {} : { title }),
    ...(keep === undefined ? {} : { keep: keep as Keep }),
  }
  const saved = await handoff.save(workspace, request, { client: 'cli', progress: toStepProgress(progress) })
  // Pending writes are held in RAM and lost when this process ends.
  if (saved.degraded !== undefined && ((await handoff.retry()) > 0 || handoff.getPendingWrites().length > 0))
    throw new MemoryError(
      'not-durable',
      `The store fails; nothing was saved. ${handoff.getPendingWrites()[0]?.reason ?? ''}`.trim(),
    )
  progress.clear()
  const { formatLeftOut } = await import('../handoff/save/keepNeeded.ts')
  printResult(flags.json, saved, [
    `Saved ${workspace}:${saved.sessionId}: ${formatCount(saved.messages, 'message')} (${saved.added} new), ${formatCount(saved.items, 'item')}, ${formatCount(saved.files, 'file')}.`,
    ...(saved.leftOut === undefined ? [] : [formatLeftOut(saved.leftOut)]),
    ...saved.warnings.map((warning) => `warning: ${warning}`),
  ])
}

async function writeDirectory(
  { handoff, workspace }: OpenHandoff,
  directory: string,
  flags: Flags,
  progress: Progress,
): Promise<void> {
  checkDirectory(directory, workspace, flags)
  const filter = flags.session === undefined ? {} : { sessionId: flags.session }
  const done = await handoff.export(workspace, {
    directory,
    compress: flags.compress,
    progress: toStepProgress(progress),
    ...filter,
  })
  progress.clear()
  printResult(flags.json, done, [
    `Exported ${formatCount(done.messages, 'message')} of ${formatCount(done.sessions, 'session')} to ${directory}.`,
  ])
}

/** Throws `bad-option` if the folder has sessions that would be replaced. */
function checkDirectory(directory: string, workspace: string, { session, force }: Flags): void {
  const id = session?.split(':').at(-1)
  const existing = join(directory, 'sessions', workspace, ...(id === undefined ? [] : [id]))
  if (force === true || !existsSync(existing)) return
  throw new MemoryError(
    'bad-option',
    `${existing} exists. Choose another folder with --directory, or replace what it has with --force.`,
    { param: 'directory' },
  )
}

/** Reads the conversation: messages from a .json or .jsonl file, text from any other source. */
async function readTranscript(file: string | undefined): Promise<Transcript> {
  if (file === undefined) return { conversationContext: decodeText(await buffer(process.stdin), 'Standard input') }
  const bytes = await readFile(file).catch((cause: unknown) => {
    throw new MemoryError('bad-option', `Cannot read ${file}. Name the transcript to save.`, { param: 'file', cause })
  })
  const text = decodeText(bytes, file)
  if (!/\.jsonl?$/i.test(file)) return { conversationContext: text }
  const { parseJsonMessages } = await import('../handoff/save/conversation.ts')
  const messages = parseJsonMessages(text)
  if (messages !== undefined) return { messages }
  const expected =
    'an array such as [{ "role": "user", "content": "Hello" }], { "messages": […] }, or one message per line'
  throw new MemoryError(
    'bad-option',
    `${file} contains no JSON messages. It must be ${expected}. For plain text, use another file extension.`,
    { param: 'file' },
  )
}

function decodeText(bytes: Uint8Array, source: string): string {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    if (!text.includes('\0')) return text
  } catch {
    // Reported below.
  }
  throw new MemoryError('bad-option', `${source} is not UTF-8 text. Name a transcript in text, JSON or JSON Lines.`, {
    param: 'file',
  })
}
