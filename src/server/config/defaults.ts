import type { Config, sections } from './schema.ts'
import { usualProfile } from './ways.ts'

type Sections = { [Name in keyof typeof sections]: NonNullable<Config[Name]> }
type With<T, Names extends keyof T = keyof T> = Omit<T, Names> & { [Name in Names]-?: NonNullable<T[Name]> }

/** A configuration in which nothing is missing that has a default. */
export type Complete = With<
  Omit<Config, keyof Sections>,
  'profile' | 'sessions' | 'profiles' | 'templates' | 'upstreams' | 'sweepEvery'
> & {
  readonly listen: With<Sections['listen']>
  readonly keys: With<Sections['keys'], 'file'>
  readonly limits: With<Sections['limits'], 'body' | 'file'>
  readonly timeouts: With<Sections['timeouts']>
  readonly retries: With<Sections['retries']>
  readonly log: With<Sections['log']>
  readonly mcp?: Sections['mcp'] | undefined
}

/** What holds where nobody says anything. What is not here has no value of its own: no limit, no webhook, the profile's own budget. */
export const defaults: Complete = {
  listen: { host: '127.0.0.1', port: 4848, names: [], origins: [] },
  profile: usualProfile,
  sessions: true,
  profiles: {},
  templates: {},
  upstreams: [],
  keys: { file: 'threadkeep-keys.json' },
  limits: { body: 33_554_432, file: 20_000_000 },
  timeouts: { first: 600_000, idle: 120_000, total: 1_800_000 },
  retries: { tries: 3, wait: 500, longest: 20_000 },
  log: { level: 'warn' },
  sweepEvery: 10_000,
}
