import { hash } from 'node:crypto'
import { type Incoming, parseMessage } from '../../domain/chat.ts'
import { isBlank, type Json, type Millis, type Tokens } from '../../domain/entry.ts'
import { check, MemoryError } from '../../domain/error.ts'
import { begunWith } from '../draftSessions.ts'
import { type Category, type ContextItem, categories } from '../item.ts'
import type { WorkspaceState } from '../records.ts'
import { idIn, isThere, keyOf } from '../sessions.ts'
import type { HandoffParts } from '../settings.ts'
import { itemId } from './rows.ts'
import { chatOf, type Told, toldIn, turnsIn } from './told.ts'

/** An item as a client gives it. */
export type GivenItem = { readonly category: Category; readonly content: string; readonly importance?: number }
/** A file as a client gives it: its path is what counts, the rest is believed only where nobody can look. */
export type GivenFile = { readonly path: string; readonly hash?: string; readonly lastModified?: string }

export type SaveRequest = {
  /** The conversation so far, or its newest part: as text, or as messages. */
  readonly conversationContext?: string
  readonly messages?: readonly Incoming[]
  /** As the client counts it; counted here when left out. */
  readonly tokenCount?: Tokens
  readonly contextItems?: readonly GivenItem[]
  readonly fileReferences?: readonly GivenFile[]
  readonly workspaceState?: WorkspaceState
  readonly title?: string
  /** A session that was saved or begun before: only what is new is written. */
  readonly sessionId?: string
  /** The session that this one goes on from. */
  readonly continues?: string
}

/** A request that may be kept: checked, with times, and with marks in the place of secrets wherever it is not a message. */
export type Accepted = {
  readonly workspace: string
  readonly id: string
  readonly isNew: boolean
  readonly at: Millis
  readonly said: readonly Incoming[]
  readonly tokens: Tokens | undefined
  readonly items: readonly ContextItem[]
  readonly files: readonly GivenFile[]
  readonly state: WorkspaceState | undefined
  readonly title: string | undefined
  readonly continues: string | undefined
}

/** So many items and files a client may give. */
const most = 1_000

/** Checks what a client wants saved. Writes nothing. */
export async function accepted(parts: HandoffParts, workspace: string, request: SaveRequest): Promise<Accepted> {
  const { memory, clock } = parts
  const { tokenCount, contextItems = [], fileReferences = [], workspaceState, title } = request
  const at = clock()
  const sessionId = request.sessionId === undefined ? undefined : idIn(workspace, request.sessionId)
  const { said, records } = await saidIn(parts, workspace, request, at)
  if (said.length === 0 && sessionId === undefined)
    throw new MemoryError(
      'bad-option',
      'There is nothing to save. Give conversationContext or messages, or the sessionId of a session to save again.',
      {
        param: 'conversationContext',
      },
    )
  const tokens = tokenCount === undefined ? undefined : countOf(tokenCount)
  for (const [param, list] of Object.entries({ contextItems, fileReferences }))
    check(param, list.length, list.length <= most, `a list of at most ${most}`)
  const known = sessionId ?? (await begunBefore(parts, workspace, { said, records }, at))
  const id = known ?? parts.name(at)
  const key = keyOf(workspace, id)
  const continues =
    request.continues === undefined
      ? await goneOnFrom(parts, workspace, known === undefined ? records : [])
      : idIn(workspace, request.continues)
  if (continues !== undefined) keyOf(workspace, continues)
  check('continues', continues, continues !== id, 'another session than the one that is saved')
  return {
    workspace,
    id,
    isNew: known === undefined,
    at,
    said,
    tokens,
    items: await Promise.all(
      contextItems.map(async (item) =>
        itemOf(memory.tokenizer, id, { ...item, content: await memory.masked(key, item.content) }),
      ),
    ),
    files: (await memory.masked(key, fileReferences as unknown as Json)) as unknown as readonly GivenFile[],
    state:
      workspaceState === undefined ? undefined : ((await memory.masked(key, workspaceState as Json)) as WorkspaceState),
    title: title === undefined ? undefined : await memory.masked(key, title),
    continues,
  }
}

/** The session that a record tells of, if it is still there. */
const goneOnFrom = async (
  parts: HandoffParts,
  workspace: string,
  [record]: Told['records'],
): Promise<string | undefined> =>
  record !== undefined && (await isThere(parts, workspace, record.from).catch(() => false)) ? record.from : undefined

/** A number of tokens as clients count them. */
export function countOf(tokens: Tokens): Tokens {
  check('tokenCount', tokens, tokens >= 0 && tokens <= Number.MAX_SAFE_INTEGER, 'a number of tokens, 0 or more')
  return Math.round(tokens)
}

async function saidIn(
  parts: HandoffParts,
  workspace: string,
  { conversationContext = '', messages = [] }: SaveRequest,
  at: Millis,
): Promise<Told> {
  if (messages.length === 0) {
    const { turns, records } = await turnsIn(parts, workspace, conversationContext)
    const told = await toldIn(parts, workspace, turns, at)
    return { said: told.said, records: [...records, ...told.records] }
  }
  if (isBlank(conversationContext)) return toldIn(parts, workspace, messages, at)
  throw new MemoryError(
    'bad-option',
    'conversationContext and messages were both given, and only one of them can be saved. Give the conversation once.',
    {
      param: 'conversationContext',
    },
  )
}

/** A session without an id that is known all the same: the chat of a record, or one whose save was never answered. If that cannot be read, it is a new one. */
async function begunBefore(
  parts: HandoffParts,
  workspace: string,
  { said, records }: Told,
  at: Millis,
): Promise<string | undefined> {
  const find = async (): Promise<string | undefined> =>
    (await chatOf(parts, workspace, records)) ??
    begunWith(
      parts,
      workspace,
      said.map((message, place) => parseMessage(message, place, at)),
    )
  return said.length === 0 ? undefined : find().catch(() => undefined)
}

function itemOf(
  tokenizer: HandoffParts['memory']['tokenizer'],
  session: string,
  { category, content, importance = 5 }: GivenItem,
): ContextItem {
  check('contextItems.category', category, categories.includes(category), `one of ${categories.join(', ')}`)
  check('contextItems.importance', importance, importance >= 1 && importance <= 10, 'a number from 1 to 10')
  return {
    id: itemId(session, `given_${hash('sha256', `${category}\n${content}`).slice(0, 16)}`),
    category,
    content,
    importance,
    tokens: tokenizer.count(content),
    marked: false,
    factors: { recency: 0, frequency: 0, specificity: 0, type: 0, marking: 0 },
    sources: [],
  }
}

/** Whether an item was given by a client, and not found in what was said. */
export const isGiven = (session: string, { id }: Pick<ContextItem, 'id'>): boolean =>
  id.startsWith(itemId(session, 'given_'))
