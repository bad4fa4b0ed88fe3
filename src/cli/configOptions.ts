import type { Command } from 'commander'
import type { ConfigInput, ConfigSource, Setting } from '../server/config/settings.ts'
import { type Environment, embedderOption, parseInteger, readOption } from './options.ts'
import { option } from './terminal/help.ts'

/** Flags that set a field of the configuration. */
export type ConfigFlags = Readonly<
  Partial<
    Record<
      | 'config'
      | 'port'
      | 'host'
      | 'store'
      | 'storeKey'
      | 'sessions'
      | 'upstream'
      | 'profile'
      | 'budget'
      | 'upkeep'
      | 'embedder'
      | 'secrets'
      | 'keys'
      | 'log',
      string
    >
  >
>

type FieldSource = {
  readonly flag: keyof ConfigFlags
  readonly variables: readonly string[]
  readonly parse?: (text: string, environment: Environment) => unknown
}

/** Parses the same values as the configuration file: true, false or a URL. */
const parseSessions = (text: string): unknown => (text === 'true' || text === 'false' ? text === 'true' : text)

/** Flag and environment variables of each configuration field. */
const fieldSources: Readonly<Record<string, FieldSource>> = {
  'listen.host': { flag: 'host', variables: ['THREADKEEP_HOST'] },
  'listen.port': {
    flag: 'port',
    variables: ['THREADKEEP_PORT'],
    parse: (text) => parseInteger(text, 'port', 0, 65_535),
  },
  store: { flag: 'store', variables: ['THREADKEEP_STORE'] },
  storeKey: { flag: 'storeKey', variables: ['THREADKEEP_STORE_KEY'] },
  sessions: { flag: 'sessions', variables: ['THREADKEEP_SESSIONS'], parse: parseSessions },
  profile: { flag: 'profile', variables: ['THREADKEEP_PROFILE'] },
  budget: {
    flag: 'budget',
    variables: ['THREADKEEP_BUDGET'],
    parse: (text) => (text === 'auto' ? text : parseInteger(text, 'budget', 1)),
  },
  upstreams: { flag: 'upstream', variables: ['THREADKEEP_UPSTREAM', 'OPENAI_BASE_URL'], parse: toUpstreams },
  upkeep: { flag: 'upkeep', variables: ['THREADKEEP_UPKEEP'] },
  embedder: { flag: 'embedder', variables: ['THREADKEEP_EMBEDDER'] },
  secrets: { flag: 'secrets', variables: ['THREADKEEP_SECRETS'] },
  'keys.file': { flag: 'keys', variables: ['THREADKEEP_KEYS'] },
  'log.level': { flag: 'log', variables: ['THREADKEEP_LOG'] },
}

type ConfigOption = readonly [flags: string, description: string, env: readonly string[], fallback?: string]

const configOptions: readonly ConfigOption[] = [
  [
    '--config <file>',
    'configuration file, JSON or a module',
    ['THREADKEEP_CONFIG'],
    'threadkeep.config.json, .ts, .mjs or .js',
  ],
  ['--port <number>', 'port to listen on, 0 for a free port', ['THREADKEEP_PORT'], '4848'],
  ['--host <address>', 'address to listen on', ['THREADKEEP_HOST'], '127.0.0.1'],
  [
    '--store <url>',
    'store: sqlite:PATH, postgres://USER:PASSWORD@HOST/DATABASE, pglite:PATH or ram:',
    ['THREADKEEP_STORE'],
    'sqlite:threadkeep.db',
  ],
  [
    '--store-key <source>',
    'encrypt the store with the key from file:PATH, env:NAME or command:PROGRAM',
    ['THREADKEEP_STORE_KEY'],
  ],
  [
    '--sessions <url>',
    'store for sessions of RAM-only profiles that several servers share: redis://HOST:PORT',
    ['THREADKEEP_SESSIONS'],
    'ram:',
  ],
  [
    '--upstream <url>',
    'base URL of the model server, such as http://localhost:11434/v1',
    ['THREADKEEP_UPSTREAM', 'OPENAI_BASE_URL'],
    'the built-in offline model',
  ],
  [
    '--profile <name>',
    'profile: thread, support, summary, agent, handoff, ephemeral or one from the configuration',
    ['THREADKEEP_PROFILE'],
    'thread',
  ],
  ['--budget <tokens>', 'token budget of each prompt, or auto', ['THREADKEEP_BUDGET'], 'auto'],
  [
    '--upkeep <model>',
    'model that summarises old messages: builtin, off, or a model of the upstream',
    ['THREADKEEP_UPKEEP'],
    "the client's model",
  ],
  ['--secrets <policy>', 'keys and passwords in messages: mask, hide or keep', ['THREADKEEP_SECRETS'], 'mask'],
  ['--keys <file>', 'file with the API keys of clients', ['THREADKEEP_KEYS'], 'threadkeep-keys.json'],
  ['--log <level>', 'log level: debug, info, warn, error or silent', ['THREADKEEP_LOG'], 'warn'],
]

/** Adds the options of every command that reads the server configuration. */
export function addConfigOptions(command: Command): Command {
  for (const [flags, description, env, fallback] of configOptions)
    command.addOption(option(flags, description, { env, ...(fallback === undefined ? {} : { fallback }) }))
  return command.addOption(embedderOption())
}

/** Reads the configuration fields set by flags and by the environment, and the configuration file they name. */
export async function readConfigSources(flags: ConfigFlags, environment: Environment): Promise<ConfigInput> {
  const [{ parseConfig }, { toConfig }] = await Promise.all([
    import('../server/config/schema.ts'),
    import('../server/config/settings.ts'),
  ])
  const sources = [readSource(flags, environment, 'flag'), readSource(flags, environment, 'environment')]
  for (const source of sources) parseConfig(toConfig(source))
  return { file: readOption(flags.config, environment, 'THREADKEEP_CONFIG'), sources }
}

function readSource(flags: ConfigFlags, environment: Environment, from: 'flag' | 'environment'): ConfigSource {
  const fields = new Map<string, Setting>()
  for (const [field, { flag, variables, parse }] of Object.entries(fieldSources)) {
    const variable = variables.find((name) => readOption(undefined, environment, name) !== undefined)
    const [name, text] =
      from === 'flag'
        ? [toFlagName(flag), readOption(flags[flag], {})]
        : [variable, readOption(undefined, environment, ...variables)]
    if (text !== undefined) fields.set(field, { value: parse?.(text, environment) ?? text, from, name })
  }
  return fields
}

const toFlagName = (flag: string): string => `--${flag.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`

/** Returns the upstream named by a flag or variable as the only one. Its key is used for clients that send none. */
function toUpstreams(base: string, environment: Environment): unknown {
  const key = readOption(undefined, environment, 'OPENAI_API_KEY')
  return [{ name: 'upstream', base, protocol: 'openai', ...(key === undefined ? {} : { key }) }]
}
