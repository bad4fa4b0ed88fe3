import type { Command } from 'commander'
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
    .option('--allow <folder>', 'a folder whose files are looked at if the conversation speaks of them, again for more', several)
}

/** Opens the sessions of a file as the MCP server does: looks at files are written down in the same log. */
export async function openHandoff(flags: HandoffFlags, environment: Environment, place: ReturnType<typeof storeSettings>): Promise<Opened> {
  const [{ openMemory }, { openHost }, { visitorOf }, { mcpPlanOf }] = await Promise.all([
    import('../index.ts'),
    import('../mcp/host.ts'),
    import('../mcp/scope.ts'),
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
