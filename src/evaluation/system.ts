import type { DatasetMessage } from './dataset.ts'

/** A conversation without its questions, as systems under test see it. */
export type Transcript = { readonly id: string; readonly messages: readonly DatasetMessage[] }

/** A memory system under test. A module given to `threadkeep bench --system` exports one, or an array, as default. */
export type MemorySystem = {
  readonly name: string
  /** Ingests a conversation. The time it takes is not part of the latency. */
  open(conversation: Transcript): Promise<OpenedMemory>
  /** Ingests several conversations into one store, each of another user. Needed for the isolation metric. */
  openShared?(conversations: readonly Transcript[]): Promise<SharedMemory>
}

export type OpenedMemory = {
  /** Returns the context for a query. It must not exceed the budget in `o200k_base` tokens. */
  context(query: string, budget: number): Promise<string>
  /** Adds a message. Needed for the prefix metric, together with `prompt`. */
  append?(message: DatasetMessage): Promise<void>
  /** Returns the prompt that continues the conversation. */
  prompt?(budget: number): Promise<Prompt>
  close(): Promise<void>
}

/** A prompt as one text: role and content of every message. */
export type Prompt = {
  readonly text: string
  /** Beginning of the text that the system declares cacheable. */
  readonly cacheable?: string
  /** Id of the oldest message shown in full. It changes when the system cuts the history. */
  readonly start?: string
}

export type SharedMemory = {
  context(conversationId: string, query: string, budget: number): Promise<string>
  close(): Promise<void>
}
