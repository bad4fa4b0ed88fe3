import type { Command } from 'commander'
import { MemoryError } from '../domain/error.ts'
import type { Handoff } from '../handoff/handoff.ts'
import {
  addEmbedderOption,
  addStoreOptions,
  type EmbedderFlags,
  resolveEmbedder,
  type StoreFlags,
  type StoreLocation,
} from './openStore.ts'
import { collectValues, type Environment, readOption } from './options.ts'
import { option } from './terminal/help.ts'
import { printNote } from './terminal/output.ts'
import type { Progress } from './terminal/progress.ts'

export type HandoffFlags = StoreFlags &
  EmbedderFlags & { readonly workspace?: string; readonly allow?: readonly string[] }

/** Saved sessions of one workspace, opened for the duration of a command. */
export type OpenHandoff = AsyncDisposable & { readonly handoff: Handoff; readonly workspace: string }

/** Adds the options of `save` and `restore`. */
export function addHandoffOptions(command: Command): Command {
  return addEmbedderOption(addStoreOptions(command))
    .addOption(option('--workspace <name>', 'workspace', { env: ['THREADKEEP_WORKSPACE'], fallback: 'default' }))
    .option(
      '--allow <folder>',
      'folder whose files are inspected when the conversation mentions them; repeatable',
      collectValues,
    )
}

/** Takes the workspace from a session given as `workspace:id`, unless `--workspace` is set. */
export function withSessionWorkspace<F extends HandoffFlags>(flags: F, session: string | undefined): F {
  const colon = session?.indexOf(':') ?? -1
  return colon < 1 || flags.workspace !== undefined ? flags : { ...flags, workspace: session?.slice(0, colon) }
}

/** Shows the steps of saving and restoring. */
export const toStepProgress =
  (progress: Progress) =>
  (done: number, total: number, step: string): void =>
    progress.count(`${step}:`, done, total)

/** Replaces the remedies addressed to MCP clients by those for the command line. */
const remedies: readonly (readonly [tool: string, command: string])[] = [
  ['list_sessions tells which there are.', 'Run threadkeep sessions list to see all sessions.'],
  [
    'Save one with save_session, or name another workspace.',
    'Save one with threadkeep save, or choose another workspace with --workspace.',
  ],
  [
    'Give conversationContext or messages, or the sessionId of a session to save again.',
    'Name a file, or pipe the conversation to standard input; --session alone saves a session again.',
  ],
  ['Save it without a sessionId to begin a new one.', 'Save it without --session to start a new one.'],
  ['Choose another sessionId.', 'Choose another with --session.'],
  ['continues is', '--continues is'],
]

/** Runs an operation, and rewords its errors for the command line. */
export async function withCliErrors<T>(operation: () => Promise<T>): Promise<T> {
  try {
    return await operation()
  } catch (error) {
    if (!(error instanceof MemoryError)) throw error
    const message = remedies.reduce((text, [tool, command]) => text.replace(tool, command), error.message)
    throw new MemoryError(error.code, message, {
      cause: error,
      ...(error.param === undefined ? {} : { param: error.param }),
    })
  }
}

/** Opens the saved sessions of a store as the MCP server does; file inspections go to the same audit log. */
export async function openHandoff(
  flags: HandoffFlags,
  environment: Environment,
  { url, key }: StoreLocation,
): Promise<OpenHandoff> {
  const [{ toCliError }, { openMemory }, { openMcpServices }, { createPrincipal }, { resolveMcpConfig }] =
    await Promise.all([
      import('./errors.ts'),
      import('../index.ts'),
      import('../mcp/services.ts'),
      import('../mcp/principal.ts'),
      import('../server/config/mcpConfig.ts'),
    ])
  const { defaultWorkspace: workspace } = createPrincipal({
    workspace: readOption(flags.workspace, environment, 'THREADKEEP_WORKSPACE'),
  })
  const storeKey = key === undefined ? {} : { storeKey: key }
  const plan = resolveMcpConfig({ mcp: { allow: [...(flags.allow ?? [])] }, store: url })
  const embedding = await resolveEmbedder(flags, environment)
  const memory = await openMemory({ profile: plan.profile, store: url, ...storeKey, ...embedding })
  const host = await openMcpServices({
    memory,
    store: url,
    ...storeKey,
    settings: plan.settings,
    workspaces: [workspace],
    listReceipts: () => Promise.resolve([]),
    onError: (error) => printNote(`threadkeep: ${toCliError(error).message}`),
  })
  const close = async (): Promise<void> => {
    await host.close()
    await memory.close()
  }
  return { handoff: host.toolContext.handoff, workspace, [Symbol.asyncDispose]: close }
}
