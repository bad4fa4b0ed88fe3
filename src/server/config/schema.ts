import { z } from 'zod'
import type { Millis } from '../../domain/entry.ts'
import { MemoryError, shortenText } from '../../domain/error.ts'
import { parseKey } from '../../domain/key.ts'
import { embedderForms, parseEmbedderName } from '../../providers/namedEmbedder.ts'
import { logLevels } from '../observability/log.ts'

const unitMs: Readonly<Record<string, Millis>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }
/** Describes a valid duration in errors. */
export const durationRule = 'a number of milliseconds, or text such as 500ms, 30s, 15m, 24h or 7d'

/**
 * Parses a number of milliseconds, or text with a unit; undefined for anything else.
 *
 * @example
 * parseDuration('24h') // 86_400_000
 */
export function parseDuration(value: unknown): Millis | undefined {
  const [, count, unit = ''] = typeof value === 'string' ? (/^(\d{1,9})(ms|[smhd])$/.exec(value.trim()) ?? []) : []
  const millis = count === undefined ? value : Number(count) * (unitMs[unit] ?? 0)
  return typeof millis === 'number' && Number.isSafeInteger(millis) && millis >= 1 ? millis : undefined
}

// Error messages complete the sentence "listen.port is "x"; it must be …".
const duration = z
  .custom<Millis | string>((value) => parseDuration(value) !== undefined, durationRule)
  .transform((value) => parseDuration(value) as Millis)
const text = z.string('text').min(1, 'text that is not empty')
const integer = (min: number, max = Number.MAX_SAFE_INTEGER) => {
  const rule =
    max === Number.MAX_SAFE_INTEGER ? `a whole number, ${min} or more` : `a whole number, from ${min} to ${max}`
  return z.int(rule).min(min, rule).max(max, rule)
}
const flag = z.boolean('true or false')
const list = z.array(text, 'a list of texts')
const oneOf = <const T extends readonly string[]>(...choices: T) => z.enum(choices, `one of ${choices.join(', ')}`)
const byName = <T extends z.ZodType>(value: T) =>
  z.record(z.string().regex(/^[\w.-]{1,64}$/), value, {
    error: ({ code }) => (code === 'invalid_key' ? 'named with letters, digits and _ . -' : 'an object'),
  })

/** An object with these fields only, so that a misspelt field is an error. */
const fields = <S extends z.ZodRawShape>(shape: S) =>
  z.strictObject(shape, {
    error: ({ code }) => `${code === 'unrecognized_keys' ? '' : 'an object with '}${Object.keys(shape).join(', ')}`,
  })

const isScope = (value: string): boolean => {
  try {
    return parseKey(value).id === ''
  } catch {
    return false
  }
}

const object = z.record(z.string(), z.unknown(), 'an object')

const upstream = fields({
  name: text.optional(),
  base: text,
  protocol: oneOf('openai', 'anthropic').optional(),
  key: text.optional(),
  keyEnv: text.optional(),
  models: list.optional(),
  rename: z.record(z.string(), text, 'an object of model names').optional(),
})

const template = fields({
  profile: text.optional(),
  idle: duration.optional(),
  age: duration.optional(),
  preamble: text.optional(),
  budget: integer(1).optional(),
})

const provider = fields({
  command: text.optional(),
  args: list.optional(),
  env: z.record(z.string(), text, 'an object of variables').optional(),
  url: text.optional(),
  headers: z.record(z.string(), text, 'an object of headers').optional(),
  tool: text.optional(),
  arguments: object.optional(),
  resource: text.optional(),
  timeout: duration.optional(),
  on: z.array(oneOf('save', 'restore'), 'a list of save and restore').optional(),
}).refine(({ command, url }) => (command === undefined) !== (url === undefined), 'an object with either command or url')

const workspace = text.refine(isScope, 'a workspace such as my-project, without a session')

/** Sections whose fields are merged one by one, so that a flag can override a single field. */
export const sections = {
  listen: fields({
    host: text.optional(),
    port: integer(0, 65_535).optional(),
    allowedHosts: list.optional(),
    allowedOrigins: list.optional(),
  }),
  keys: fields({ file: text.optional(), required: flag.optional() }),
  limits: fields({
    bodyBytes: integer(1).optional(),
    fileBytes: integer(1).optional(),
    forwardBytes: integer(1).optional(),
    requestsPerMinute: integer(1).optional(),
    concurrency: integer(1).optional(),
    totalConcurrency: integer(1).optional(),
    ramBytes: integer(1).optional(),
  }),
  timeouts: fields({ firstByte: duration.optional(), idle: duration.optional(), total: duration.optional() }),
  retries: fields({ attempts: integer(1).optional(), baseDelay: duration.optional(), maxDelay: duration.optional() }),
  log: fields({ level: oneOf(...logLevels).optional() }),
  shutdown: fields({ delay: duration.optional(), grace: duration.optional() }),
  mcp: fields({
    workspace: workspace.optional(),
    only: z.array(workspace).min(1).optional(),
    allow: list.optional(),
    write: flag.optional(),
    audit: text.optional(),
    users: byName(list).optional(),
    providers: byName(provider).optional(),
    retention: duration.optional(),
    tokenLimit: integer(1).optional(),
    threshold: z.number('a fraction of the limit, above 0 and up to 1').gt(0, 'above 0').max(1, 'at most 1').optional(),
    margin: integer(0).optional(),
    budget: integer(1).optional(),
    importance: z.number('a number from 1 to 10').min(1, 'at least 1').max(10, 'at most 10').optional(),
    items: integer(0).optional(),
    summarise: flag.optional(),
    compress: flag.optional(),
  }),
} as const

/** The configuration file. Profiles and prices are validated by their own parsers. */
export const configSchema = fields({
  listen: sections.listen.optional(),
  store: text.optional(),
  storeKey: text.optional(),
  profile: text.optional(),
  budget: z.union([z.literal('auto'), integer(1)], 'auto, or a whole number of tokens, 1 or more').optional(),
  history: oneOf('auto', 'full', 'thin').optional(),
  contextWindows: z.record(z.string(), integer(1), 'an object of tokens by model').optional(),
  tenantProfile: text.optional(),
  sessions: z.union([z.boolean(), text], 'true, false, ram: or the URL of a Redis store').optional(),
  profiles: byName(object).optional(),
  templates: byName(template).optional(),
  upstreams: z.array(upstream, 'a list of upstreams').optional(),
  forward: z
    .union([text, z.array(text).min(1), z.literal(false)], 'the name of an upstream, a list of names, or false')
    .optional(),
  upkeep: text.optional(),
  embedder: text.refine((name) => parseEmbedderName(name) !== undefined, embedderForms).optional(),
  secrets: oneOf('mask', 'hide', 'keep').optional(),
  defaultScope: text.refine(isScope, 'a tenant such as acme, without a session').optional(),
  keys: sections.keys.optional(),
  limits: sections.limits.optional(),
  timeouts: sections.timeouts.optional(),
  retries: sections.retries.optional(),
  webhook: fields({ url: text, secret: text.optional(), secretEnv: text.optional() }).optional(),
  prices: z.union([text, object], 'the path of a JSON file, or a price table').optional(),
  log: sections.log.optional(),
  mcp: sections.mcp.optional(),
  sweepInterval: duration.optional(),
  shutdown: sections.shutdown.optional(),
})

export type Config = z.output<typeof configSchema>

/**
 * Validates a configuration.
 *
 * @throws {MemoryError} `bad-option` that names the field and a valid value, and never contains a secret.
 *
 * @example
 * parseConfig({ listen: { port: 8080 }, templates: { sales: { profile: 'support', idle: '2h' } } })
 */
export function parseConfig(value: unknown): Config {
  const { data, error } = configSchema.safeParse(value)
  if (error === undefined) return data
  // An unknown field is more likely the mistake than the required field that is missing because of it.
  const issue = error.issues.find(({ code }) => code === 'unrecognized_keys') ?? error.issues[0]
  throw issue === undefined ? new MemoryError('bad-option', 'The configuration is invalid.') : configError(issue, value)
}

function configError(issue: z.core.$ZodIssue, value: unknown): MemoryError {
  const field = formatPath(issue.path)
  if (issue.code !== 'unrecognized_keys') return invalidField(field, valueAt(value, issue.path), issue.message)
  const param = formatPath([...issue.path, issue.keys[0] ?? ''])
  const message = `${param} is not a field of ${field || 'the configuration'}. Use one of: ${issue.message}.`
  return new MemoryError('bad-option', message, { param })
}

/** Fields with a secret, or with a value that contains one when its shape is wrong. */
const secretFields = /(?:^|\.)(?:key|secret|webhook)$|^upstreams(?:\[\d+\])?$|^mcp\.providers\b/

/** An invalid address of an embedder may contain a password. */
const withoutAddress = (field: string, value: unknown): unknown =>
  field === 'embedder' && typeof value === 'string' ? value.replace(/@.*/s, '@…') : value

/** Creates the error for an invalid field. A value that may be a secret is not shown. */
export function invalidField(field: string, value: unknown, rule: string): MemoryError {
  const shown =
    value === undefined
      ? 'missing'
      : secretFields.test(field)
        ? '…'
        : shortenText(JSON.stringify(withoutAddress(field, value)) ?? typeof value, 60)
  return new MemoryError('bad-option', `${field || 'The configuration'} is ${shown}; it must be ${rule}.`, {
    param: field || 'config',
  })
}

/** Formats a path such as `upstreams[0].base`. */
const formatPath = (path: readonly PropertyKey[]): string =>
  path
    .map((step) => (typeof step === 'number' ? `[${step}]` : `.${String(step)}`))
    .join('')
    .replace(/^\./, '')

const valueAt = (value: unknown, path: readonly PropertyKey[]): unknown =>
  path.reduce<unknown>(
    (inner, step) =>
      typeof inner === 'object' && inner !== null ? (inner as Record<PropertyKey, unknown>)[step] : undefined,
    value,
  )
