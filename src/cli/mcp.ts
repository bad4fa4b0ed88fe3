import { homedir } from 'node:os'
import type { Command } from 'commander'
import type { Key } from '../domain/key.ts'
import type { Visitor } from '../mcp/principal.ts'
import type { Host } from '../mcp/services.ts'
import type { Connection } from '../mcp/transports/stdio.ts'
import { internalsOf } from '../memory.ts'
import type { Config } from '../server/config/schema.ts'
import { exitCodes } from './failure.ts'
import { several } from './handoff.ts'
import { many } from './say.ts'
import { type Environment, setting } from './settings.ts'
import { type StoreFlags, storeSettings, withStore } from './store.ts'

type Flags = StoreFlags & {
  readonly config?: string
  readonly workspace?: string
  readonly only?: readonly string[]
  readonly import?: string
  readonly allow?: readonly string[]
  readonly write?: boolean
}

const help = `
A client starts this command and speaks to it over its standard input and output; nothing else is written there. Chats are
saved with save_session and go on elsewhere with restore_session; the nine tools of the reference memory server work as
they do there. threadkeep serve answers the same at /mcp. A store may be named as sqlite:~/threadkeep.db, in the home folder.
Only a configuration that is named is read: the folder a client starts this in may be anybody's.

Examples:
  threadkeep mcp
  threadkeep mcp --store sqlite:~/threadkeep.db --workspace my-project
  threadkeep mcp --allow ~/my-project --write
  threadkeep mcp --import ~/memory.jsonl

${exitCodes}`

/** The command that speaks the Model Context Protocol with the client that starts it. */
export function addMcp(program: Command): void {
  withStore(program.command('mcp'))
    .description('speak the Model Context Protocol: save chats, go on with them elsewhere, keep a knowledge graph')
    .option('--config <file>', 'the configuration, of which the section mcp counts (THREADKEEP_CONFIG)')
    .option('--workspace <name>', 'the workspace of calls that name none (THREADKEEP_WORKSPACE; default)')
    .option('--only <name>', 'a workspace that may be used, again for more; all when left out', several)
    .option(
      '--import <file>',
      'take in the file of the reference memory server, if the graph is empty (MEMORY_FILE_PATH)',
    )
    .option(
      '--allow <folder>',
      'a folder whose files may be read, and in which folders may be made; again for more',
      several,
    )
    .option('--write', 'let files be written there, too')
    .addHelpText('after', help)
    .action((flags: Flags) => run(flags, process.env))
}

async function run(flags: Flags, environment: Environment): Promise<void> {
  const config = await configOf(flags, environment)
  const [{ mcpPlanOf }, { visitorOf }] = await Promise.all([
    import('../server/config/mcp.ts'),
    import('../mcp/principal.ts'),
  ])
  const plan = mcpPlanOf(config)
  const visitor = visitorOf(plan)
  const place = { store: config.store, ...(config.storeKey === undefined ? {} : { storeKey: config.storeKey }) }
  // Loaded only now, so that help is given and mistakes are told at once.
  const [{ openMemory }, { openHost }, { overStdio }, { listReceipts }, { traceOf }] = await Promise.all([
    import('../index.ts'),
    import('../mcp/services.ts'),
    import('../mcp/transports/stdio.ts'),
    import('../server/receipts.ts'),
    import('../server/http/httpError.ts'),
  ])
  await using memory = await openMemory({ profile: plan.profile, ...place })
  const receipts = async (session: Key) => (await listReceipts(internalsOf(memory).sessions, session, 100)).items
  const onFault = (error: unknown): void => tell(traceOf(error))
  await using host = await openHost({
    memory,
    ...place,
    settings: plan.settings,
    workspaces: visitor.only ?? [visitor.home],
    receipts,
    onFault,
  })
  await imported(host, visitor.home, setting(flags.import, environment, 'MEMORY_FILE_PATH'))
  // A client that is gone ends the connection, not what is under way.
  process.stdout.removeAllListeners('error')
  const connection = overStdio(host, visitor, { input: process.stdin, output: process.stdout })
  tell(`speaking MCP on standard input and output. ${aboutWorkspaces(visitor)} Memory is kept in ${config.store}.`)
  endWhenAsked(connection)
  await connection.ended
}

/** A configuration that says where memory is kept. */
type Placed = Config & { readonly store: string }

/** What the file says, and over it what the flags and the environment say. */
async function configOf(flags: Flags, environment: Environment): Promise<Placed> {
  const [{ readConfig }, { parseConfig }] = await Promise.all([
    import('../server/config/file.ts'),
    import('../server/config/schema.ts'),
  ])
  const file = setting(flags.config, environment, 'THREADKEEP_CONFIG')
  const { mcp, ...config } = file === undefined ? {} : await readConfig(atHome(file))
  const workspace = setting(flags.workspace, environment, 'THREADKEEP_WORKSPACE')
  const audit = setting(undefined, environment, 'THREADKEEP_AUDIT_LOG')
  const said = parseConfig({
    mcp: {
      ...(workspace === undefined ? {} : { workspace }),
      ...(flags.only === undefined ? {} : { only: flags.only }),
      ...(flags.allow === undefined ? {} : { allow: flags.allow.map(atHome) }),
      ...(flags.write === undefined ? {} : { write: flags.write }),
      ...(audit === undefined ? {} : { audit: atHome(audit) }),
    },
  })
  return { ...config, ...(await placeOf(config, flags, environment)), mcp: { ...mcp, ...said.mcp } }
}

async function placeOf(config: Config, flags: Flags, environment: Environment): Promise<Placed> {
  const { fileOf } = await import('../stores/open.ts')
  const store = setting(flags.store, environment, 'THREADKEEP_STORE') ?? config.store ?? 'sqlite:'
  const file = fileOf(store)
  const storeKey = storeSettings(flags, environment).key ?? config.storeKey
  return {
    store: file === undefined ? store : `sqlite:${atHome(file)}`,
    ...(storeKey === undefined ? {} : { storeKey }),
  }
}

/** Clients start commands without a shell, which would know where home is. */
const atHome = (path: string): string => path.replace(/^~(?=[/\\])/, homedir())

/** Takes in what the reference server has written, once. */
async function imported({ desk }: Host, workspace: string, file: string | undefined): Promise<void> {
  if (file === undefined) return
  const { takeIn } = await import('../graph/reference.ts')
  const taken = await takeIn(desk.graph.nodes, workspace, atHome(file))
  if (taken !== undefined)
    tell(`took in ${many(taken.entities, 'entity', 'entities')} and ${many(taken.relations, 'relation')} from ${file}.`)
}

const aboutWorkspaces = ({ home, only }: Visitor): string =>
  `The workspace is ${home}${only === undefined ? '' : `; open: ${only.join(', ')}`}.`

/** Asked to stop, what was asked for is answered first; asked again, it stops at once. */
function endWhenAsked(connection: Connection): void {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      process.once(signal, () => process.exit(130))
      connection.finish()
    })
  }
}

/** Standard output belongs to the protocol. */
const tell = (line: string): void => void process.stderr.write(`threadkeep: ${line}\n`)
