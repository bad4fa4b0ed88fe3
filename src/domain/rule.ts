import type { Millis, Tokens } from './entry.ts'

/** What makes a rule due. Only messages that no summary stands for are counted. */
export type When =
  /** What would be shown passes so many tokens, or that part of the budget. */
  | { readonly tokens: Tokens }
  | { readonly usage: number }
  /** So many messages wait. */
  | { readonly messages: number }
  /** Something is that old. */
  | { readonly age: Millis }
  /** That much time has passed since the last time. */
  | { readonly every: Millis }

/** The words of a summary, from its first version on; the last pair holds for all later ones. */
export type Words = readonly (readonly [least: number, most: number])[]

export type Task =
  /**
   * One summary that grows with its versions and takes in all but the newest messages, of which so much stays that the
   * next time is far away; with `facts`, important data is taken from the same messages.
   */
  | {
      readonly summarise: 'progressive'
      readonly words: Words
      readonly keep: { readonly tokens: Tokens } | { readonly usage: number }
      readonly facts: boolean
    }
  /** A batch of messages into the summary of its hour, as soon as `keep` newer ones lie after it, in at most `share` of its tokens. */
  | { readonly summarise: 'hour'; readonly batch: number; readonly keep: number; readonly share: number }
  /** Hours that are old enough into one summary of the session, in at most `share` of their tokens. */
  | { readonly summarise: 'session'; readonly share: number }
  /** Decides which messages are shown shorter, not at all or as long-term memory, and turns its own parameters. */
  | { readonly optimise: 'session' }
  /** Takes confidence back from knowledge nobody uses, and forgets what nobody believes. */
  | { readonly age: 'knowledge' }

/** Something done about age. Blocking rules are done before the next context is built, the others whenever there is time. */
export type Rule = { readonly when: When; readonly do: Task; readonly blocking?: boolean }

/** Who may add to a scope's knowledge: `ask` keeps it back until it is approved. */
export type Learning = { readonly user: Permission; readonly assistant: Permission; readonly tool: Permission }
export type Permission = 'yes' | 'ask' | 'no'
