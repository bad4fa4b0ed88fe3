import type { Command } from 'commander'
import type { Said } from '../server/config/load.ts'
import type { Given, Setting } from '../server/config/settings.ts'
import { type Environment, setting, wholeNumber } from './settings.ts'

/** What may be said of the configuration on the command line. */
export type ConfigFlags = Readonly<
  Partial<
    Record<
      | 'config'
      | 'port'
      | 'host'
      | 'store'
      | 'storeKey'
      | 'upstream'
      | 'profile'
      | 'budget'
      | 'upkeep'
      | 'secrets'
      | 'keys'
      | 'log',
      string
    >
  >
>

type Source = {
  readonly flag: keyof ConfigFlags
  readonly variables: readonly string[]
  readonly read?: (text: string, environment: Environment) => unknown
}

/** Which flag and which variables say what, by the field of the configuration. */
const sources: Readonly<Record<string, Source>> = {
  'listen.host': { flag: 'host', variables: ['THREADKEEP_HOST'] },
  'listen.port': { flag: 'port', variables: ['THREADKEEP_PORT'], read: (text) => wholeNumber(text, 'port', 0, 65_535) },
  store: { flag: 'store', variables: ['THREADKEEP_STORE'] },
  storeKey: { flag: 'storeKey', variables: ['THREADKEEP_STORE_KEY'] },
  profile: { flag: 'profile', variables: ['THREADKEEP_PROFILE'] },
  budget: { flag: 'budget', variables: ['THREADKEEP_BUDGET'], read: (text) => wholeNumber(text, 'budget', 1) },
  upstreams: { flag: 'upstream', variables: ['THREADKEEP_UPSTREAM', 'OPENAI_BASE_URL'], read: soleUpstream },
  upkeep: { flag: 'upkeep', variables: ['THREADKEEP_UPKEEP'] },
  secrets: { flag: 'secrets', variables: ['THREADKEEP_SECRETS'] },
  'keys.file': { flag: 'keys', variables: ['THREADKEEP_KEYS'] },
  'log.level': { flag: 'log', variables: ['THREADKEEP_LOG'] },
}

/** The options of every command that works on the configuration. */
export function withConfig(command: Command): Command {
  return command
    .option(
      '--config <file>',
      'the configuration, JSON or a module (THREADKEEP_CONFIG; threadkeep.config.json, .ts, .mjs or .js)',
    )
    .option('--port <number>', 'port to listen on, 0 for a free one (THREADKEEP_PORT; 4848)')
    .option('--host <address>', 'address to listen on (THREADKEEP_HOST; 127.0.0.1)')
    .option('--store <url>', 'where memory is kept: sqlite:PATH or ram: (THREADKEEP_STORE; sqlite:threadkeep.db)')
    .option(
      '--store-key <source>',
      'encrypt it with the key from file:PATH, env:NAME or command:PROGRAM (THREADKEEP_STORE_KEY)',
    )
    .option(
      '--upstream <url>',
      'model server, such as http://localhost:11434/v1 (THREADKEEP_UPSTREAM, OPENAI_BASE_URL)',
    )
    .option(
      '--profile <name>',
      'how memory works: thread, support, summary, agent, handoff, ephemeral or one of your own (THREADKEEP_PROFILE; thread)',
    )
    .option('--budget <tokens>', "tokens a model is shown at most (THREADKEEP_BUDGET; the profile's)")
    .option(
      '--upkeep <who>',
      "who sums up what is old: builtin, off, or a model of the upstream (THREADKEEP_UPKEEP; the client's model)",
    )
    .option('--secrets <policy>', 'keys and passwords in what is said: mask, hide or keep (THREADKEEP_SECRETS; mask)')
    .option('--keys <file>', 'the keys that clients are asked for (THREADKEEP_KEYS; threadkeep-keys.json)')
    .option('--log <level>', 'what is logged: debug, info, warn, error or silent (THREADKEEP_LOG; warn)')
}

/** What flags and the environment say, and which file they name. */
export async function saidOf(flags: ConfigFlags, environment: Environment): Promise<Said> {
  const [{ parseConfig }, { configOf }] = await Promise.all([
    import('../server/config/schema.ts'),
    import('../server/config/settings.ts'),
  ])
  const given = [givenBy(flags, environment, 'flag'), givenBy(flags, environment, 'environment')]
  for (const one of given) parseConfig(configOf(one))
  return { file: setting(flags.config, environment, 'THREADKEEP_CONFIG'), sources: given }
}

function givenBy(flags: ConfigFlags, environment: Environment, from: 'flag' | 'environment'): Given {
  const given = new Map<string, Setting>()
  for (const [field, { flag, variables, read }] of Object.entries(sources)) {
    const variable = variables.find((name) => setting(undefined, environment, name) !== undefined)
    const [name, text] =
      from === 'flag'
        ? [flagName(flag), setting(flags[flag], {})]
        : [variable, setting(undefined, environment, ...variables)]
    if (text !== undefined) given.set(field, { value: read?.(text, environment) ?? text, from, name })
  }
  return given
}

const flagName = (flag: string): string => `--${flag.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`

/** The one upstream that is named outside the file. Clients use their own keys; the key in the environment is for those that have none. */
function soleUpstream(base: string, environment: Environment): unknown {
  const key = setting(undefined, environment, 'OPENAI_API_KEY')
  return [{ name: 'upstream', base, protocol: 'openai', ...(key === undefined ? {} : { key }) }]
}
