import { homedir } from 'node:os'
import type { Command } from 'commander'
import { maskStoreUrl } from '../domain/error.ts'
import type { Key } from '../domain/key.ts'
import type { Principal } from '../mcp/principal.ts'
import type { McpServices } from '../mcp/services.ts'
import type { StdioConnection } from '../mcp/transports/stdio.ts'
import type { Config } from '../server/config/schema.ts'
import { formatCount } from '../text/formatCount.ts'
import {
  addEmbedderOption,
  addStoreLocation,
  durableStoreForms,
  type EmbedderFlags,
  resolveEmbedder,
  resolveStore,
  type StoreFlags,
} from './openStore.ts'
import { collectValues, type Environment, readOption } from './options.ts'
import { limitHeapGrowth } from './terminal/heapGrowth.ts'
import { option, setHelp } from './terminal/help.ts'
import { releaseInterruptHandler } from './terminal/interrupt.ts'

type Flags = StoreFlags &
  EmbedderFlags & {
    readonly config?: string
    readonly workspace?: string
    readonly only?: readonly string[]
    readonly import?: string
    readonly allow?: readonly string[]
    readonly write?: boolean
  }

export function addMcpCommand(program: Command): void {
  const command = addEmbedderOption(addStoreLocation(program.command('mcp'), `${durableStoreForms}, or ram:`))
    .description('run an MCP server: save chats, continue them elsewhere, keep a knowledge graph')
    .addOption(
      option('--config <file>', 'configuration file, of which store, embedder, secrets and the section mcp are used', {
        env: ['THREADKEEP_CONFIG'],
        fallback: 'none',
      }),
    )
    .addOption(
      option('--workspace <name>', 'workspace of calls that name none', {
        env: ['THREADKEEP_WORKSPACE'],
        fallback: 'default',
      }),
    )
    .option('--only <name>', 'allow only this workspace; repeatable (all)', collectValues)
    .addOption(
      option('--import <file>', 'import the file of the MCP reference memory server if the graph is empty', {
        env: ['MEMORY_FILE_PATH'],
      }),
    )
    .option('--allow <folder>', 'folder in which files may be read and folders created; repeatable', collectValues)
    .option('--write', 'also allow writing files in these folders')
    .option('--json', 'print the lines on standard error as JSON; standard output always carries the protocol')
    .action((flags: Flags) => run(flags, process.env))
  setHelp(command, {
    details: [
      'An MCP client starts this command and talks to it over standard input and output; logs go to standard error. Save chats with save_session and continue them elsewhere with restore_session. The nine tools of the MCP reference memory server behave as they do there. threadkeep serve offers the same tools at /mcp.',
      '--store accepts a path in the home folder, such as sqlite:~/threadkeep.db. The configuration file is read only when --config or THREADKEEP_CONFIG names it, because clients start this command in folders that may not be trusted.',
    ],
    variables: { THREADKEEP_AUDIT_LOG: 'log of file operations (threadkeep-audit.jsonl beside the store)' },
    examples: [
      'threadkeep mcp',
      'threadkeep mcp --store sqlite:~/threadkeep.db --workspace my-project',
      'threadkeep mcp --allow ~/my-project --write',
      'threadkeep mcp --import ~/memory.jsonl',
    ],
  })
}

async function run(flags: Flags, environment: Environment): Promise<void> {
  limitHeapGrowth()
  const logLine = createLog(flags.json === true)
  const config = await readMcpConfig(flags, environment)
  const [{ resolveMcpConfig }, { createPrincipal }] = await Promise.all([
    import('../server/config/mcpConfig.ts'),
    import('../mcp/principal.ts'),
  ])
  const plan = resolveMcpConfig(config)
  const principal = createPrincipal(plan)
  const location = { store: config.store, ...(config.storeKey === undefined ? {} : { storeKey: config.storeKey }) }
  // Loaded lazily, so that help and usage errors appear at once.
  const [
    { openMemory },
    { internalsOf },
    { openMcpServices },
    { serveStdioClient },
    { listReceipts },
    { describeFault },
  ] = await Promise.all([
    import('../index.ts'),
    import('../memory.ts'),
    import('../mcp/services.ts'),
    import('../mcp/transports/stdio.ts'),
    import('../server/receipts.ts'),
    import('../server/http/httpError.ts'),
  ])
  const embedding = await resolveEmbedder(flags, environment, config.embedder)
  await using memory = await openMemory({ profile: plan.profile, ...location, ...embedding })
  await using host = await openMcpServices({
    memory,
    ...location,
    settings: plan.settings,
    workspaces: principal.allowedWorkspaces ?? [principal.defaultWorkspace],
    listReceipts: async (session: Key) => (await listReceipts(internalsOf(memory).sessions, session, 100)).items,
    onError: (error: unknown) => logLine(describeFault(error)),
  })
  const importFile = readOption(flags.import, environment, 'MEMORY_FILE_PATH')
  if (importFile !== undefined) await importReferenceGraph(host, principal.defaultWorkspace, importFile, logLine)
  // A client that disconnects ends the connection, not the calls in flight.
  process.stdout.removeAllListeners('error')
  const connection = serveStdioClient(host, principal, { input: process.stdin, output: process.stdout })
  logLine(
    `MCP server ready on standard input and output. ${describeWorkspaces(principal)} Store: ${maskStoreUrl(config.store)}.`,
  )
  finishOnSignal(connection)
  await connection.ended
}

/** Configuration with a resolved store. */
type McpConfig = Config & { readonly store: string }

/** Merges the configuration file with the environment and the flags, which take precedence. */
async function readMcpConfig(flags: Flags, environment: Environment): Promise<McpConfig> {
  const [{ readConfig }, { parseConfig }] = await Promise.all([
    import('../server/config/configFile.ts'),
    import('../server/config/schema.ts'),
  ])
  const file = readOption(flags.config, environment, 'THREADKEEP_CONFIG')
  const { mcp, ...config } = file === undefined ? {} : await readConfig(expandHome(file))
  const workspace = readOption(flags.workspace, environment, 'THREADKEEP_WORKSPACE')
  const audit = readOption(undefined, environment, 'THREADKEEP_AUDIT_LOG')
  const overrides = parseConfig({
    mcp: {
      ...(workspace === undefined ? {} : { workspace }),
      ...(flags.only === undefined ? {} : { only: flags.only }),
      ...(flags.allow === undefined ? {} : { allow: flags.allow.map(expandHome) }),
      ...(flags.write === undefined ? {} : { write: flags.write }),
      ...(audit === undefined ? {} : { audit: expandHome(audit) }),
    },
  })
  return { ...config, ...(await resolveMcpStore(config, flags, environment)), mcp: { ...mcp, ...overrides.mcp } }
}

async function resolveMcpStore(config: Config, flags: Flags, environment: Environment): Promise<McpConfig> {
  const { parseSqliteUrl } = await import('../stores/open.ts')
  const store = readOption(flags.store, environment, 'THREADKEEP_STORE') ?? config.store ?? 'sqlite:'
  const file = parseSqliteUrl(store)
  const storeKey = resolveStore(flags, environment).key ?? config.storeKey
  return {
    store: file === undefined ? store : `sqlite:${expandHome(file)}`,
    ...(storeKey === undefined ? {} : { storeKey }),
  }
}

/** Expands `~`, because clients start commands without a shell. */
const expandHome = (path: string): string => path.replace(/^~(?=[/\\])/, homedir())

/** Imports the file of the MCP reference memory server once, into an empty graph. */
async function importReferenceGraph(
  { toolContext }: McpServices,
  workspace: string,
  file: string,
  logLine: LogLine,
): Promise<void> {
  const { importReferenceFile } = await import('../graph/reference.ts')
  const imported = await importReferenceFile(toolContext.graph.nodes, workspace, expandHome(file))
  if (imported !== undefined)
    logLine(
      `Imported ${formatCount(imported.entities, 'entity', 'entities')} and ${formatCount(imported.relations, 'relation')} from ${file}.`,
    )
}

const describeWorkspaces = ({ defaultWorkspace, allowedWorkspaces }: Principal): string =>
  `Workspace: ${defaultWorkspace}${allowedWorkspaces === undefined ? '' : ` (allowed: ${allowedWorkspaces.join(', ')})`}.`

/** Finishes the calls in flight on the first signal; the next one exits at once. */
function finishOnSignal(connection: StdioConnection): void {
  releaseInterruptHandler()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      process.once(signal, () => process.exit(130))
      connection.finish()
    })
  }
}

type LogLine = (line: string) => void

/** Logs to standard error, because standard output carries the protocol. */
const createLog =
  (json: boolean): LogLine =>
  (line) =>
    void process.stderr.write(json ? `${JSON.stringify({ message: line })}\n` : `threadkeep: ${line}\n`)
