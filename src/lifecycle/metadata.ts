import type { About, Json, Millis } from '../domain/entry.ts'
import { check } from '../domain/error.ts'
import { type Key, personKey } from '../domain/key.ts'

/** Changes to the metadata of a session. Omitted fields stay unchanged; `undefined` removes a field. */
export type Description = {
  readonly template?: string | undefined
  /** Lifetime of this session instead of its profile's, in milliseconds: `idle` without use, `age` in total. */
  readonly idle?: Millis | undefined
  readonly age?: Millis | undefined
  readonly person?: string | undefined
  readonly metadata?: Json | undefined
}

const metadataFields = ['template', 'idle', 'age', 'person', 'metadata'] as const

/** Validates an update. Throws `bad-option` for unknown fields and invalid values. */
export function parseMetadataUpdate({ scope }: Key, update: Description): Description {
  const { template, idle, age, person } = update
  for (const name of Object.keys(update))
    check('about', name, (metadataFields as readonly string[]).includes(name), `one of ${metadataFields.join(', ')}`)
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
  return update
}

/** Returns the metadata after an update. */
export function applyMetadataUpdate(before: About | undefined, update: Description, at: Millis): About {
  const all = Object.entries({ ...before, ...update }).filter(([, value]) => value !== undefined)
  return { ...(Object.fromEntries(all) as Partial<About>), kind: 'about', id: 'about', at, sources: [] }
}
