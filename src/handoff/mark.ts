import { MemoryError } from '../domain/error.ts'
import { clip } from '../text/clip.ts'
import type { PendingWrites } from './pendingWrites.ts'
import { markEntity } from './rows.ts'
import { saveSession } from './save/save.ts'
import { readSavedSession, sessionKey, sessionNotFound } from './sessions.ts'
import type { HandoffDeps } from './settings.ts'

/** Selects messages by their ids, by the ids of items extracted from them, or by text they contain as whole words. */
export type MarkRequest = {
  readonly messageIds?: readonly string[]
  readonly itemIds?: readonly string[]
  readonly text?: string
}
export type MarkResult = {
  readonly sessionId: string
  /** Ids of all messages that are marked now. */
  readonly marked: readonly string[]
  /** Number of newly marked messages. */
  readonly added: number
  /** Short quotes of the selected messages. */
  readonly quotes: readonly string[]
}

const maxQuoteChars = 120

/** Marks messages as important and saves the session again, which recalculates its items. */
export async function markImportant(
  deps: HandoffDeps,
  pending: PendingWrites,
  workspace: string,
  session: string,
  { messageIds = [], itemIds = [], text = '' }: MarkRequest,
): Promise<MarkResult> {
  const { memory, graph } = deps
  await pending.retry()
  pending.assertNone(workspace, session)
  const messages = await memory.transcript(sessionKey(workspace, session))
  const before = await readSavedSession(deps, workspace, session)
  if (before === undefined && messages.length === 0) throw sessionNotFound(session)
  const itemSources = (before?.items ?? []).filter(({ id }) => itemIds.includes(id)).flatMap((item) => item.sources)
  const wantedIds = new Set([...messageIds, ...itemSources])
  const selected = messages.filter(({ id, content }) => wantedIds.has(id) || indexOfWholeWord(text, content) >= 0)
  const selectedIds = selected.map(({ id }) => id)
  if (selectedIds.length === 0)
    throw new MemoryError(
      'bad-option',
      'No message of the session matches. Give ids of its messages or items, or whole words that a message contains.',
      { param: 'messageIds' },
    )
  const { written } = await graph.write(workspace, {
    entities: selectedIds.map((message) => markEntity(session, message)),
  })
  await saveSession(deps, pending, workspace, { sessionId: session }, {})
  const quotes = selected.map(({ content }) => quoteLine(content, indexOfWholeWord(text, content)))
  const marked = [...new Set([...(before?.markedMessages ?? []), ...selectedIds])]
  return { sessionId: session, marked, added: written, quotes }
}

/** Quotes the line at `index`, or the start of the message if `index` is negative. */
const quoteLine = (content: string, index: number): string =>
  clip(
    content
      .slice(content.lastIndexOf('\n', Math.max(0, index)) + 1)
      .replaceAll(/\s+/g, ' ')
      .trim(),
    maxQuoteChars,
    '…',
  )

const isWordChar = (char: string): boolean => /[\p{L}\p{N}_]/u.test(char)

/**
 * Returns the index of the first occurrence of `name` that is not part of a longer word, or -1.
 *
 * @example
 * indexOfWholeWord('Decision 13', 'Decision 133, then Decision 13.') // 19
 */
export function indexOfWholeWord(name: string, text: string): number {
  const [startsWithWord, endsWithWord] = [isWordChar(name.charAt(0)), isWordChar(name.charAt(name.length - 1))]
  for (let index = text.indexOf(name); index >= 0 && name !== ''; index = text.indexOf(name, index + 1)) {
    const isInside =
      (startsWithWord && isWordChar(text.charAt(index - 1))) ||
      (endsWithWord && isWordChar(text.charAt(index + name.length)))
    if (!isInside) return index
  }
  return -1
}
