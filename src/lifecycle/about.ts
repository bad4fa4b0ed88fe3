import type { About, Json, Millis } from '../domain/entry.ts'
import { check } from '../domain/error.ts'
import { type Key, personKey } from '../domain/key.ts'

/** What can be said about a session; what is left out stays as it is, and `undefined` takes it back. */
export type Description = {
  readonly template?: string | undefined
  /** Its own lifetime in place of its profile's: how long without use, and how long at all. */
  readonly idle?: Millis | undefined
  readonly age?: Millis | undefined
  readonly person?: string | undefined
  readonly metadata?: Json | undefined
}

const names = ['template', 'idle', 'age', 'person', 'metadata'] as const

/** Checks a description at the edge. */
export function parseDescription({ scope }: Key, given: Description): Description {
  const { template, idle, age, person } = given
  for (const name of Object.keys(given))
    check('about', name, (names as readonly string[]).includes(name), `made of ${names.join(', ')}`)
  check(
    'template',
    template,
    template === undefined || (typeof template === 'string' && template !== ''),
    'the name of a template',
  )
  for (const [name, value] of Object.entries({ idle, age })) {
    check(
      name,
      value,
      value === undefined || (Number.isSafeInteger(value) && value >= 1),
      'a whole number of milliseconds, 1 or more',
    )
  }
  if (person !== undefined) personKey(scope, person)
  return given
}

/** What is known about a session after it was described. */
export function described(before: About | undefined, news: Description, at: Millis): About {
  const all = Object.entries({ ...before, ...news }).filter(([, value]) => value !== undefined)
  return { ...(Object.fromEntries(all) as Partial<About>), kind: 'about', id: 'about', at, sources: [] }
}
