import type { Command } from 'commander'
import { MemoryError } from '../domain/error.ts'
import type { Handoff } from '../handoff/handoff.ts'
import { failureOf } from './failure.ts'
import { type Environment, setting } from './settings.ts'
import { type StoreFlags, type storeSettings, withStore } from './store.ts'

export type HandoffFlags = StoreFlags & { readonly workspace?: string; readonly allow?: readonly string[] }

/** The sessions of one workspace, opened for a command. */
export type Opened = AsyncDisposable & { readonly handoff: Handoff; readonly workspace: string }

/** An option that may be given again for more. */
export const several = (value: string, before: readonly string[] = []): readonly string[] => [...before, value]

/** The options of commands that save sessions and go on with them. */
export function withHandoff(command: Command): Command {
  return withStore(command)
    .option('--workspace <name>', 'the workspace (THREADKEEP_WORKSPACE; default)')
    .option(
      '--allow <folder>',
      'a folder whose files are looked at if the conversation speaks of them; again for more',
      several,
    )
}

/** The same flags, in the workspace that stands before the id of a session, if nobody names another. */
export function inWorkspaceOf<F extends HandoffFlags>(flags: F, session: string | undefined): F {
  const colon = session?.indexOf(':') ?? -1
  return colon < 1 || flags.workspace !== undefined ? flags : { ...flags, workspace: session?.slice(0, colon) }
}

/** What is said to clients of tools, as it is said to those who type commands. */
const commands: readonly (readonly [tool: string, command: string])[] = [
  ['list_sessions tells which', 'threadkeep sessions list tells which'],
  [
    'Save one with save_session, or name another workspace.',
    'Save one with threadkeep save, or name another one with --workspace.',
  ],
  [
    'Give conversationContext or messages, or the sessionId of a session to save again.',
    'Name a file, or write the conversation to the standard input; --session alone saves a session again.',
  ],
  ['Save it without a sessionId to begin a new one.', 'Save it without --session to begin a new one.'],
  ['Choose another sessionId.', 'Choose another one with --session.'],
  ['continues is', '--continues is'],
]

/** Does something, and tells what is wrong with it in the words of the command line. */
export async function inCommands<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof MemoryError)) throw error
    const message = commands.reduce((text, [tool, command]) => text.replace(tool, command), error.message)
    throw new MemoryError(error.code, message, {
      cause: error,
      ...(error.param === undefined ? {} : { param: error.param }),
    })
  }
}

/** Opens the sessions of a file as the MCP server does: looks at files are written down in the same log. */
export async function openHandoff(
  flags: HandoffFlags,
  environment: Environment,
  place: ReturnType<typeof storeSettings>,
): Promise<Opened> {
  const [{ openMemory }, { openHost }, { visitorOf }, { mcpPlanOf }] = await Promise.all([
    import('../index.ts'),
    import('../mcp/services.ts'),
    import('../mcp/principal.ts'),
    import('../server/config/mcp.ts'),
  ])
  const { home: workspace } = visitorOf({ workspace: setting(flags.workspace, environment, 'THREADKEEP_WORKSPACE') })
  const { url, key } = place
  const storeKey = key === undefined ? {} : { storeKey: key }
  const plan = mcpPlanOf({ mcp: { allow: [...(flags.allow ?? [])] }, store: url })
  const memory = await openMemory({ profile: plan.profile, store: url, ...storeKey })
  const host = await openHost({
    ...{ memory, store: url, ...storeKey, settings: plan.settings, workspaces: [workspace] },
    receipts: () => Promise.resolve([]),
    onFault: (error) => void process.stderr.write(`threadkeep: ${failureOf(error).message}\n`),
  })
  const close = async (): Promise<void> => {
    await host.close()
    await memory.close()
  }
  return { handoff: host.desk.handoff, workspace, [Symbol.asyncDispose]: close }
}
