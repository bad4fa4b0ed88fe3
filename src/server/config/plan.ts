import { readFileSync } from 'node:fs'
import type { Millis } from '../../domain/entry.ts'
import { MemoryError } from '../../domain/error.ts'
import type { OnSessionEnd } from '../../lifecycle/endEvent.ts'
import { parseJson } from '../../text/json.ts'
import { endpoint } from '../../providers/url.ts'
import { fileOf } from '../../stores/open.ts'
import type { Allowance } from '../auth/limits.ts'
import { doorsOf } from '../http/hostPolicy.ts'
import type { Ways } from '../memoryRegistry.ts'
import type { LogLevel } from '../observability/log.ts'
import { type PriceTable, parsePrices } from '../observability/prices.ts'
import type { Persistence } from '../upstreams/pool.ts'
import type { Patience, UpstreamOptions } from '../upstreams/upstream.ts'
import { webhook } from '../webhooks/webhook.ts'
import { type McpPlan, mcpPlanOf } from './mcp.ts'
import { type Config, wrong } from './schema.ts'
import { type Given, needsFile, type Settings } from './settings.ts'

/** A server as it is to be opened: everything decided, every secret at hand. */
export type Plan = {
  readonly listen: {
    readonly host: string
    readonly port: number
    readonly names: readonly string[]
    readonly origins: readonly string[]
  }
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
  /** Who hears of sessions that end. */
  readonly onSessionEnd: OnSessionEnd | undefined
  readonly prices: PriceTable | undefined
  readonly logLevel: LogLevel
  readonly sweepEvery: Millis
  /** How sessions are handed over at `/mcp`. */
  readonly mcp: McpPlan
}

type Environment = Readonly<Record<string, string | undefined>>

/** Makes settings into a plan: secrets are taken from the variables that are named, and what cannot go together is refused. */
export function planOf({ config, given, ways }: Settings, environment: Environment): Plan {
  const { keys, limits } = config
  checkStore(config.store, ways, given)
  doorsOf({ ...config.listen, listening: config.listen.host })
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
    onSessionEnd: webhookOf(config.webhook, environment),
    prices: pricesOf(config.prices),
    logLevel: config.log.level,
    sweepEvery: config.sweepEvery,
    mcp: mcpPlanOf(config),
  }
}

/** What lives in RAM alone is not given a file, even if that would stay empty. */
function checkStore(store: string, ways: Ways, given: Given): void {
  if (fileOf(store) === undefined || needsFile(ways, given)) return
  const { name } = ways.session ?? ways.scope
  throw new MemoryError(
    'bad-option',
    `Profile ${name} lives in RAM only and refuses a durable store. Leave out store, or choose a durable profile such as thread.`,
    { param: 'store' },
  )
}

function upstreamsOf(
  upstreams: NonNullable<Config['upstreams']>,
  environment: Environment,
): readonly UpstreamOptions[] {
  const named = upstreams.map((given, place) => {
    const { base, protocol = 'openai', keyEnv, models, rename } = given
    const [name, at] = [given.name ?? hostOf(base), `upstreams[${place}]`]
    checkAddress(base, name === soleUpstream ? soleUpstream : `${at}.base`)
    return {
      name,
      base,
      protocol,
      key: secretOf(at, 'key', { plain: given.key, variable: keyEnv }, environment),
      models,
      rename,
    }
  })
  const twice = named.findIndex(({ name }, place) => named.findIndex((other) => other.name === name) !== place)
  if (twice >= 0) throw wrong(`upstreams[${twice}].name`, named[twice]?.name, 'different from the names of the others')
  return named
}

/** What the one upstream is called that is named by a flag or a variable: there is no place in a file to point at. */
const soleUpstream = 'upstream'

function checkAddress(base: string, param: string): void {
  try {
    endpoint(base, '')
  } catch (cause) {
    const right = 'an http:// or https:// address without a user name and password, such as http://localhost:11434/v1'
    throw new MemoryError('bad-option', `${param} must be ${right}.`, { param, cause })
  }
}

const hostOf = (base: string): string => (URL.canParse(base) ? new URL(base).host : base)

function webhookOf(given: Config['webhook'], environment: Environment): OnSessionEnd | undefined {
  if (given === undefined) return undefined
  const { url, secret: plain, secretEnv: variable } = given
  const secret = secretOf('webhook', 'secret', { plain, variable }, environment)
  if (secret !== undefined) return webhook({ url, secret })
  throw wrong(
    'webhook.secretEnv',
    undefined,
    'the name of the variable that holds the secret, so that whoever is told can check who tells it',
  )
}

type Secret = { readonly plain: string | undefined; readonly variable: string | undefined }

/** A secret that is written down, or held by the variable that is named; a name nobody has set is a mistake. */
function secretOf(
  at: string,
  field: 'key' | 'secret',
  { plain, variable }: Secret,
  environment: Environment,
): string | undefined {
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
    throw new MemoryError(
      'bad-option',
      `prices is ${JSON.stringify(file)}, which cannot be opened. Name a JSON file that is there.`,
      {
        param: 'prices',
        cause,
      },
    )
  }
}
