import type { ParameterName, responseHeaders } from './parameters.ts'
import { ref, type Schema } from './schema.ts'

/** Description of an operation. */
export type Operation = {
  readonly tag: 'Models' | 'Conversations' | 'Sessions' | 'Scopes' | 'Receipts' | 'Operator'
  readonly summary: string
  readonly description?: string
  /** Parameters besides those in the path. */
  readonly parameters?: readonly ParameterName[]
  /** Name of the body's schema, or a complete request body. */
  readonly body?: string | Schema
  readonly responses: Readonly<Record<string, Schema>>
  /** True for operations without authentication. */
  readonly isPublic?: boolean
  /** Schema of errors; default `Error`. */
  readonly errors?: 'Error' | 'AnthropicError' | 'RpcError'
}

type HeaderName = keyof typeof responseHeaders

const turnHeaders: readonly HeaderName[] = [
  'x-threadkeep-receipt',
  'x-threadkeep-tokens',
  'x-threadkeep-profile',
  'x-threadkeep-history',
  'x-threadkeep-degraded',
  'x-threadkeep-memory',
]
const headerRefs = (names: readonly HeaderName[]): Schema =>
  Object.fromEntries(['x-request-id', ...names].map((name) => [name, { $ref: `#/components/headers/${name}` }]))

/** A JSON response. */
export const json = (description: string, schema: string | Schema): Schema => ({
  description,
  headers: headerRefs([]),
  content: { 'application/json': { schema: typeof schema === 'string' ? ref(schema) : schema } },
})

/** A model's reply: JSON, or a stream of server-sent events. */
export const reply = (schema: string): Schema => ({
  description: "The model's reply.",
  headers: headerRefs(turnHeaders),
  content: {
    'application/json': { schema: ref(schema) },
    'text/event-stream': { schema: { type: 'string', description: 'The events of the protocol.' } },
  },
})

/** A page of a list. */
export const page = (schema: string): Schema =>
  json('A page.', {
    type: 'object',
    required: ['items', 'next'],
    properties: {
      items: { type: 'array', items: ref(schema) },
      next: { type: ['string', 'null'], description: 'Cursor of the next page; null at the end.' },
    },
  })

export const deletedResponse: Schema = { description: 'Deleted.', headers: headerRefs([]) }

/** Error responses by component name, in each error format. */
export const errorResponses: Readonly<Record<string, Schema>> = Object.fromEntries(
  ['Error', 'AnthropicError', 'RpcError'].flatMap((format) => [
    [`${format}Refused`, json('The request is invalid, not allowed, or names something that does not exist.', format)],
    [
      `${format}Limited`,
      {
        ...json('Too many requests, or a limit of the session was reached.', format),
        headers: headerRefs(['retry-after']),
      },
    ],
    [`${format}Failed`, json('The server, its store or the upstream failed.', format)],
  ]),
)

/** References to the error responses of an operation. */
export function errorRefs({ errors = 'Error' }: Operation): Schema {
  const refTo = (name: string): Schema => ({ $ref: `#/components/responses/${errors}${name}` })
  return { '429': refTo('Limited'), '4XX': refTo('Refused'), '5XX': refTo('Failed') }
}
