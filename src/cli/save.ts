import { readFile } from 'node:fs/promises'
import { buffer } from 'node:stream/consumers'
import type { Command } from 'commander'
import { MemoryError } from '../domain/error.ts'
import { messagesIn } from '../handoff/save/conversation.ts'
import type { SaveRequest } from '../handoff/save/request.ts'
import { exitCodes } from './failure.ts'
import { type HandoffFlags, inCommands, inWorkspaceOf, openHandoff, withHandoff } from './handoff.ts'
import { many, progressLine, say } from './say.ts'
import { storeSettings } from './store.ts'

type Flags = HandoffFlags & {
  readonly session?: string
  readonly continues?: string
  readonly title?: string
  readonly directory?: string
  readonly compress: boolean
}

const help = `
A transcript is text with speakers at the beginning of lines (User: … Assistant: …), a JSON list of messages, or JSON Lines of
them; without a file it is read from the standard input. Saved again as the same session, only what is new is stored; what
threadkeep restore had printed for the chat is left out of it.

With --directory the sessions of the workspace are written as folders instead: sessions/WORKSPACE/SESSION with metadata,
entities, relationships and transcript, compressed with zstd, and what they share beside them. threadkeep restore
--directory takes them in elsewhere.

Examples:
  threadkeep save chat.txt --workspace my-project
  threadkeep save chat.jsonl --session session_1763236000000_1f0c2b3a
  threadkeep save --directory backup
  threadkeep save --directory backup --no-compress --session session_1763236000000_1f0c2b3a

${exitCodes}`

/** The command that saves a transcript as a session, or writes saved sessions as a directory. */
export function addSave(program: Command): void {
  withHandoff(program.command('save'))
    .description('save a conversation so that it can go on elsewhere, or write saved ones to a directory')
    .argument('[file]', 'the transcript; the standard input when left out')
    .option('--session <id>', 'the session to save again, or to write')
    .option('--continues <id>', 'the session that it goes on from')
    .option('--title <text>', 'what it is called')
    .option('--directory <folder>', 'write saved sessions there instead of saving one')
    .option('--no-compress', 'write them as plain JSON')
    .addHelpText('after', help)
    .action(run)
}

async function run(file: string | undefined, given: Flags): Promise<void> {
  const flags = inWorkspaceOf(given, given.session)
  if (file !== undefined && flags.directory !== undefined)
    throw new MemoryError('bad-option', 'A file to save and --directory do not go together; choose one.', {
      param: 'directory',
    })
  const { url, key } = storeSettings(flags, process.env)
  if (url === 'ram:')
    throw new MemoryError('bad-option', 'store is "ram:"; what is saved there is lost at once. Choose sqlite:PATH.', {
      param: 'store',
    })
  const said = flags.directory === undefined ? await transcript(file) : {}
  await using opened = await openHandoff(flags, process.env, { url, key })
  const line = progressLine()
  const progress = (done: number, total: number, told: string): void => line.tell(`${done} of ${total}: ${told}`)
  try {
    const { directory } = flags
    await inCommands(() =>
      directory === undefined
        ? save(opened, said, flags, progress, line.end)
        : write(opened, directory, flags, progress, line.end),
    )
  } finally {
    line.end()
  }
}

type Opened = Awaited<ReturnType<typeof openHandoff>>
type Tell = (done: number, total: number, told: string) => void

async function save(
  { handoff, workspace }: Opened,
  said: Conversation,
  flags: Flags,
  progress: Tell,
  end: () => void,
): Promise<void> {
  const { session, continues, title } = flags
  const request = {
    ...said,
    ...(session === undefined ? {} : { sessionId: session }),
    ...(continues === undefined ? {} : { continues }),
    ...(title === undefined ? {} : { title }),
  }
  const saved = await handoff.save(workspace, request, { client: 'cli', progress })
  // This process ends now, and what it keeps in memory with it.
  if (saved.degraded !== undefined && ((await handoff.retry()) > 0 || handoff.pending().length > 0))
    throw new MemoryError(
      'not-durable',
      `The store fails, and nothing is saved. ${handoff.pending()[0]?.why ?? ''}`.trim(),
    )
  end()
  say(flags.json, saved, [
    `${workspace}:${saved.sessionId} is saved: ${many(saved.messages, 'message')} (${saved.added} new), ${many(saved.items, 'item')}, ${many(saved.files, 'file')}.`,
    ...saved.warnings.map((warning) => `warning: ${warning}`),
  ])
}

async function write(
  { handoff, workspace }: Opened,
  directory: string,
  flags: Flags,
  progress: Tell,
  end: () => void,
): Promise<void> {
  const one = flags.session === undefined ? {} : { sessionId: flags.session }
  const done = await handoff.export(workspace, { directory, compress: flags.compress, progress, ...one })
  end()
  say(flags.json, done, [
    `${many(done.messages, 'message')} of ${many(done.sessions, 'session')} ${done.messages === 1 ? 'is' : 'are'} in ${directory}.`,
  ])
}

type Conversation = Pick<SaveRequest, 'conversationContext' | 'messages'>

/** What is to be saved: as messages from a file that says it has them, else as text. */
async function transcript(file: string | undefined): Promise<Conversation> {
  if (file === undefined) return { conversationContext: textIn(await buffer(process.stdin), 'The standard input') }
  const bytes = await readFile(file).catch((cause: unknown) => {
    throw new MemoryError('bad-option', `${file} cannot be read. Name the transcript to save.`, {
      param: 'file',
      cause,
    })
  })
  const said = textIn(bytes, file)
  if (!/\.jsonl?$/i.test(file)) return { conversationContext: said }
  const messages = messagesIn(said)
  if (messages !== undefined) return { messages }
  const right = 'a list such as [{ "role": "user", "content": "Hello" }], { "messages": […] }, or one message a line'
  throw new MemoryError(
    'bad-option',
    `${file} holds no messages as JSON. It must be ${right}; text belongs into a file of another name.`,
    { param: 'file' },
  )
}

function textIn(bytes: Uint8Array, name: string): string {
  try {
    const said = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    if (!said.includes('\0')) return said
  } catch {
    // told below
  }
  throw new MemoryError('bad-option', `${name} is no text in UTF-8. Name a transcript as text, JSON or JSON Lines.`, {
    param: 'file',
  })
}
