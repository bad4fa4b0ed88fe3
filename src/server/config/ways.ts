import { isObject } from '../../domain/checks.ts'
import { MemoryError } from '../../domain/error.ts'
import { parseProfile } from '../../domain/parseProfile.ts'
import type { Profile } from '../../domain/profile.ts'
import { profiles as builtIn } from '../../profiles/index.ts'
import type { Template, Ways } from '../memoryRegistry.ts'
import { durationOf, durationRight } from './duration.ts'
import { type Config, wrong } from './schema.ts'

type Named = Pick<Config, 'profile' | 'budget' | 'tenantProfile' | 'sessions' | 'profiles' | 'templates' | 'secrets'>

/** How sessions remember when nobody says otherwise, and tenants where sessions live in RAM. */
export const usualProfile = 'thread'

/**
 * The ways of remembering that a configuration names.
 *
 * @example
 * waysOf({ profile: 'small', profiles: { small: { extends: 'support', budget: 4_000 } } }).session?.budget // 4_000
 */
export function waysOf(config: Named): Ways {
  const session = profileNamed(config, config.profile ?? usualProfile, 'profile')
  const scope = config.tenantProfile ?? (session.durability === 'durable' ? session.name : usualProfile)
  // Checked even if no template uses it: a mistake is told when it is made.
  for (const name of Object.keys(config.profiles ?? {})) profileNamed(config, name, 'profiles')
  const templates = Object.entries(config.templates ?? {}).map(
    ([name, given]) => [name, templateOf(config, name, given)] as const,
  )
  return {
    scope: profileNamed(config, scope, 'tenantProfile'),
    session: config.sessions === false ? undefined : session,
    templates: Object.fromEntries(templates),
  }
}

/** The profile of this name: one of the configuration's own, else a built-in one, with the budget and the secret policy set for the server. */
function profileNamed({ profile, budget, profiles = {}, secrets }: Named, name: string, at: string): Profile {
  const own = Object.hasOwn(profiles, name) ? ownProfile(name, profiles[name] ?? {}) : undefined
  const chosen = own ?? (Object.hasOwn(builtIn, name) ? builtIn[name as keyof typeof builtIn] : undefined)
  if (chosen === undefined) throw unknown(at, name, [...Object.keys(builtIn), ...Object.keys(profiles)])
  const isUsual = name === (profile ?? usualProfile)
  return {
    ...chosen,
    ...(isUsual && budget !== undefined ? { budget } : {}),
    ...(secrets === undefined ? {} : { secrets }),
  }
}

const unknown = (at: string, name: string, known: readonly string[]): MemoryError =>
  new MemoryError(
    'bad-profile',
    `${at} is ${JSON.stringify(name.slice(0, 60))}; it must be a profile or one of ${[...new Set(known)].join(', ')}.`,
    {
      param: at,
    },
  )

/** A profile as it stands in a configuration: whole, or what differs from a built-in one. Its name is the one it stands under. */
function ownProfile(name: string, { extends: base, ...given }: Readonly<Record<string, unknown>>): Profile {
  const at = `profiles.${name}`
  if (base !== undefined && !(typeof base === 'string' && Object.hasOwn(builtIn, base)))
    throw wrong(`${at}.extends`, base, `one of ${Object.keys(builtIn).join(', ')}`)
  const from: Partial<Profile> = base === undefined ? {} : builtIn[base as keyof typeof builtIn]
  const merged = {
    ...from,
    ...given,
    ...together('lifetime', from, given, at),
    ...together('learns', from, given, at),
    name,
  }
  try {
    return parseProfile(merged)
  } catch (error) {
    // The name under which it stands in the file is of more use than the engine's own.
    if (!(error instanceof MemoryError)) throw error
    const named = (text: string): string => text.replace(/^profile\b/, at)
    throw new MemoryError(error.code, named(error.message), { param: named(error.param ?? 'profile'), cause: error })
  }
}

/** A group of fields of which some may be left out, and whose times may be text. */
function together(
  group: 'lifetime' | 'learns',
  from: Partial<Profile>,
  given: Readonly<Record<string, unknown>>,
  at: string,
): Readonly<Record<string, unknown>> {
  const own = given[group]
  if (!isObject(own)) return {}
  const timed = (name: string, value: unknown): unknown => {
    if (name !== 'idle' && name !== 'age') return value
    const millis = durationOf(value)
    if (millis === undefined) throw wrong(`${at}.${group}.${name}`, value, durationRight)
    return millis
  }
  return {
    [group]: {
      ...from[group],
      ...Object.fromEntries(Object.entries(own).map(([name, value]) => [name, timed(name, value)])),
    },
  }
}

/** With a budget of its own a template remembers in a way of its own, which has a name of its own. */
function templateOf(
  config: Named,
  name: string,
  { profile, idle, age, preamble, budget }: NonNullable<Config['templates']>[string],
): Template {
  const base = profileNamed(config, profile ?? config.profile ?? usualProfile, `templates.${name}.profile`)
  return {
    profile: budget === undefined ? base : { ...base, name: `${base.name}+${name}`, budget },
    idle,
    age,
    preamble,
  }
}
