import { readFileSync } from 'node:fs'
import type { Millis } from '../../domain/entry.ts'
import { MemoryError } from '../../domain/error.ts'
import { parseJson } from '../../models/json.ts'
import { fileOf } from '../../stores/open.ts'
import type { Allowance } from '../gate/limits.ts'
import type { WebhookOptions } from '../lifecycle/webhook.ts'
import type { Ways } from '../memories.ts'
import type { Persistence } from '../upstreams/pool.ts'
import type { Patience, UpstreamOptions } from '../upstreams/upstream.ts'
import type { LogLevel } from '../watch/log.ts'
import { type PriceTable, parsePrices } from '../watch/prices.ts'
import { type Config, wrong } from './schema.ts'
import { needsFile, type Settings } from './settings.ts'

/** A server as it is to be opened: everything decided, every secret at hand. */
export type Plan = {
  readonly listen: { readonly host: string; readonly port: number; readonly names: readonly string[]; readonly origins: readonly string[] }
  readonly store: string
  readonly storeKey: string | undefined
  /** What sessions in RAM may take together, in bytes. */
  readonly ram: number | undefined
  readonly ways: Ways
  readonly upstreams: readonly UpstreamOptions[]
  /** `builtin`, `off`, or the name of a model; the one each client asks for when left out. */
  readonly upkeep: string | undefined
  readonly defaultScope: string | undefined
  /** Where keys are, and whether they must be there. */
  readonly keys: { readonly file: string; readonly isExpected: boolean }
  readonly allowance: Allowance
  readonly largest: { readonly body: number; readonly file: number }
  readonly patience: Patience
  readonly persistence: Persistence
  readonly webhook: Pick<WebhookOptions, 'url' | 'secret'> | undefined
  readonly prices: PriceTable | undefined
  readonly logLevel: LogLevel
  readonly sweepEvery: Millis
}

type Environment = Readonly<Record<string, string | undefined>>

/** Makes settings into a plan: secrets are taken from the variables that are named, and what cannot go together is refused. */
export function planOf({ config, given, ways }: Settings, environment: Environment): Plan {
  const { keys, limits } = config
  checkStore(config, ways, given.get('store')?.from === 'default')
  const { perMinute, abreast, total, ram } = limits
  return {
    listen: config.listen,
    store: fileOf(config.store) === undefined ? config.store : `sqlite:${fileOf(config.store)}`,
    storeKey: config.storeKey,
    ram,
    ways,
    upstreams: upstreamsOf(config.upstreams, environment),
    upkeep: config.upkeep,
    defaultScope: config.defaultScope,
    // Whoever names a file means it: a typing mistake must not open the house.
    keys: { file: keys.file, isExpected: keys.required ?? given.get('keys.file')?.from !== 'default' },
    allowance: { perMinute, abreast, total },
    largest: { body: limits.body, file: limits.file },
    patience: config.timeouts,
    persistence: config.retries,
    webhook: webhookOf(config.webhook, environment),
    prices: pricesOf(config.prices),
    logLevel: config.log.level,
    sweepEvery: config.sweepEvery,
  }
}

/** What lives in RAM alone is not given a file, even if that would stay empty. */
function checkStore(config: Settings['config'], ways: Ways, isDefault: boolean): void {
  if (isDefault || fileOf(config.store) === undefined || needsFile(ways, config)) return
  const { name } = ways.session ?? ways.scope
  throw new MemoryError(
    'bad-option',
    `Profile ${name} lives in RAM only and refuses a durable store. Leave out store, or choose a durable profile such as thread.`,
    { param: 'store' },
  )
}

function upstreamsOf(upstreams: NonNullable<Config['upstreams']>, environment: Environment): readonly UpstreamOptions[] {
  const named = upstreams.map((given, place) => {
    const { name, base, protocol = 'openai', keyEnv, models, rename } = given
    const key = secretOf(`upstreams[${place}]`, 'key', { plain: given.key, variable: keyEnv }, environment)
    return { name: name ?? hostOf(base), base, protocol, key, models, rename }
  })
  const twice = named.findIndex(({ name }, place) => named.findIndex((other) => other.name === name) !== place)
  if (twice >= 0) throw wrong(`upstreams[${twice}].name`, named[twice]?.name, 'different from the names of the others')
  return named
}

const hostOf = (base: string): string => (URL.canParse(base) ? new URL(base).host : base)

function webhookOf(webhook: Config['webhook'], environment: Environment): Plan['webhook'] {
  if (webhook === undefined) return undefined
  const { url, secret: plain, secretEnv: variable } = webhook
  const secret = secretOf('webhook', 'secret', { plain, variable }, environment)
  if (secret !== undefined) return { url, secret }
  throw wrong('webhook.secretEnv', undefined, 'the name of the variable that holds the secret, so that whoever is told can check who tells it')
}

type Secret = { readonly plain: string | undefined; readonly variable: string | undefined }

/** A secret that is written down, or held by the variable that is named; a name nobody has set is a mistake. */
function secretOf(at: string, field: 'key' | 'secret', { plain, variable }: Secret, environment: Environment): string | undefined {
  if (variable === undefined) return plain
  if (plain !== undefined) throw wrong(`${at}.${field}`, plain, `left out where ${field}Env names a variable`)
  const value = environment[variable]?.trim()
  if (value !== undefined && value !== '') return value
  throw wrong(`${at}.${field}Env`, variable, 'a variable that is set')
}

function pricesOf(prices: Config['prices']): PriceTable | undefined {
  if (prices === undefined) return undefined
  if (typeof prices !== 'string') return parsePrices(prices)
  return parsePrices(parseJson(textOf(prices)))
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (cause) {
    throw new MemoryError('bad-option', `prices is ${JSON.stringify(file)}, which cannot be opened. Name a JSON file that is there.`, {
      param: 'prices',
      cause,
    })
  }
}
