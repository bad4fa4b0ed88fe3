import { z } from 'zod'
import { describeUnknownName } from '../../domain/checkOptions.ts'
import { MemoryError } from '../../domain/error.ts'
import { itemCategories } from '../../handoff/item.ts'
import type { Annotations, ToolInvocation } from './tool.ts'

/** Object of a client in which unknown fields are errors that name the nearest known one. */
export const strictObject = <T extends z.ZodRawShape>(shape: T): z.ZodObject<T, z.core.$strict> =>
  z.strictObject(shape, {
    error: (issue) =>
      issue.code === 'unrecognized_keys'
        ? `Unknown argument ${describeUnknownName(issue.keys?.[0] ?? '', Object.keys(shape))}`
        : undefined,
  })

export const readOnly: Annotations = {
  readOnlyHint: true,
  destructiveHint: false,
  idempotentHint: true,
  openWorldHint: false,
}
/** Adds data; calling again adds more. */
export const additive: Annotations = {
  readOnlyHint: false,
  destructiveHint: false,
  idempotentHint: false,
  openWorldHint: false,
}
/** Deletes or replaces data; calling again changes nothing more. */
export const destructive: Annotations = {
  readOnlyHint: false,
  destructiveHint: true,
  idempotentHint: true,
  openWorldHint: false,
}

/** 193 characters: an id may be prefixed with its workspace (64 + 1 + 128). */
export const sessionId = z.string().min(1).max(193).describe('The id of a session')

export const workspaceId = z.string().max(64).optional().describe('Alias of workspace; give only one of them')

/** Throws if `workspaceId` is not the workspace the server has resolved for the call. */
export function assertWorkspace({ workspace }: Pick<ToolInvocation, 'workspace'>, requested: string | undefined): void {
  if (requested === undefined || requested === workspace) return
  throw new MemoryError(
    'bad-option',
    `Workspace ${JSON.stringify(requested)} was not found. Give it as workspace if you may use it.`,
    { param: 'workspaceId' },
  )
}

const contentPart = z.looseObject({ type: z.string(), text: z.string().optional() })
const toolCall = z.looseObject({ id: z.string(), function: z.looseObject({ name: z.string(), arguments: z.string() }) })

/** Largest time value of a JavaScript date. */
const maxTimeMs = 8.64e15

/** Message in the format of OpenAI's chat API. */
export const message = z.looseObject({
  role: z.enum(['system', 'developer', 'user', 'assistant', 'tool']),
  content: z
    .union([z.string(), z.null(), z.array(contentPart)])
    .optional()
    .describe('Required unless the message has tool_calls'),
  name: z.string().optional(),
  tool_calls: z.array(toolCall).optional(),
  tool_call_id: z.string().optional(),
  at: z.number().min(-maxTimeMs).max(maxTimeMs).optional().describe('Time of the message in milliseconds since 1970'),
})

export const category = z.enum(itemCategories)
export const importance = z.number().min(1).max(10)
export const tokens = z.int().min(0)

export const contextItem = z.object({ id: z.string(), category, content: z.string(), importance, tokens })

/** State of the client. */
export const workspaceState = strictObject({
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

export const degradedSchema = z
  .literal('not durable')
  .optional()
  .describe('The store failed: the data is in memory, is not saved yet, and will be written again.')
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
  keep: z.literal('needed').optional().describe('Only the needed lines are stored, not the full transcript'),
  unsaved: z.literal(true).optional().describe('Has new messages and is not summarized yet'),
  degraded: degradedSchema,
})

/** Removes `readonly` at all levels, as the schemas' types require. */
export type Mutable<T> = T extends (infer Inner)[] | readonly (infer Inner)[]
  ? Mutable<Inner>[]
  : T extends object
    ? { -readonly [Name in keyof T]: Mutable<T[Name]> }
    : T
export const toMutable = <T>(value: T): Mutable<T> => value as Mutable<T>

/** Copies an object without its undefined fields. */
export function omitUndefined<T extends object>(fields: T): { [Name in keyof T]?: Exclude<T[Name], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [Name in keyof T]?: Exclude<T[Name], undefined>
  }
}
