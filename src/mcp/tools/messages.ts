import { z } from 'zod'
import type { MessageInput } from '../../domain/chat.ts'
import type { SessionAppendResult, TokenUsage } from '../../handoff/monitor.ts'
import { parseSessionId, sessionKey, sessionNotFound } from '../../handoff/sessions.ts'
import { formatCount } from '../../text/formatCount.ts'
import { transcriptUri } from '../resources/changes.ts'
import {
  additive,
  degradedSchema,
  message,
  omitUndefined,
  readOnly,
  sessionId,
  suggestion,
  tokens,
  toMutable,
} from './schemas.ts'
import { notifySessionChanged, operationContext } from './sessions.ts'
import { defineTool, type Tool, type ToolInvocation } from './tool.ts'

const tokenReading = z.object({
  tokens,
  limit: tokens,
  threshold: tokens.describe('The number of tokens from which a save is due'),
  remaining: tokens,
  usage: z.number().describe('The used fraction of the limit'),
  saveNow: z.boolean(),
  crossed: z.boolean().describe('True if the threshold was crossed since the last check'),
  exact: z.boolean().describe('True if all tokens were counted and none estimated as an upper bound'),
})

const limit = z.int().min(1).optional().describe("The token limit of the chat; the server's setting if omitted")

/** Logs one warning each time the threshold is crossed. */
function warnIfCrossed(
  invocation: ToolInvocation,
  { crossed, tokens: used, limit: maxTokens, threshold }: TokenUsage,
  isSaved: boolean,
): void {
  if (!crossed) return
  const advice = isSaved ? 'It was saved; continue in a new chat with restore_session soon.' : 'Call save_session now.'
  invocation.log(
    'warning',
    `The chat has ${used} of ${maxTokens} tokens; a save is due from ${threshold} tokens. ${advice}`,
  )
}

function formatReading({ tokens: used, limit: maxTokens, saveNow, remaining }: TokenUsage, wasSaved = false): string {
  const advice = wasSaved
    ? 'The session is saved, including later messages; continue in a new chat with restore_session.'
    : 'A save is due: call save_session now.'
  return `${used} of ${maxTokens} tokens. ${saveNow ? advice : `${remaining} are left; no need to save yet.`}`
}

const appendMessages = defineTool({
  name: 'append_messages',
  title: 'Add to a session',
  description:
    'Appends messages to a session as the chat continues; without a sessionId a new session is created. A session that approaches the token limit is saved automatically. The result for a new session may suggest an earlier one that it continues.',
  input: z.object({
    sessionId: sessionId.optional().describe('An existing session; a new one is created if omitted'),
    messages: z.array(message).min(1).max(10_000).describe('The messages since the last call, in order'),
    operationId: z
      .string()
      .min(1)
      .max(200)
      .optional()
      .describe('Idempotency key: repeated calls store the messages once'),
    limit,
  }),
  output: z.object({
    sessionId: z.string(),
    messageIds: z.array(z.string()),
    reading: tokenReading,
    saved: z
      .object({ messages: z.int(), added: z.int(), items: z.int(), files: z.int(), degraded: degradedSchema })
      .optional(),
    suggestion: suggestion.optional(),
    degraded: degradedSchema,
  }),
  annotations: additive,
  run: async ({ sessionId: id, messages, operationId, limit: maxTokens }, invocation) => {
    const { context, workspace } = invocation
    const request = {
      messages: messages as readonly MessageInput[],
      ...omitUndefined({ sessionId: id, operationId, limit: maxTokens }),
    }
    const {
      saved,
      wasSaved = false,
      ...appended
    } = await context.handoff.append(workspace, request, operationContext(invocation))
    context.notifyChanged(workspace, transcriptUri(workspace, appended.sessionId))
    if (saved !== undefined) notifySessionChanged(invocation, appended.sessionId)
    warnIfCrossed(invocation, appended.reading, saved !== undefined)
    const status = saved === undefined ? formatReading(appended.reading, wasSaved) : formatAutomaticSave(saved.degraded)
    const savedCounts = saved && {
      messages: saved.messages,
      added: saved.added,
      items: saved.items,
      files: saved.files,
      ...omitUndefined({ degraded: saved.degraded }),
    }
    return {
      text: `${formatAppended(appended)} ${status}${formatSuggestion(appended.suggestion)}`,
      structured: toMutable({ ...appended, ...omitUndefined({ saved: savedCounts }) }),
    }
  },
})

const formatAppended = ({ sessionId: id, messageIds, degraded: notStored }: SessionAppendResult): string =>
  notStored === undefined
    ? `Stored ${formatCount(messageIds.length, 'message')} in ${id}.`
    : `NOT stored yet: the store fails. The messages for ${id} are in memory and will be written when the store works again.`

const formatAutomaticSave = (notStored: string | undefined): string =>
  notStored === undefined
    ? 'The session approached the limit and was saved; continue in a new chat with restore_session.'
    : 'The session approached the limit and could NOT be saved yet: the store fails.'

const formatSuggestion = (suggested: SessionAppendResult['suggestion']): string =>
  suggested === undefined
    ? ''
    : ` It may continue ${suggested.sessionId} (${suggested.title}): call restore_session to get it.`

const getContext = defineTool({
  name: 'get_context',
  title: 'Get the context of a session',
  description:
    'Returns what a model should see of a session now, within a token budget: the latest turns in full, and the rest ranked by relevance to the query.',
  input: z.object({
    sessionId,
    budget: z.int().min(1).optional().describe('The maximum number of tokens of the text'),
    query: z.string().max(100_000).optional().describe('The current question; the latest user message if omitted'),
    person: z.string().min(1).max(128).optional().describe('The person who speaks, for profiles that read persons'),
  }),
  output: z.object({
    text: z.string(),
    tokens,
    budget: tokens,
    history: tokens.describe('The number of tokens of the whole session'),
    degraded: z.array(z.object({ step: z.string(), why: z.string() })),
  }),
  annotations: readOnly,
  run: async ({ sessionId: requested, budget, query, person }, { context, workspace }) => {
    const id = parseSessionId(workspace, requested)
    const key = sessionKey(workspace, id)
    if ((await context.memory.transcript(key, { limit: 1 })).length === 0) throw sessionNotFound(id)
    const { text, ledger } = await context.memory.context(key, omitUndefined({ budget, query, person }))
    return {
      text,
      structured: {
        text,
        tokens: ledger.spent,
        budget: ledger.budget,
        history: ledger.history,
        degraded: ledger.degraded.map(({ step, why }) => ({ step, why })),
      },
    }
  },
})

const checkTokens = defineTool({
  name: 'check_tokens',
  title: 'Check how full the chat is',
  description:
    'Counts the tokens of a chat and says whether a save is due: from 75 % of the limit, minus a safety margin of 100 tokens.',
  input: z.object({
    sessionId: sessionId.optional().describe('Counts a stored session'),
    messages: z.array(message).optional().describe('Counts messages'),
    text: z.string().optional().describe('Counts a text'),
    tokenCount: z.number().min(0).optional().describe("The client's own count"),
    limit,
  }),
  output: tokenReading,
  annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: false, openWorldHint: false },
  run: async ({ sessionId: id, messages, text, tokenCount, limit: maxTokens }, invocation) => {
    const request = omitUndefined({
      sessionId: id,
      messages: messages as readonly MessageInput[] | undefined,
      text,
      tokenCount,
      limit: maxTokens,
    })
    const { context, workspace, client } = invocation
    const found = await context.handoff.check(workspace, { ...request, client })
    warnIfCrossed(invocation, found, false)
    return { text: formatReading(found), structured: { ...found } }
  },
})

const markImportant = defineTool({
  name: 'mark_important',
  title: 'Mark as important',
  description:
    'Marks messages of a session as important, by message ids, item ids or contained words: they come first when the session is restored, within the budget.',
  input: z.object({
    sessionId,
    messageIds: z
      .array(z.string())
      .max(1_000)
      .optional()
      .describe('Ids of messages, from the transcript or append_messages'),
    itemIds: z
      .array(z.string())
      .max(1_000)
      .optional()
      .describe('Ids of context items: marks the messages they were extracted from'),
    text: z
      .string()
      .min(1)
      .max(10_000)
      .optional()
      .describe('Exact words: marks every message that contains them as whole words'),
  }),
  output: z.object({ sessionId: z.string(), marked: z.array(z.string()), added: z.int(), quotes: z.array(z.string()) }),
  annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  run: async ({ sessionId: id, messageIds, itemIds, text }, invocation) => {
    const { context, workspace } = invocation
    const marks = await context.handoff.mark(workspace, id, omitUndefined({ messageIds, itemIds, text }))
    notifySessionChanged(invocation, id)
    const prefix = marks.added === 0 ? 'Already marked' : 'Marked'
    const quotes = marks.quotes.map((quote) => `"${quote}"`).join(', ')
    return {
      text: `${prefix}: ${quotes}. Marked in total: ${formatCount(marks.marked.length, 'message')}.`,
      structured: toMutable(marks),
    }
  },
})

/** Tools for a running chat: append messages, read the context, check the size, mark messages. */
export const messageTools: readonly Tool[] = [appendMessages, getContext, checkTokens, markImportant]
