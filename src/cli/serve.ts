import type { Command } from 'commander'
import { exitCodes } from './failure.ts'
import { type ConfigFlags, saidOf, withConfig } from './given.ts'
import type { Environment } from './settings.ts'

type Flags = ConfigFlags & { readonly open?: boolean; readonly json?: boolean }

/** How long requests may take to finish once the server is asked to stop. */
const grace = 30_000

const help = `
Flags count more than the environment, and that more than the file; threadkeep config print tells what holds. Clients use
their own keys; OPENAI_API_KEY is sent to the upstream for those that have none. Without an upstream the built-in offline
model answers, by quoting what it remembers. Profiles and templates that change in the file count at once. SIGTERM lets
requests finish; a second one does not.

Examples:
  threadkeep serve
  threadkeep serve --upstream http://localhost:11434/v1 --profile support
  threadkeep serve --config threadkeep.config.json --log info
  threadkeep serve --port 0 --json

${exitCodes}`

/** The command that serves memory behind the protocols of OpenAI and Anthropic. */
export function addServe(program: Command): void {
  withConfig(program.command('serve'))
    .description("serve memory behind OpenAI's and Anthropic's protocols: POST /v1/{key}/chat/completions")
    .option('--open', 'let everybody in who reaches the address, although no keys are asked for')
    .option('--json', 'tell the address as JSON')
    .addHelpText('after', help)
    .action((flags: Flags) => run(flags, process.env))
}

async function run(flags: Flags, environment: Environment): Promise<void> {
  const said = await saidOf(flags, environment)
  // Loaded only now, so that help is given and mistakes are told at once.
  const [{ loadSettings }, { planOf }] = await Promise.all([
    import('../server/config/load.ts'),
    import('../server/config/plan.ts'),
  ])
  const loaded = await loadSettings(said)
  const plan = planOf(loaded.settings, environment)
  const [{ openServer }, { Following }, { openLog }, { banner, factsOf }] = await Promise.all([
    import('../server/openServer.ts'),
    import('../server/config/follow.ts'),
    import('../server/observability/log.ts'),
    import('./banner.ts'),
  ])
  const log = openLog({ level: plan.logLevel, destination: process.stderr })
  const isOpen = flags.open === true
  await using server = await openServer(plan, { isOpen, log })
  const following = new Following({ said, loaded, log, replace: (ways) => server.memories.replace(ways) })
  const unwatch = following.watch()
  // At a terminal it says that the terminal is gone, and ends the server as it ends anything.
  if (loaded.settings.file !== undefined && process.stdout.isTTY !== true)
    process.on('SIGHUP', () => void following.look())
  const facts = { server, ways: plan.ways, store: plan.store, isOpen }
  process.stdout.write(flags.json === true ? `${JSON.stringify(factsOf(facts))}\n` : banner(facts))
  log.note('listening', { url: server.url })
  await signalled()
  log.note('stopping')
  unwatch()
  await server.close(grace)
}

/** Resolves when the process is asked to stop; asked again, it stops at once. */
async function signalled(): Promise<void> {
  await new Promise<void>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve())
  })
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))
}
