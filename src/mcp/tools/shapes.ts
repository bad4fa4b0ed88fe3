import { z } from 'zod'
import { MemoryError } from '../../domain/error.ts'
import { categories } from '../../handoff/item.ts'
import type { Call } from '../tool.ts'

/** What sessions and talk have in common, as schemas. An id may come with its workspace before it. */
export const sessionId = z.string().min(1).max(193).describe('The id of a session')

/** What `workspaceId` in the documented parameters is called here; the server resolves it before a tool runs. */
export const workspaceId = z.string().max(64).optional().describe('Another name of workspace; give one of them')

/** Refuses a workspace that is not the one the call was resolved to: a tool never chooses for itself. */
export function sameWorkspace({ workspace }: Pick<Call, 'workspace'>, named: string | undefined): void {
  if (named === undefined || named === workspace) return
  throw new MemoryError(
    'bad-option',
    `Workspace ${JSON.stringify(named)} was not found. Name it as workspace if it is open to you.`,
    { param: 'workspaceId' },
  )
}

const part = z.looseObject({ type: z.string(), text: z.string().optional() })
const toolCall = z.looseObject({ id: z.string(), function: z.looseObject({ name: z.string(), arguments: z.string() }) })

/** No date is further from the beginning of 1970. */
const longest = 8.64e15

/** A message as OpenAI's chat API has it. */
export const message = z.looseObject({
  role: z.enum(['system', 'developer', 'user', 'assistant', 'tool']),
  content: z
    .union([z.string(), z.null(), z.array(part)])
    .optional()
    .describe('What was said; only a message with tool_calls may go without'),
  name: z.string().optional(),
  tool_calls: z.array(toolCall).optional(),
  tool_call_id: z.string().optional(),
  at: z.number().min(-longest).max(longest).optional().describe('When it was said, in milliseconds'),
})

export const category = z.enum(categories)
export const importance = z.number().min(1).max(10)
export const tokens = z.int().min(0)

export const contextItem = z.object({ id: z.string(), category, content: z.string(), importance, tokens })

/** What a client was set up with; each part may be left out. */
export const workspaceState = z.object({
  activeProject: z.string().optional(),
  enabledMcps: z.array(z.string()).optional(),
  settings: z.json().optional(),
})

const score = z.object({ similarity: z.number(), facts: z.number() })
export const preservation = score.extend({
  budget: tokens,
  at: z.string(),
  categories: z.partialRecord(category, score),
})

export const degraded = z
  .literal('not durable')
  .optional()
  .describe('The store failed: kept in memory and tried again. It is not saved yet.')
export const warnings = z.array(z.string())

export const suggestion = z.object({
  sessionId: z.string(),
  title: z.string(),
  summary: z.string(),
  savedAt: z.string(),
  why: z.enum(['most recent', 'about the same']),
})

export const metadata = z.object({
  sessionId: z.string(),
  workspaceId: z.string(),
  title: z.string(),
  createdAt: z.string(),
  savedAt: z.string(),
  tokenCount: tokens,
  messageCount: z.int(),
  summary: z.string(),
  continuedFrom: z.string().optional(),
  unsaved: z.literal(true).optional().describe('Added to, and not summed up yet'),
  degraded,
})

/** The same without its read-only marks, as schemas type what they take. */
export type Plain<T> = T extends (infer Inner)[] | readonly (infer Inner)[]
  ? Plain<Inner>[]
  : T extends object
    ? { -readonly [Name in keyof T]: Plain<T[Name]> }
    : T
export const plain = <T>(value: T): Plain<T> => value as Plain<T>
