import type { RetryPolicy } from '../../domain/retry.ts'
import type { Timeouts } from '../../providers/deadline.ts'
import { defaultProfile } from './profileConfig.ts'
import type { Config, sections } from './schema.ts'

type Sections = { [Name in keyof typeof sections]: NonNullable<Config[Name]> }
type With<T, Names extends keyof T = keyof T> = Omit<T, Names> & { [Name in Names]-?: NonNullable<T[Name]> }

/** A configuration in which every field with a default is set. */
export type CompleteConfig = With<
  Omit<Config, keyof Sections>,
  | 'profile'
  | 'budget'
  | 'history'
  | 'contextWindows'
  | 'sessions'
  | 'profiles'
  | 'templates'
  | 'upstreams'
  | 'sweepInterval'
> & {
  readonly listen: With<Sections['listen']>
  readonly keys: With<Sections['keys'], 'file'>
  readonly limits: With<Sections['limits'], 'bodyBytes' | 'fileBytes' | 'forwardBytes'>
  readonly timeouts: With<Sections['timeouts']>
  readonly retries: With<Sections['retries']>
  readonly log: With<Sections['log']>
  readonly shutdown: With<Sections['shutdown'], 'grace'>
  readonly mcp?: Sections['mcp'] | undefined
}

export const defaultTimeouts: Timeouts = { firstByte: 600_000, idle: 120_000, total: 1_800_000 }
export const defaultRetries: RetryPolicy = { tries: 3, baseDelay: 500, maxDelay: 20_000 }

/** Default values. A field that is missing here has none, such as a limit or a webhook. */
export const defaults: CompleteConfig = {
  listen: { host: '127.0.0.1', port: 4848, allowedHosts: [], allowedOrigins: [] },
  profile: defaultProfile,
  budget: 'auto',
  history: 'auto',
  contextWindows: {},
  sessions: true,
  profiles: {},
  templates: {},
  upstreams: [],
  keys: { file: 'threadkeep-keys.json' },
  limits: { bodyBytes: 33_554_432, fileBytes: 20_000_000, forwardBytes: 536_870_912 },
  timeouts: defaultTimeouts,
  retries: { attempts: defaultRetries.tries, baseDelay: defaultRetries.baseDelay, maxDelay: defaultRetries.maxDelay },
  log: { level: 'warn' },
  sweepInterval: 10_000,
  shutdown: { grace: 30_000 },
}
