import { z } from 'zod'
import { MemoryError } from '../../domain/error.ts'
import { parseKey } from '../../domain/key.ts'
import { logLevels } from '../observability/log.ts'
import { duration } from './duration.ts'

/** Messages complete the sentence "port is "x"; it must be …". */
const text = z.string('text').min(1, 'text that is not empty')
const whole = (least: number, most = Number.MAX_SAFE_INTEGER) => {
  const right =
    most === Number.MAX_SAFE_INTEGER ? `a whole number, ${least} or more` : `a whole number, from ${least} to ${most}`
  return z.int(right).min(least, right).max(most, right)
}
const flag = z.boolean('true or false')
const list = z.array(text, 'a list of texts')
const oneOf = <const T extends readonly string[]>(...choices: T) => z.enum(choices, `one of ${choices.join(', ')}`)
const named = <T extends z.ZodType>(value: T) =>
  z.record(z.string().regex(/^[\w.-]{1,64}$/), value, {
    error: ({ code }) => (code === 'invalid_key' ? 'named with letters, digits and _ . -' : 'an object'),
  })

/** Nothing but these fields: a typing mistake would otherwise count as left out. */
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
  rename: z.record(z.string(), text, 'an object of names of models').optional(),
})

const template = fields({
  profile: text.optional(),
  idle: duration.optional(),
  age: duration.optional(),
  preamble: text.optional(),
  budget: whole(1).optional(),
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

const scope = text.refine(isScope, 'a workspace such as my-project, without a session')

/** What is set field by field, so that a flag may change one of them. */
export const sections = {
  listen: fields({
    host: text.optional(),
    port: whole(0, 65_535).optional(),
    names: list.optional(),
    origins: list.optional(),
  }),
  keys: fields({ file: text.optional(), required: flag.optional() }),
  limits: fields({
    body: whole(1).optional(),
    file: whole(1).optional(),
    perMinute: whole(1).optional(),
    abreast: whole(1).optional(),
    total: whole(1).optional(),
    ram: whole(1).optional(),
  }),
  timeouts: fields({ first: duration.optional(), idle: duration.optional(), total: duration.optional() }),
  retries: fields({ tries: whole(1).optional(), wait: duration.optional(), longest: duration.optional() }),
  log: fields({ level: oneOf(...logLevels).optional() }),
  mcp: fields({
    workspace: scope.optional(),
    only: z.array(scope).min(1).optional(),
    allow: list.optional(),
    write: flag.optional(),
    audit: text.optional(),
    users: named(list).optional(),
    providers: named(provider).optional(),
    retention: duration.optional(),
    tokenLimit: whole(1).optional(),
    threshold: z.number('a part of the limit, above 0 and up to 1').gt(0, 'above 0').max(1, 'at most 1').optional(),
    margin: whole(0).optional(),
    budget: whole(1).optional(),
    importance: z.number('a number from 1 to 10').min(1, 'at least 1').max(10, 'at most 10').optional(),
    items: whole(0).optional(),
    summarise: flag.optional(),
    compress: flag.optional(),
  }),
} as const

/** Everything a server can be told. Profiles and prices are checked where they are understood. */
export const config = fields({
  listen: sections.listen.optional(),
  store: text.optional(),
  storeKey: text.optional(),
  profile: text.optional(),
  budget: whole(1).optional(),
  tenantProfile: text.optional(),
  sessions: flag.optional(),
  profiles: named(object).optional(),
  templates: named(template).optional(),
  upstreams: z.array(upstream, 'a list of upstreams').optional(),
  upkeep: text.optional(),
  secrets: oneOf('mask', 'hide', 'keep').optional(),
  defaultScope: text.refine(isScope, 'a tenant such as acme, without a session').optional(),
  keys: sections.keys.optional(),
  limits: sections.limits.optional(),
  timeouts: sections.timeouts.optional(),
  retries: sections.retries.optional(),
  webhook: fields({ url: text, secret: text.optional(), secretEnv: text.optional() }).optional(),
  prices: z.union([text, object], 'the path of a JSON file, or a table of prices').optional(),
  log: sections.log.optional(),
  mcp: sections.mcp.optional(),
  sweepEvery: duration.optional(),
})

export type Config = z.output<typeof config>

/**
 * Checks a configuration; the error names the field and what would be right, and repeats no secret.
 *
 * @example
 * parseConfig({ listen: { port: 8080 }, templates: { sales: { profile: 'support', idle: '2h' } } })
 */
export function parseConfig(value: unknown): Config {
  const { data, error } = config.safeParse(value)
  if (error === undefined) return data
  // A name nobody knows is more likely the mistake than the field that is missing because of it.
  const issue = error.issues.find(({ code }) => code === 'unrecognized_keys') ?? error.issues[0]
  throw issue === undefined ? new MemoryError('bad-option', 'The configuration cannot be read.') : refused(issue, value)
}

function refused(issue: z.core.$ZodIssue, value: unknown): MemoryError {
  const at = nameOf(issue.path)
  if (issue.code !== 'unrecognized_keys') return wrong(at, valueAt(value, issue.path), issue.message)
  const param = nameOf([...issue.path, issue.keys[0] ?? ''])
  return new MemoryError('bad-option', `${param} is unknown; ${at || 'the configuration'} has only ${issue.message}.`, {
    param,
  })
}

/** Where a secret stands, or would if the shape were right. */
const secretive = /(?:^|\.)(?:key|secret|webhook)$|^upstreams(?:\[\d+\])?$|^mcp\.providers\b/

/** Names a field and what would be right in it; what may be a secret is not repeated. */
export function wrong(at: string, value: unknown, right: string): MemoryError {
  const shown =
    value === undefined ? 'missing' : secretive.test(at) ? '…' : (JSON.stringify(value)?.slice(0, 60) ?? typeof value)
  return new MemoryError('bad-option', `${at || 'The configuration'} is ${shown}; it must be ${right}.`, {
    param: at || 'config',
  })
}

/** `upstreams[0].base`, as people write it. */
const nameOf = (path: readonly PropertyKey[]): string =>
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
