import { type MessageInput, parseMessage } from '../../domain/chat.ts'
import { isBlank, type Json, type Millis, type Tokens } from '../../domain/entry.ts'
import { checkOption, MemoryError } from '../../domain/error.ts'
import { findDraftByMessages } from '../draftSessions.ts'
import { type Category, type ContextItem, itemCategories } from '../item.ts'
import { itemId, shortHash, type WorkspaceState } from '../rows.ts'
import { parseSessionId, sessionExists, sessionKey } from '../sessions.ts'
import type { HandoffDeps } from '../settings.ts'
import { findSessionOfRecord, type IngestedMessages, ingestMessages, ingestText } from './conversation.ts'

/** Context item sent by a client. */
export type ClientItem = { readonly category: Category; readonly content: string; readonly importance?: number }
/** File sent by a client. Hash and time are used only if the file cannot be read. */
export type ClientFile = { readonly path: string; readonly hash?: string; readonly lastModified?: string }

export type SaveRequest = {
  /** Conversation as text: all of it, or its newest part. Mutually exclusive with `messages`. */
  readonly conversationContext?: string
  /** Conversation as messages: all of it, or its newest part. */
  readonly messages?: readonly MessageInput[]
  /** Token count of the client; counted here if omitted. */
  readonly tokenCount?: Tokens
  readonly contextItems?: readonly ClientItem[]
  readonly fileReferences?: readonly ClientFile[]
  readonly workspaceState?: WorkspaceState
  /** Default: the first user message. */
  readonly title?: string
  /** Existing session; only new messages are stored. A new session is created if omitted. */
  readonly sessionId?: string
  /** Session that this one continues. */
  readonly continues?: string
  /**
   * `needed` stores only the lines of the messages that a restore is likely to show, not the full transcript. Default:
   * as in the last save of the session, else `all`.
   */
  readonly keep?: Keep
}

/** Parts of a conversation that a save can keep. */
export const keeps = ['all', 'needed'] as const
export type Keep = (typeof keeps)[number]

/**
 * Validated save request with timestamps. Secrets are masked everywhere except in `messages`, which the memory masks.
 */
export type ParsedSave = {
  readonly workspace: string
  readonly id: string
  readonly isNew: boolean
  readonly at: Millis
  readonly messages: readonly MessageInput[]
  readonly tokens: Tokens | undefined
  readonly items: readonly ContextItem[]
  readonly files: readonly ClientFile[]
  readonly workspaceState: WorkspaceState | undefined
  readonly title: string | undefined
  readonly continues: string | undefined
  readonly keep: Keep | undefined
}

/** Maximum number of items, and of files, per request. */
const maxListLength = 1_000

/** Validates a save request. Writes nothing. Throws `bad-option` or `bad-message`. */
export async function parseSaveRequest(
  deps: HandoffDeps,
  workspace: string,
  request: SaveRequest,
): Promise<ParsedSave> {
  const { memory, clock } = deps
  const { tokenCount, contextItems = [], fileReferences = [], workspaceState, title } = request
  const at = clock()
  const sessionId = request.sessionId === undefined ? undefined : parseSessionId(workspace, request.sessionId)
  const { messages, records } = await ingestConversation(deps, workspace, request, at)
  if (messages.length === 0 && sessionId === undefined)
    throw new MemoryError(
      'bad-option',
      'There is nothing to save. Give conversationContext or messages, or the sessionId of a session to save again.',
      { param: 'conversationContext' },
    )
  checkOption(
    'keep',
    request.keep,
    request.keep === undefined || keeps.includes(request.keep),
    `one of ${keeps.join(', ')}`,
  )
  const tokens = tokenCount === undefined ? undefined : parseTokenCount(tokenCount)
  for (const [param, list] of Object.entries({ contextItems, fileReferences }))
    checkOption(param, list.length, list.length <= maxListLength, `a list of at most ${maxListLength}`)
  const knownId = sessionId ?? (await findKnownSession(deps, workspace, { messages, records }, at))
  const id = knownId ?? deps.generateSessionId(at)
  const key = sessionKey(workspace, id)
  const continues =
    request.continues === undefined
      ? await findRecordSource(deps, workspace, knownId === undefined ? records : [])
      : parseSessionId(workspace, request.continues)
  if (continues !== undefined) sessionKey(workspace, continues)
  checkOption('continues', continues, continues !== id, 'another session than the one that is saved')
  const maskJson = async <T>(value: T): Promise<T> => (await memory.mask(key, value as Json)) as T
  return {
    workspace,
    id,
    isNew: knownId === undefined,
    at,
    messages,
    tokens,
    items: await Promise.all(
      contextItems.map(async (item) =>
        toContextItem(memory.tokenizer, id, { ...item, content: await memory.mask(key, item.content) }),
      ),
    ),
    files: await maskJson(fileReferences),
    workspaceState: workspaceState === undefined ? undefined : await maskJson(workspaceState),
    title: title === undefined ? undefined : await memory.mask(key, title),
    continues,
    keep: request.keep,
  }
}

/** Returns the session that a pasted record was restored from, if it still exists. */
const findRecordSource = async (
  deps: HandoffDeps,
  workspace: string,
  [record]: IngestedMessages['records'],
): Promise<string | undefined> =>
  record !== undefined && (await sessionExists(deps, workspace, record.from).catch(() => false))
    ? record.from
    : undefined

/** Validates and rounds a token count sent by a client. */
export function parseTokenCount(tokens: Tokens): Tokens {
  checkOption('tokenCount', tokens, tokens >= 0 && tokens <= Number.MAX_SAFE_INTEGER, 'a number of tokens, 0 or more')
  return Math.round(tokens)
}

async function ingestConversation(
  deps: HandoffDeps,
  workspace: string,
  { conversationContext = '', messages = [] }: SaveRequest,
  at: Millis,
): Promise<IngestedMessages> {
  if (messages.length === 0) return ingestText(deps, workspace, conversationContext, at)
  if (isBlank(conversationContext)) return ingestMessages(deps, workspace, messages, at)
  throw new MemoryError(
    'bad-option',
    'conversationContext and messages were both given, and only one of them can be saved. Give the conversation once.',
    { param: 'conversationContext' },
  )
}

/**
 * Finds the session of a request without an id: the session a pasted record was created for, or a draft whose save was
 * never acknowledged. A failed lookup means a new session.
 */
async function findKnownSession(
  deps: HandoffDeps,
  workspace: string,
  { messages, records }: IngestedMessages,
  at: Millis,
): Promise<string | undefined> {
  const find = async (): Promise<string | undefined> =>
    (await findSessionOfRecord(deps, workspace, records)) ??
    findDraftByMessages(
      deps,
      workspace,
      messages.map((message, index) => parseMessage(message, index, at)),
    )
  return messages.length === 0 ? undefined : find().catch(() => undefined)
}

function toContextItem(
  tokenizer: HandoffDeps['memory']['tokenizer'],
  session: string,
  { category, content, importance = 5 }: ClientItem,
): ContextItem {
  checkOption(
    'contextItems.category',
    category,
    itemCategories.includes(category),
    `one of ${itemCategories.join(', ')}`,
  )
  checkOption('contextItems.importance', importance, importance >= 1 && importance <= 10, 'a number from 1 to 10')
  return createClientItem(session, category, content, importance, tokenizer.count(content))
}

/** Creates an item that was not extracted from messages: it has no sources and no factors. */
export const createClientItem = (
  session: string,
  category: Category,
  content: string,
  importance: number,
  tokens: Tokens,
): ContextItem => ({
  id: clientItemId(session, category, content),
  category,
  content,
  importance,
  tokens,
  marked: false,
  factors: { recency: 0, frequency: 0, specificity: 0, type: 0, marking: 0 },
  sources: [],
})

export const clientItemId = (session: string, category: string, content: string): string =>
  itemId(session, `given_${shortHash(`${category}\n${content}`)}`)

/** Checks whether an item was sent by a client rather than extracted from messages. */
export const isClientItem = (session: string, { id }: Pick<ContextItem, 'id'>): boolean =>
  id.startsWith(itemId(session, 'given_'))
