import type { z } from 'zod'
import { describeUnknownName } from '../../domain/checkOptions.ts'
import type { Millis } from '../../domain/entry.ts'
import { shortenText } from '../../domain/error.ts'
import type { JsonLimits } from '../../providers/jsonStructure.ts'
import { readJson } from '../http/body.ts'
import { HttpError } from '../http/httpError.ts'
import { type RequestContext, readNumber } from '../http/requestContext.ts'

/** Structure of metadata, knowledge and records: each value is masked and stored on its own. */
const apiLimits: JsonLimits = { depth: 64, values: 20_000, fields: 20_000 }

/** Reads and validates a body. Throws 400 with the name of the first invalid or unknown field. */
export async function readBody<S extends z.ZodObject>(
  { server, request }: RequestContext,
  schema: S,
): Promise<z.infer<S>> {
  const { data, error } = validate(schema, await readJson(request, server.maxBytes.body, { limits: apiLimits }))
  if (error === undefined) return data
  throw bodyError(error.issues[0], Object.keys(schema.shape))
}

/** Validates a body. Zod compares the `length` of any object where it expects a text, which throws for some values. */
function validate<S extends z.ZodObject>(schema: S, body: unknown): z.ZodSafeParseResult<z.infer<S>> {
  try {
    return schema.safeParse(body)
  } catch {
    throw new HttpError(400, 'bad_option', 'A field has a value of the wrong type. GET /docs lists all fields.')
  }
}

function bodyError(issue: z.core.$ZodIssue | undefined, fields: readonly string[]): HttpError {
  if (issue?.code === 'unrecognized_keys') {
    const name = shortenText(issue.keys[0] ?? '', 40)
    return new HttpError(400, 'unknown_field', `Unknown field ${describeUnknownName(name, fields)}`, name)
  }
  // A path may contain a name that the client chose, of any length.
  const field = shortenText(issue?.path.join('.') || 'body', 80)
  return new HttpError(400, 'bad_option', `${field} ${issue?.message ?? 'is invalid'}.`, field)
}

/** Throws 400 for unknown query parameters, so that a misspelt one is not ignored, and for repeated ones. */
export function checkQuery(query: URLSearchParams, allowed: readonly string[]): void {
  for (const name of query.keys()) {
    if (allowed.includes(name)) continue
    const message = `Unknown query parameter ${describeUnknownName(name, allowed)}`
    throw new HttpError(400, 'unknown_parameter', message, shortenText(name, 40))
  }
  checkSingle(query, allowed)
}

/** Throws 400 for query parameters that are sent more than once: only one of their values would count. */
export function checkSingle(query: URLSearchParams, names: readonly string[]): void {
  const found = new Set<string>()
  for (const name of query.keys()) {
    if (!names.includes(name)) continue
    const shown = name.slice(0, 40)
    if (found.has(name))
      throw new HttpError(400, 'repeated_parameter', `${shown} is sent more than once. Send it once.`, shown)
    found.add(name)
  }
}

/** Bytes of the empty object that some clients send with every POST. */
const emptyObjectBytes = 2

/** Throws 400 for a body of a request that takes none: a filter in it would be ignored. */
export function checkNoBody({ request }: RequestContext): void {
  const { 'content-length': length = '0', 'transfer-encoding': encoding } = request.headers
  if (encoding === undefined && Number(length) <= emptyObjectBytes) return
  throw new HttpError(400, 'unexpected_body', `${request.method} takes no body here. Send the request without one.`)
}

/** Maximum number of items of a page. */
export const readLimit = (query: URLSearchParams): number => readNumber(query, 'limit', 50, 500)

/** The cursor `after` of a list that is ordered by a number; 0 when it is missing. */
export function readCursor(query: URLSearchParams): number {
  const text = query.get('after') ?? '0'
  if (/^\d{1,15}$/.test(text)) return Number(text)
  throw invalidParameter('after', text, 'the `next` of the previous page')
}

/** A time in milliseconds since 1970, or a date such as 2026-03-01 or 2026-03-01T12:00:00Z. */
export function readTime(query: URLSearchParams, name: string): Millis | undefined {
  const text = query.get(name)
  if (text === null) return undefined
  const time = /^\d{1,15}$/.test(text)
    ? Number(text)
    : /^\d{4}-\d\d-\d\d(?:T[\d:.]+(?:Z|[+-]\d\d:\d\d))?$/.test(text)
      ? Date.parse(text)
      : Number.NaN
  if (Number.isFinite(time)) return time
  throw invalidParameter(name, text, 'milliseconds since 1970, or a date such as 2026-03-01 or 2026-03-01T12:00:00Z')
}

export function readFlag(query: URLSearchParams, name: string, defaultValue: boolean): boolean {
  const text = query.get(name)
  if (text === null) return defaultValue
  if (text === 'true' || text === 'false') return text === 'true'
  throw invalidParameter(name, text, 'true or false')
}

export const invalidParameter = (name: string, text: string, rule: string): HttpError =>
  new HttpError(400, 'bad_option', `${name} is ${JSON.stringify(shortenText(text, 40))}; it must be ${rule}.`, name)

/** A page of a list; `next` is the cursor of the next page, null at the end. */
type Page<T> = { readonly items: readonly T[]; readonly next: string | null }

/** Creates a page from up to `limit + 1` items: the extra one shows that there is a next page. */
export function toPage<T>(found: readonly T[], limit: number, cursorOf: (item: T) => string | number): Page<T> {
  const items = found.slice(0, limit)
  const last = items.at(-1)
  return { items, next: found.length > limit && last !== undefined ? String(cursorOf(last)) : null }
}

/** Creates the requested page of a complete list whose items have ids. */
export function pageById<T extends { readonly id: string }>(all: readonly T[], query: URLSearchParams): Page<T> {
  const after = query.get('after')
  const index = after === null ? -1 : all.findIndex(({ id }) => id === after)
  if (after !== null && index < 0)
    throw invalidParameter('after', after, 'the `next` of the previous page. If that item was deleted, start again')
  return toPage(all.slice(index + 1), readLimit(query), ({ id }) => id)
}
