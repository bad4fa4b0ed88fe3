import { checkOptions } from '../domain/checkOptions.ts'
import { type Json, type Millis, metadataId, type SessionMetadata } from '../domain/entry.ts'
import { anyText, anyValue, checkOption, createDepthError, MemoryError } from '../domain/error.ts'
import { type Key, personKey } from '../domain/key.ts'
import { exceedsDepth, exceedsJsonLength, maxJsonDepth } from '../domain/stringify.ts'

/** Lists of sessions contain their metadata. */
const maxMetadataCharacters = 65_536

/** Changes to the metadata of a session. Omitted fields stay unchanged; `undefined` removes a field. */
export type SessionMetadataUpdate = {
  readonly template?: string | undefined
  /** Lifetime of this session instead of its profile's, in milliseconds: `idle` without use, `age` in total. */
  readonly idle?: Millis | undefined
  readonly age?: Millis | undefined
  readonly person?: string | undefined
  readonly metadata?: Json | undefined
}

/** Validates an update. Throws `bad-option` for unknown fields and invalid values. */
export function parseMetadataUpdate({ scope }: Key, update: SessionMetadataUpdate): SessionMetadataUpdate {
  checkOptions<SessionMetadataUpdate>('setMetadata', update, {
    template: anyValue,
    idle: anyValue,
    age: anyValue,
    person: anyText,
    metadata: anyValue,
  })
  const { template, idle, age, person, metadata } = update
  checkOption(
    'template',
    template,
    template === undefined || (typeof template === 'string' && template !== ''),
    'the name of a template',
  )
  for (const [name, value] of Object.entries({ idle, age })) {
    checkOption(
      name,
      value,
      value === undefined || (Number.isSafeInteger(value) && value >= 1),
      'a whole number of milliseconds, 1 or more',
    )
  }
  if (exceedsDepth(metadata, maxJsonDepth)) throw createDepthError('metadata')
  checkMetadataSize(metadata, 'metadata')
  if (person !== undefined) personKey(scope, person)
  return update
}

/** Throws `bad-option` for metadata that is too large for lists of sessions. */
export function checkMetadataSize(metadata: unknown, param: string): void {
  if (!exceedsJsonLength(metadata, maxMetadataCharacters)) return
  throw new MemoryError(
    'bad-option',
    `${param} has more than ${maxMetadataCharacters.toLocaleString('en')} characters as JSON. Store long texts as messages or rows.`,
    { param },
  )
}

/** Returns the metadata after an update. */
export function applyMetadataUpdate(
  before: SessionMetadata | undefined,
  update: SessionMetadataUpdate,
  at: Millis,
): SessionMetadata {
  const all = Object.entries({ ...before, ...update }).filter(([, value]) => value !== undefined)
  return { ...(Object.fromEntries(all) as Partial<SessionMetadata>), kind: 'about', id: metadataId, at, sources: [] }
}
