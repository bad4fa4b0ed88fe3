import { isObject, MemoryError, shortenText } from '../../domain/error.ts'
import { parseProfile } from '../../domain/parseProfile.ts'
import type { Profile } from '../../domain/profile.ts'
import { profiles as builtIn } from '../../profiles/index.ts'
import type { ProfileConfig, Template } from '../memoryRegistry.ts'
import { type Config, durationRule, invalidField, parseDuration } from './schema.ts'

type ProfileFields = Pick<
  Config,
  'profile' | 'budget' | 'tenantProfile' | 'sessions' | 'profiles' | 'templates' | 'secrets'
>

/** Profile of sessions, and of tenants whose sessions live in RAM. */
export const defaultProfile = 'thread'

/**
 * Resolves the profiles and templates of a configuration.
 *
 * @throws {MemoryError} `bad-profile` for an unknown profile, `bad-option` for an invalid one.
 *
 * @example
 * resolveProfiles({ profile: 'small', profiles: { small: { extends: 'support', budget: 4_000 } } }).session?.budget // 4_000
 */
export function resolveProfiles(config: ProfileFields): ProfileConfig {
  const session = resolveProfile(config, config.profile ?? defaultProfile, 'profile')
  const scope = config.tenantProfile ?? (session.durability === 'durable' ? session.name : defaultProfile)
  // Profiles that no template uses are validated too, so that errors are reported at once.
  for (const name of Object.keys(config.profiles ?? {})) resolveProfile(config, name, 'profiles')
  const templates = Object.entries(config.templates ?? {}).map(
    ([name, template]) => [name, resolveTemplate(config, name, template)] as const,
  )
  return {
    scope: resolveProfile(config, scope, 'tenantProfile'),
    session: config.sessions === false ? undefined : session,
    templates: Object.fromEntries(templates),
  }
}

/** Finds a configured or built-in profile, and applies the server's budget and secret policy. */
function resolveProfile(
  { profile: sessionProfile, budget, profiles = {}, secrets }: ProfileFields,
  name: string,
  field: string,
): Profile {
  const configured = Object.hasOwn(profiles, name) ? parseConfiguredProfile(name, profiles[name] ?? {}) : undefined
  const found = configured ?? (Object.hasOwn(builtIn, name) ? builtIn[name as keyof typeof builtIn] : undefined)
  if (found === undefined) throw unknownProfile(field, name, [...Object.keys(builtIn), ...Object.keys(profiles)])
  const isSessionProfile = name === (sessionProfile ?? defaultProfile)
  const fixed = isSessionProfile && typeof budget === 'number' ? budget : undefined
  // A profile that names its own budget means it; built-in budgets only limit what memory adds.
  const hasOwnBudget = configured !== undefined && profiles[name]?.budget !== undefined
  const budgetMode = fixed !== undefined || hasOwnBudget ? 'fixed' : 'auto'
  return {
    ...found,
    budgetMode: found.budgetMode ?? budgetMode,
    ...(fixed !== undefined && { budget: fixed, budgetMode: 'fixed' }),
    ...(secrets === undefined ? {} : { secrets }),
  }
}

const unknownProfile = (field: string, name: string, known: readonly string[]): MemoryError =>
  new MemoryError(
    'bad-profile',
    `${field} is ${JSON.stringify(shortenText(name, 60))}; it must be one of ${[...new Set(known)].join(', ')}.`,
    { param: field },
  )

/** Parses a profile: a complete one, or the differences to the built-in profile that `extends` names. */
function parseConfiguredProfile(
  name: string,
  { extends: baseName, ...overrides }: Readonly<Record<string, unknown>>,
): Profile {
  const field = `profiles.${name}`
  if (baseName !== undefined && !(typeof baseName === 'string' && Object.hasOwn(builtIn, baseName)))
    throw invalidField(`${field}.extends`, baseName, `one of ${Object.keys(builtIn).join(', ')}`)
  const base: Partial<Profile> = baseName === undefined ? {} : builtIn[baseName as keyof typeof builtIn]
  const merged = {
    ...base,
    ...overrides,
    ...mergeGroup('lifetime', base, overrides, field),
    ...mergeGroup('knowledgePolicy', base, overrides, field),
    name,
  }
  try {
    return parseProfile(merged)
  } catch (error) {
    // Errors name the field as it is in the file.
    if (!(error instanceof MemoryError)) throw error
    const inFile = (text: string): string => text.replace(/^profile\b/, field)
    throw new MemoryError(error.code, inFile(error.message), { param: inFile(error.param ?? 'profile'), cause: error })
  }
}

/** Merges a group of fields with the base profile's, and parses its durations. */
function mergeGroup(
  group: 'lifetime' | 'knowledgePolicy',
  base: Partial<Profile>,
  overrides: Readonly<Record<string, unknown>>,
  field: string,
): Readonly<Record<string, unknown>> {
  const own = overrides[group]
  if (!isObject(own)) return {}
  const parse = (name: string, value: unknown): unknown => {
    if (name !== 'idle' && name !== 'age') return value
    const millis = parseDuration(value)
    if (millis === undefined) throw invalidField(`${field}.${group}.${name}`, value, durationRule)
    return millis
  }
  return {
    [group]: {
      ...base[group],
      ...Object.fromEntries(Object.entries(own).map(([name, value]) => [name, parse(name, value)])),
    },
  }
}

/** A template with a budget gets a profile of its own, with a name of its own. */
function resolveTemplate(
  config: ProfileFields,
  name: string,
  { profile, idle, age, preamble, budget }: NonNullable<Config['templates']>[string],
): Template {
  const base = resolveProfile(config, profile ?? config.profile ?? defaultProfile, `templates.${name}.profile`)
  return {
    profile: budget === undefined ? base : { ...base, name: `${base.name}+${name}`, budget, budgetMode: 'fixed' },
    idle,
    age,
    preamble,
  }
}
