import { z } from 'zod'
import type { Incoming } from '../../domain/chat.ts'
import type { Appended, Reading } from '../../handoff/monitor.ts'
import { idIn, keyOf, notFound } from '../../handoff/sessions.ts'
import { many } from '../../text/many.ts'
import { type Call, type Tool, tool } from '../tool.ts'
import { transcriptUri } from '../uri.ts'
import { attending, changed } from './sessions.ts'
import { degraded, message, plain, sessionId, suggestion, tokens } from './shapes.ts'

const reading = z.object({
  tokens,
  limit: tokens,
  threshold: tokens.describe('From so many tokens on a save is due'),
  remaining: tokens,
  usage: z.number().describe('The part of the limit that is used'),
  saveNow: z.boolean(),
  crossed: z.boolean().describe('Whether the threshold was passed since the last look'),
  exact: z.boolean().describe('Whether all of it was counted, and nothing bounded from above'),
})

const limit = z
  .int()
  .min(1)
  .optional()
  .describe("How many tokens the chat holds at most; the server's setting when left out")

/** The one notification of each crossing. */
function warn(call: Call, { crossed, tokens: used, limit: most, threshold }: Reading, isSaved: boolean): void {
  if (!crossed) return
  const due = isSaved ? 'It was saved; continue in a new chat with restore_session soon.' : 'Call save_session now.'
  call.log('warning', `The chat has ${used} of ${most} tokens, and saving is due from ${threshold} on. ${due}`)
}

function toldOf({ tokens: used, limit: most, saveNow, remaining }: Reading, wasSaved = false): string {
  const due = wasSaved
    ? 'The session is saved, with all that was added since; continue in a new chat with restore_session.'
    : 'It is time to save: call save_session now.'
  return `${used} of ${most} tokens. ${saveNow ? due : `${remaining} are left; no need to save yet.`}`
}

const appendMessages = tool({
  name: 'append_messages',
  title: 'Add to a session',
  description:
    'Stores messages at the end of a session as the chat goes on; without a sessionId a new session begins. Once the session comes near the token limit it is saved by itself. A new session is told of an earlier one that it may be going on from.',
  input: z.object({
    sessionId: sessionId.optional().describe('A session that was begun before; a new one begins when left out'),
    messages: z.array(message).min(1).max(10_000).describe('What was said since the last call, in order'),
    operationId: z.string().min(1).max(200).optional().describe('The same once more is stored once'),
    limit,
  }),
  output: z.object({
    sessionId: z.string(),
    messageIds: z.array(z.string()),
    reading,
    saved: z.object({ messages: z.int(), added: z.int(), items: z.int(), files: z.int(), degraded }).optional(),
    suggestion: suggestion.optional(),
    degraded,
  }),
  annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false },
  run: async ({ sessionId: id, messages, operationId, limit: most }, call) => {
    const request = { messages: messages as readonly Incoming[], ...given({ sessionId: id, operationId, limit: most }) }
    const {
      saved,
      wasSaved = false,
      ...appended
    } = await call.desk.handoff.append(call.workspace, request, attending(call))
    call.desk.changed(call.workspace, transcriptUri(call.workspace, appended.sessionId))
    if (saved !== undefined) changed(call, appended.sessionId)
    warn(call, appended.reading, saved !== undefined)
    const offer =
      appended.suggestion === undefined
        ? ''
        : ` It may be going on from ${appended.suggestion.sessionId} (${appended.suggestion.title}): restore_session gets it.`
    const text = `${storedText(appended)} ${saved === undefined ? toldOf(appended.reading, wasSaved) : savedText(saved.degraded)}${offer}`
    const brief = saved && {
      messages: saved.messages,
      added: saved.added,
      items: saved.items,
      files: saved.files,
      ...given({ degraded: saved.degraded }),
    }
    return { text, structured: plain({ ...appended, ...given({ saved: brief }) }) }
  },
})

const storedText = ({ sessionId: id, messageIds, degraded: isDegraded }: Appended): string =>
  isDegraded === undefined
    ? `Stored ${many(messageIds.length, 'message')} in ${id}.`
    : `NOT stored yet: the store fails. The messages for ${id} are kept in memory and written when the store works again.`

const savedText = (isDegraded: string | undefined): string =>
  isDegraded === undefined
    ? 'The session came near the limit and was saved; continue in a new chat with restore_session.'
    : 'The session came near the limit and could NOT be saved yet: the store fails.'

const getContext = tool({
  name: 'get_context',
  title: 'Get the context of a session',
  description:
    'Returns what a model should be shown of a session now, inside a token budget: the newest turns whole, and of the rest what matters most for the question.',
  input: z.object({
    sessionId,
    budget: z.int().min(1).optional().describe('How many tokens the text may have'),
    query: z
      .string()
      .max(100_000)
      .optional()
      .describe('What is being asked; the newest message of the user when left out'),
  }),
  output: z.object({
    text: z.string(),
    tokens,
    budget: tokens,
    history: tokens.describe('What all of the session would take'),
    degraded: z.array(z.object({ step: z.string(), why: z.string() })),
  }),
  annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  run: async ({ sessionId: asked, budget, query }, { desk, workspace }) => {
    const id = idIn(workspace, asked)
    const key = keyOf(workspace, id)
    if ((await desk.memory.transcript(key, { limit: 1 })).length === 0) throw notFound(id)
    const { text, ledger } = await desk.memory.context(key, given({ budget, query }))
    const { spent, history, degraded: faults } = ledger
    return {
      text,
      structured: {
        text,
        tokens: spent,
        budget: ledger.budget,
        history,
        degraded: faults.map(({ step, why }) => ({ step, why })),
      },
    }
  },
})

const checkTokens = tool({
  name: 'check_tokens',
  title: 'Check how full the chat is',
  description:
    'Counts the tokens of a chat and says whether it is time to save it: from 75 % of the limit on, less a safety margin of 100 tokens.',
  input: z.object({
    sessionId: sessionId.optional().describe('Counts a stored session'),
    messages: z.array(message).optional().describe('Counts messages'),
    text: z.string().optional().describe('Counts a text'),
    tokenCount: z.number().min(0).optional().describe('What the client has counted itself'),
    limit,
  }),
  output: reading,
  annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: false, openWorldHint: false },
  run: async ({ sessionId: id, messages, text, tokenCount, limit: most }, call) => {
    const asked = given({
      sessionId: id,
      messages: messages as readonly Incoming[] | undefined,
      text,
      tokenCount,
      limit: most,
    })
    const found = await call.desk.handoff.check(call.workspace, { ...asked, client: call.client })
    warn(call, found, false)
    return { text: toldOf(found), structured: { ...found } }
  },
})

const markImportant = tool({
  name: 'mark_important',
  title: 'Mark as important',
  description:
    'Marks messages of a session as important, by their ids, by the ids of items, or by words they hold: what they say comes first when the session is restored, as far as the budget goes.',
  input: z.object({
    sessionId,
    messageIds: z
      .array(z.string())
      .max(1_000)
      .optional()
      .describe('Ids of messages, as the transcript and append_messages give them'),
    itemIds: z
      .array(z.string())
      .max(1_000)
      .optional()
      .describe('Ids of context items: the messages they were found in are marked'),
    text: z
      .string()
      .min(1)
      .max(10_000)
      .optional()
      .describe('Whole words, to the letter: every message that holds them is marked'),
  }),
  output: z.object({ sessionId: z.string(), marked: z.array(z.string()), added: z.int(), quotes: z.array(z.string()) }),
  annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  run: async ({ sessionId: id, messageIds, itemIds, text }, call) => {
    const marked = await call.desk.handoff.mark(call.workspace, id, given({ messageIds, itemIds, text }))
    changed(call, id)
    const known = marked.added === 0 ? ' already' : ''
    const quotes = marked.quotes.map((quote) => `"${quote}"`).join(', ')
    return {
      text: `Marked${known}: ${quotes}. Marked in all: ${many(marked.marked.length, 'message')}.`,
      structured: plain(marked),
    }
  },
})

/** Only what somebody has given. */
function given<T extends object>(fields: T): { [Name in keyof T]?: Exclude<T[Name], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [Name in keyof T]?: Exclude<T[Name], undefined>
  }
}

/** Talking on with a memory: adding to it, being told what matters now, and when to save. */
export const talkTools: readonly Tool[] = [appendMessages, getContext, checkTokens, markImportant]
