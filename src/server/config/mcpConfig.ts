import { dirname, join } from 'node:path'
import type { Profile } from '../../domain/profile.ts'
import type { McpSettings } from '../../mcp/services.ts'
import { handoff } from '../../profiles/handoff.ts'
import { parseSqliteUrl } from '../../stores/open.ts'
import type { Config } from './schema.ts'

/** Configuration of the MCP endpoint. */
export type McpConfig = {
  /** Workspace of calls that name none. */
  readonly workspace: string | undefined
  /** The only workspaces that may be used; all when undefined. */
  readonly only: readonly string[] | undefined
  readonly profile: Profile
  readonly settings: McpSettings
}

/** Default path of the audit log: beside the store. */
export const defaultAuditFile = (store: string): string =>
  join(dirname(parseSqliteUrl(store) ?? '.'), 'threadkeep-audit.jsonl')

/**
 * Resolves the `mcp` section.
 *
 * @example
 * resolveMcpConfig({ mcp: { workspace: 'my-project', allow: ['src'], retention: 7 * day } }).workspace // 'my-project'
 */
export function resolveMcpConfig({
  mcp = {},
  secrets,
  store = 'sqlite:',
}: Pick<Config, 'mcp' | 'secrets' | 'store'>): McpConfig {
  const {
    workspace,
    only,
    allow,
    users,
    write,
    audit = defaultAuditFile(store),
    providers,
    retention,
    tokenLimit: limit,
    ...handoffOptions
  } = mcp
  const lifetime = retention === undefined ? {} : { lifetime: { ...handoff.lifetime, age: retention } }
  return {
    workspace,
    only,
    profile: { ...handoff, ...lifetime, ...(secrets === undefined ? {} : { secrets }) },
    settings: {
      ...{ allow, users, write, audit },
      providers: providers as McpSettings['providers'],
      handoff: { ...(limit === undefined ? {} : { limit }), ...omitUndefined(handoffOptions) },
    },
  }
}

const omitUndefined = <T extends object>(values: T): { [K in keyof T]?: NonNullable<T[K]> } =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: NonNullable<T[K]>
  }
