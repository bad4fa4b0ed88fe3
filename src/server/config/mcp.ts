import { dirname, join } from 'node:path'
import type { Profile } from '../../domain/profile.ts'
import type { HostSettings } from '../../mcp/services.ts'
import { handoff } from '../../profiles/handoff.ts'
import { fileOf } from '../../stores/open.ts'
import type { Config } from './schema.ts'

/** How sessions are handed over as it is to be opened. */
export type McpPlan = {
  /** The workspace of calls that name none, and the only ones there are, if not all are. */
  readonly workspace: string | undefined
  readonly only: readonly string[] | undefined
  readonly profile: Profile
  readonly settings: HostSettings
}

/** Where looks at files are written down if nobody says otherwise: beside the store. */
export const usualAudit = (store: string): string => join(dirname(fileOf(store) ?? '.'), 'threadkeep-audit.jsonl')

/**
 * Makes what a configuration says about handing over into a plan.
 *
 * @example
 * mcpPlanOf({ mcp: { workspace: 'my-project', allow: ['src'], retention: 7 * day } }).workspace // 'my-project'
 */
export function mcpPlanOf({
  mcp = {},
  secrets,
  store = 'sqlite:',
}: Pick<Config, 'mcp' | 'secrets' | 'store'>): McpPlan {
  const {
    workspace,
    only,
    allow,
    users,
    write,
    audit = usualAudit(store),
    providers,
    retention,
    tokenLimit: limit,
    ...others
  } = mcp
  const lifetime = retention === undefined ? {} : { lifetime: { ...handoff.lifetime, age: retention } }
  return {
    workspace,
    only,
    profile: { ...handoff, ...lifetime, ...(secrets === undefined ? {} : { secrets }) },
    settings: {
      ...{ allow, users, write, audit },
      providers: providers as HostSettings['providers'],
      handoff: { ...(limit === undefined ? {} : { limit }), ...given(others) },
    },
  }
}

/** Without what is left out: there, the documented values hold. */
const given = <T extends object>(values: T): { [K in keyof T]?: NonNullable<T[K]> } =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: NonNullable<T[K]>
  }
