import type { Command } from 'commander'
import { MemoryError } from '../domain/error.ts'
import type { Key } from '../domain/key.ts'
import type { Profile } from '../domain/profile.ts'
import type { Memory } from '../memory.ts'
import type { Serving } from '../server/serve.ts'
import { defaultFile } from '../stores/open.ts'
import { exitCodes } from './failure.ts'
import { type Environment, profileWith, setting, wholeNumber } from './settings.ts'
import { storeSettings } from './store.ts'

type Flags = {
  readonly port?: string
  readonly host?: string
  readonly store?: string
  readonly storeKey?: string
  readonly upstream?: string
  readonly profile?: string
  readonly budget?: string
  readonly upkeep?: string
  readonly secrets?: string
  readonly json?: boolean
}

const help = `
Flags count more than the environment. Clients use their own keys; OPENAI_API_KEY is sent to the upstream
for those that have none. Without an upstream the built-in offline model answers, by quoting what it remembers.

Examples:
  threadkeep serve
  threadkeep serve --upstream http://localhost:11434/v1 --profile support
  threadkeep serve --port 0 --json

${exitCodes}`

/** The command that serves memory behind OpenAI's protocol. */
export function addServe(program: Command): void {
  program
    .command('serve')
    .description("serve memory behind OpenAI's protocol: POST /v1/{key}/chat/completions")
    .option('--port <number>', 'port to listen on, 0 for a free one (THREADKEEP_PORT; 4848)')
    .option('--host <address>', 'address to listen on (127.0.0.1)')
    .option('--store <url>', 'where memory is kept: sqlite:PATH or ram: (THREADKEEP_STORE; sqlite:threadkeep.db)')
    .option('--store-key <source>', 'encrypt it with the key from file:PATH, env:NAME or command:PROGRAM (THREADKEEP_STORE_KEY)')
    .option('--upstream <url>', 'model server, such as http://localhost:11434/v1 (THREADKEEP_UPSTREAM, OPENAI_BASE_URL)')
    .option('--profile <name>', 'how memory works: thread, support, summary, agent, handoff or ephemeral (THREADKEEP_PROFILE; thread)')
    .option('--budget <tokens>', "tokens a model is shown at most (the profile's)")
    .option('--upkeep <who>', "who sums up what is old: builtin, off, or a model of the upstream (THREADKEEP_UPKEEP; the client's model)")
    .option('--secrets <policy>', 'keys and passwords in what is said: mask, hide or keep (THREADKEEP_SECRETS; mask)')
    .option('--json', 'tell the address as JSON')
    .addHelpText('after', help)
    .action((flags: Flags) => run(flags, process.env))
}

async function run(flags: Flags, environment: Environment): Promise<void> {
  const port = wholeNumber(setting(flags.port, environment, 'THREADKEEP_PORT') ?? '4848', 'port', 0, 65_535)
  const chosen = await profileWith(setting(flags.profile, environment, 'THREADKEEP_PROFILE') ?? 'thread', flags.budget)
  const profile = { ...chosen, secrets: secretsOf(setting(flags.secrets, environment, 'THREADKEEP_SECRETS') ?? chosen.secrets) }
  const { store, storeKey } = kept(flags, environment, profile)
  const upstream = setting(flags.upstream, environment, 'THREADKEEP_UPSTREAM', 'OPENAI_BASE_URL')
  const apiKey = setting(undefined, environment, 'OPENAI_API_KEY')
  // Loaded only now, so that help is given and mistakes are told at once.
  const [{ openMemory }, { serve }, { SessionModels }] = await Promise.all([
    import('../index.ts'),
    import('../server/serve.ts'),
    import('../server/sessionModels.ts'),
  ])
  const by = setting(flags.upkeep, environment, 'THREADKEEP_UPKEEP')
  const models = upstream === undefined || by === 'builtin' || by === 'off' ? undefined : new SessionModels({ upstream, apiKey, model: by })
  const upkeep = by === 'off' ? { upkeep: false as const } : models === undefined ? {} : { model: (key: Key) => models.for(key) }
  await using memory = await openMemory({ profile, store, ...storeKey, ...upkeep })
  const onFault = (requestId: string, trace: string): void => void process.stderr.write(`${requestId} ${trace}\n`)
  await using serving = await serve({ memory, models, host: flags.host, port, upstream, apiKey, onFault })
  process.stdout.write(flags.json ? `${JSON.stringify(facts(serving, memory, store))}\n` : banner(serving, memory, store))
  await signalled()
  await serving.close()
}

function secretsOf(policy: string): Profile['secrets'] {
  if (policy === 'mask' || policy === 'hide' || policy === 'keep') return policy
  throw new MemoryError('bad-option', `secrets is ${JSON.stringify(policy.slice(0, 40))}; it must be mask, hide or keep.`, { param: 'secrets' })
}

/** A profile that never leaves RAM gets no file it would not use, unless one is asked for. */
function kept(flags: Flags, environment: Environment, profile: Profile): { readonly store: string; readonly storeKey: { readonly storeKey?: string } } {
  const { url, key } = storeSettings(flags, environment)
  const isChosen = setting(flags.store, environment, 'THREADKEEP_STORE') !== undefined
  const needsNone = profile.durability === 'ram' && !profile.sees.includes('scope')
  if (needsNone && !isChosen) return { store: 'ram:', storeKey: {} }
  return { store: url === 'sqlite:' ? `sqlite:${defaultFile}` : url, storeKey: key === undefined ? {} : { storeKey: key } }
}

const facts = ({ url, answers }: Serving, { profile }: Memory, store: string) => ({ url, answers, store, profile: profile.name, budget: profile.budget })

function banner(serving: Serving, { profile }: Memory, store: string): string {
  const gone = 'is in RAM and is gone when this stops.'
  const rests =
    store === 'ram:'
      ? `Memory ${gone}`
      : profile.durability === 'ram'
        ? `What sessions say ${gone} The rest is kept in ${store}.`
        : `Memory is kept in ${store}.`
  const open = /^http:\/\/(?:127\.|\[::1\])/.test(serving.url) ? [] : ['Whoever reaches this address can read and write memory.']
  const secrets =
    profile.secrets === 'keep' && profile.durability === 'durable'
      ? ['WARNING: keys and passwords in what is said are kept like anything else (--secrets keep).']
      : []
  const body = `'{"model":"any","messages":[{"role":"user","content":"My cat is called Miso."}]}'`
  const lines = [
    `Threadkeep listens on ${serving.url}`,
    `${serving.answers} answers; profile ${profile.name}, at most ${profile.budget} tokens. ${rests}`,
    ...open,
    ...secrets,
    'Try it, then ask what your cat is called:',
    `  curl ${serving.url}/v1/demo:me/chat/completions -H 'content-type: application/json' -d ${body}`,
  ]
  return `${lines.join('\n')}\n`
}

/** Resolves when the process is asked to stop; asked again, it stops at once. */
async function signalled(): Promise<void> {
  await new Promise<void>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve())
  })
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))
}
