import type { Memory } from '../memory.ts'

/** How memory is doing: `degraded` when something is done otherwise than it should be, and what. Tells nothing of what was said. */
export function healthOf(memory: Memory): Readonly<Record<string, unknown>> {
  const { profile } = memory
  const { degraded, ...upkeep } = memory.health()
  return { status: degraded.length > 0 ? 'degraded' : 'ok', degraded, upkeep, profile: profile.name, secrets: profile.secrets }
}
