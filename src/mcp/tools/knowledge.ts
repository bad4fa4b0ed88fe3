import { z } from 'zod'
import type { Json } from '../../domain/entry.ts'
import { knowledgeCategories } from '../../domain/knowledge.ts'
import { omitUndefined } from './schemas.ts'
import { defineTool, type Tool } from './tool.ts'

const remember = defineTool({
  name: 'remember',
  title: 'Remember for all sessions',
  description:
    'Stores knowledge for all sessions of the workspace or, with person, about one person. It is shown when it matches a question. What a model states waits for approval, unless the profile of the server allows it.',
  input: z.object({
    key: z.string().min(1).max(1_000).describe('The name, unique in its category'),
    value: z.unknown().describe('Text or JSON'),
    category: z.enum(knowledgeCategories).optional().describe('The kind of knowledge; domain if omitted'),
    person: z.string().min(1).max(128).optional().describe('The id of the person it is about'),
  }),
  output: z.object({ id: z.string(), confidence: z.number(), pending: z.boolean() }),
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: false },
  run: async ({ key, value, category = 'domain', person }, { context, workspace }) => {
    const statement = { category, key, value: value as Json, by: 'assistant' as const, ...omitUndefined({ person }) }
    const { id, confidence, pending = false } = await context.memory.remember(workspace, statement)
    const flag = person === undefined ? '' : ` --person ${person}`
    const approval = ` It is not shown until the user runs: threadkeep knowledge approve ${workspace} ${id}${flag}`
    return { text: `Stored ${key} as ${id}.${pending ? approval : ''}`, structured: { id, confidence, pending } }
  },
})

/** Tools for what holds in every session. */
export const knowledgeTools: readonly Tool[] = [remember]
