import { z } from 'zod'
import type { Json } from '../../domain/entry.ts'
import { knowledgeCategories } from '../../domain/knowledge.ts'

// Request bodies. Error messages follow the name of the field; descriptions appear in the OpenAPI document.

const text = z.string('must be text').min(1, 'must not be empty')
const millis = z
  .int('must be a whole number of milliseconds')
  .min(1, 'must be a whole number of milliseconds, 1 or more')
const json = z.custom<Json>((value) => value !== undefined, 'is missing: it must be text or JSON')

/** `POST /api/sessions`. */
export const newSession = z
  .strictObject({
    key: text.meta({ $ref: '#/components/schemas/Key', description: 'Key of the session.' }),
    template: text.describe('Template of the session.').exactOptional(),
    idle: millis.describe('Lifetime without use, in milliseconds.').exactOptional(),
    age: millis.describe('Maximum lifetime, in milliseconds.').exactOptional(),
    person: text.describe('The person speaking.').exactOptional(),
    metadata: json.describe('Any JSON; never sent to a model.').exactOptional(),
  })
  .describe('A session to begin.')

/** `POST /api/sessions/{key}/transfer`. */
export const transferTarget = z
  .strictObject({ to: text.describe('The new key.') })
  .describe('The new key of a session.')

/** `POST /api/sessions/{key}/record`. The engine checks the fields of `important_data`. */
export const recordUpdate = z
  .strictObject({
    important_data: z
      .record(
        z.string(),
        z.union([z.record(z.string(), json), z.array(json)]),
        'must be an object of objects and lists',
      )
      .describe('Values to add, by field of the record.')
      .exactOptional(),
    conversation_summary: text.describe('The new text of the summary.').exactOptional(),
    summary_version: z
      .int('must be a whole number')
      .describe('Version of that summary; default: one more than before.')
      .exactOptional(),
  })
  .describe('A change of the record of a session.')

/** `POST /api/scopes/{scope}/knowledge`. */
export const newKnowledge = z
  .strictObject({
    category: z
      .enum(knowledgeCategories, `must be one of ${knowledgeCategories.join(', ')}`)
      .describe('The kind of knowledge.'),
    key: text.describe('Its name.'),
    value: json.describe('Text or JSON.'),
    confidence: z
      .number('must be a number from 0 to 1')
      .meta({ description: 'Confidence in it.', minimum: 0, maximum: 1 })
      .exactOptional(),
    session: text.describe('The session in which it was said.').exactOptional(),
    origin: z
      .enum(['operator', 'learned'], 'must be operator or learned')
      .describe('`operator` never fades; `learned` fades without use. Default: `learned` with a session.')
      .exactOptional(),
    person: text.describe("The person it is about; it is stored with that person's knowledge.").exactOptional(),
  })
  .describe('Knowledge to store.')

/** `POST /api/forget`. */
export const forgetTarget = z
  .strictObject({
    key: text.describe('A session.').exactOptional(),
    messageId: text.describe('One message of that session.').exactOptional(),
    scope: text.describe('A tenant with all its sessions.').exactOptional(),
    text: text.describe('Only entries of that tenant that contain this text.').exactOptional(),
  })
  .describe('Exactly one of { key }, { key, messageId }, { scope } or { scope, text }.')

const metadata = z
  .record(z.string(), z.string('must be text').max(512, 'has more than 512 characters'), 'must be an object')
  .refine((given) => Object.keys(given).every((name) => name.length <= 64), 'has a name of more than 64 characters')
  .refine((given) => Object.keys(given).length <= 16, 'has more than 16 entries')
  .describe('Up to 16 strings by name.')
const items = z.array(z.unknown(), 'must be a list of items').describe('Items as in a response.')

// OpenAI may add fields to these, so unknown ones are ignored.

/** `POST /v1/conversations`. */
export const newConversation = z
  .looseObject({ metadata: metadata.nullish(), items: items.nullish() })
  .describe('A conversation to begin.')

/** `POST /v1/conversations/{conversation}`. */
export const conversationUpdate = z
  .looseObject({ metadata: metadata.nullable() })
  .describe('The new metadata of a conversation.')

/** `POST /v1/conversations/{conversation}/items`. */
export const newItems = z.looseObject({ items }).describe('Items to add.')
