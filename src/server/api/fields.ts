import { z } from 'zod'
import type { Json } from '../../domain/entry.ts'
import { readJson } from '../http/body.ts'
import { Refusal } from '../http/httpError.ts'
import type { Exchange } from '../http/requestContext.ts'

/** Bodies are described with these few words; what is wrong with a field is told behind its name. */
export const text = z.string('must be text').min(1, 'must not be empty')
export const millis = z
  .int('must be a whole number of milliseconds')
  .min(1, 'must be a whole number of milliseconds, 1 or more')
export const json = z.custom<Json>((value) => value !== undefined, 'is missing: it must be text or JSON')

/** The body of a request, checked; the first field that is wrong, or is none, is refused by its name. */
export async function bodyIn<S extends z.ZodObject>({ house, request }: Exchange, schema: S): Promise<z.infer<S>> {
  const { data, error } = schema.safeParse(await readJson(request, house.largest.body))
  if (error === undefined) return data
  throw refused(error.issues[0], Object.keys(schema.shape))
}

function refused(issue: z.core.$ZodIssue | undefined, known: readonly string[]): Refusal {
  if (issue?.code === 'unrecognized_keys') {
    const [name = ''] = issue.keys
    return new Refusal(
      400,
      'unknown_field',
      `${JSON.stringify(name.slice(0, 40))} is unknown here; the body may have ${known.join(', ')}.`,
      name.slice(0, 40),
    )
  }
  // A name in it may be the client's own, and long.
  const at = (issue?.path.join('.') || 'body').slice(0, 80)
  return new Refusal(400, 'bad_option', `${at} ${issue?.message ?? 'is not as it must be'}.`, at)
}
