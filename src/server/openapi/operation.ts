import type { headers, ParameterName } from './headers.ts'
import { ref, type Schema } from './schema.ts'

/** What a route does, as it is described. */
export type Operation = {
  readonly tag: 'Models' | 'Conversations' | 'Sessions' | 'Scopes' | 'Receipts' | 'Operator'
  readonly summary: string
  readonly description?: string
  /** What it takes beside what stands in its address. */
  readonly takes?: readonly ParameterName[]
  /** The schema of its body, or a whole description of one that is not JSON. */
  readonly body?: string | Schema
  readonly answers: Readonly<Record<string, Schema>>
  /** Whether everybody may ask. */
  readonly isOpen?: boolean
  /** The shape in which it tells of errors; OpenAI's when left out. */
  readonly errors?: 'Error' | 'AnthropicError' | 'RpcError'
}

type HeaderName = keyof typeof headers

/** What an answer to a turn brings. */
const ofTurns: readonly HeaderName[] = [
  'x-threadkeep-receipt',
  'x-threadkeep-tokens',
  'x-threadkeep-profile',
  'x-threadkeep-degraded',
  'x-threadkeep-memory',
]
const withHeaders = (names: readonly HeaderName[]): Schema =>
  Object.fromEntries(['x-request-id', ...names].map((name) => [name, { $ref: `#/components/headers/${name}` }]))

/** An answer in JSON of this schema. */
export const json = (description: string, schema: string | Schema): Schema => ({
  description,
  headers: withHeaders([]),
  content: { 'application/json': { schema: typeof schema === 'string' ? ref(schema) : schema } },
})

/** The reply of a model: in one, or piece by piece as server-sent events. */
export const reply = (schema: string): Schema => ({
  description: 'The reply of the model.',
  headers: withHeaders(ofTurns),
  content: {
    'application/json': { schema: ref(schema) },
    'text/event-stream': {
      schema: { type: 'string', description: 'The events of the protocol, each as soon as the model has said it.' },
    },
  },
})

/** A page of a list. */
export const page = (description: string, of: string): Schema =>
  json(description, {
    type: 'object',
    required: ['items', 'next'],
    properties: {
      items: { type: 'array', items: ref(of) },
      next: { type: ['string', 'null'], description: 'Where to go on with `after`; null at the end.' },
    },
  })

export const nothing: Schema = { description: 'It is gone.', headers: withHeaders([]) }

/** What may go wrong with nearly everything. */
export const errorResponses: Readonly<Record<string, Schema>> = Object.fromEntries(
  ['Error', 'AnthropicError', 'RpcError'].flatMap((shape) => [
    [
      `${shape}Refused`,
      json('The request is wrong, not allowed, or about something that is not there; `error` says what to do.', shape),
    ],
    [
      `${shape}Limited`,
      {
        ...json('Too many requests, or a limit of the session is reached.', shape),
        headers: withHeaders(['retry-after']),
      },
    ],
    [`${shape}Failed`, json('The server, its store or the model server failed.', shape)],
  ]),
)

/** Where the errors of an operation are described. */
export function errorsOf({ errors = 'Error' }: Operation): Schema {
  const at = (name: string): Schema => ({ $ref: `#/components/responses/${errors}${name}` })
  return { '429': at('Limited'), '4XX': at('Refused'), '5XX': at('Failed') }
}
