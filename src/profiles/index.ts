import { agent } from './agent.ts'
import { ephemeral } from './ephemeral.ts'
import { handoff } from './handoff.ts'
import { summary } from './summary.ts'
import { support } from './support.ts'
import { thread } from './thread.ts'

/** Built-in profiles by name. */
export const profiles = { ephemeral, support, summary, agent, handoff, thread } as const
/** Name of a built-in profile. */
export type ProfileName = keyof typeof profiles
