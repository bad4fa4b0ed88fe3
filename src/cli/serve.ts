import type { Command } from 'commander'
import { maskStoreUrl } from '../domain/error.ts'
import type { Profile } from '../domain/profile.ts'
import type { ProfileConfig } from '../server/memoryRegistry.ts'
import type { OpenedServer } from '../server/openServer.ts'
import { addConfigOptions, type ConfigFlags, readConfigSources } from './configOptions.ts'
import type { Environment } from './options.ts'
import { limitHeapGrowth } from './terminal/heapGrowth.ts'
import { setHelp } from './terminal/help.ts'
import { releaseInterruptHandler } from './terminal/interrupt.ts'

type Flags = ConfigFlags & { readonly open?: boolean; readonly json?: boolean }

export function addServeCommand(program: Command): void {
  const command = addConfigOptions(program.command('serve'))
    .description('serve memory through the OpenAI and Anthropic protocols: POST /v1/{key}/chat/completions')
    .summary('serve memory through the OpenAI and Anthropic protocols')
    .option('--open', 'allow a public address without API keys')
    .option('--json', 'print the address as JSON')
    .action((flags: Flags) => run(flags, process.env))
  setHelp(command, {
    details: [
      'Precedence: flags, environment, file. Run threadkeep config print to see the effective settings. Clients send their own API keys. Without an upstream, the built-in offline model answers by quoting memory. Changes to profiles and templates in the file take effect at once. SIGTERM lets requests finish; a second SIGTERM stops at once.',
    ],
    variables: { OPENAI_API_KEY: 'key that is sent to the upstream for clients that send none' },
    examples: [
      'threadkeep serve',
      'threadkeep serve --upstream http://localhost:11434/v1 --profile support',
      'threadkeep serve --config threadkeep.config.json --log info',
      'threadkeep serve --port 0 --json',
    ],
  })
}

async function run(flags: Flags, environment: Environment): Promise<void> {
  limitHeapGrowth()
  const sources = await readConfigSources(flags, environment)
  // Loaded lazily, so that help and usage errors appear at once.
  const [{ loadSettings }, { resolveServerConfig }] = await Promise.all([
    import('../server/config/settings.ts'),
    import('../server/config/serverConfig.ts'),
  ])
  const loaded = await loadSettings(sources)
  const plan = resolveServerConfig(loaded.settings, environment)
  const [{ openServer }, { ConfigWatcher }, { openLog }, { describeRedis }] = await Promise.all([
    import('../server/openServer.ts'),
    import('../server/config/configWatcher.ts'),
    import('../server/observability/log.ts'),
    import('../stores/redis/url.ts'),
  ])
  const log = openLog({ level: plan.logLevel, destination: process.stderr })
  const isOpen = flags.open === true
  await using server = await openServer(plan, { allowPublic: isOpen, log })
  const watcher = new ConfigWatcher({
    input: sources,
    loaded,
    log,
    applyProfiles: (profileConfig) => server.memories.replace(profileConfig),
  })
  const unwatch = watcher.watch()
  // In a terminal, SIGHUP means that the terminal was closed and ends the server as usual.
  if (loaded.settings.file !== undefined && process.stdout.isTTY !== true)
    process.on('SIGHUP', () => void watcher.reload())
  const info: ServerInfo = {
    server,
    profileConfig: plan.profiles,
    store: maskStoreUrl(plan.store),
    sessions: plan.sessions === undefined ? undefined : describeRedis(plan.sessions),
    embedder: plan.embedder?.name,
    isOpen,
  }
  process.stdout.write(flags.json === true ? `${JSON.stringify(toJson(info))}\n` : formatBanner(info))
  log.event('listening', { url: server.url })
  await waitForSignal()
  log.event('stopping')
  unwatch()
  await server.close(plan.shutdown.grace)
}

/** Resolves on the first SIGINT or SIGTERM; the next one exits at once. */
async function waitForSignal(): Promise<void> {
  releaseInterruptHandler()
  await new Promise<void>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve())
  })
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))
}

/** Facts about a started server that the command prints. */
type ServerInfo = {
  readonly server: OpenedServer
  readonly profileConfig: ProfileConfig
  readonly store: string
  /** Address of the Redis store of sessions, without credentials; undefined when they are in RAM. */
  readonly sessions: string | undefined
  readonly embedder: string | undefined
  readonly isOpen: boolean
}

function toJson({
  server: { url, backend },
  profileConfig,
  store,
  sessions,
  embedder,
}: ServerInfo): Readonly<Record<string, string | number>> {
  const { name, budget, budgetMode } = profileConfig.session ?? profileConfig.scope
  return {
    ...{ url, answers: backend, store, profile: name, budget: budgetMode === 'auto' ? 'auto' : budget },
    ...(sessions !== undefined && { sessions }),
    ...(embedder !== undefined && { embedder }),
  }
}

/** With budget `auto`, the context window limits the prompt, and the profile's budget what memory adds to it. */
const describeBudget = ({ budget, budgetMode }: Profile): string =>
  budgetMode === 'auto' ? `budget auto with at most ${budget} tokens of memory` : `budget ${budget} tokens`

/** Formats the address, the client settings, the location of memory, warnings, and a command to try. */
function formatBanner(info: ServerInfo): string {
  const { url, backend, requiresKeys } = info.server
  const profile = info.profileConfig.session ?? info.profileConfig.scope
  const body = `'{"model":"any","messages":[{"role":"user","content":"My cat is called Miso."}]}'`
  const keyHeader = requiresKeys ? " -H 'authorization: Bearer tk_…'" : ''
  const lines = [
    `Threadkeep is listening on ${url}`,
    `Model: ${backend}. Base URL for clients: ${url}/v1/demo:me (any tenant:session). API key: ${requiresKeys ? 'create one with threadkeep keys create' : 'any'}. MCP: ${url}/mcp`,
    `${describeStorage(info, profile)} Profile ${profile.name}, ${describeBudget(profile)}.`,
    ...(info.embedder === undefined ? [] : [`Search by meaning: ${info.embedder}.`]),
    ...findWarnings(info),
    'Try it, then ask what your cat is called:',
    `  curl ${url}/v1/demo:me/chat/completions -H 'content-type: application/json'${keyHeader} -d ${body}`,
  ]
  return `${lines.join('\n')}\n`
}

function describeStorage({ store, sessions, profileConfig }: ServerInfo, { durability }: Profile): string {
  if (sessions !== undefined) return `Sessions of RAM-only profiles are in ${sessions}. ${describeTenantStorage(store)}`
  if (store === 'ram:') return 'Memory is in RAM and lost on exit.'
  if (profileConfig.session === undefined) return `Session memory is off. ${describeTenantStorage(store)}`
  return durability === 'ram'
    ? `Session memory is in RAM and lost on exit. ${describeTenantStorage(store)}`
    : `Memory is stored in ${store}.`
}

const describeTenantStorage = (store: string): string =>
  store === 'ram:' ? 'Tenant memory is in RAM and lost on exit.' : `Tenant memory is stored in ${store}.`

function findWarnings({ server, isOpen, profileConfig }: ServerInfo): readonly string[] {
  const isPublic = !/^http:\/\/(?:127\.|\[::1\])/.test(server.url)
  const profiles = [
    profileConfig.scope,
    ...(profileConfig.session === undefined ? [] : [profileConfig.session]),
    ...Object.values(profileConfig.templates).map(({ profile }) => profile),
  ]
  const storesSecrets = profiles.some(({ secrets, durability }) => secrets === 'keep' && durability === 'durable')
  return [
    ...(isOpen && isPublic && !server.requiresKeys
      ? ['WARNING: anyone who can reach this address can read and write memory (--open).']
      : []),
    ...(storesSecrets ? ['WARNING: keys and passwords in messages are stored unmasked (--secrets keep).'] : []),
  ]
}
