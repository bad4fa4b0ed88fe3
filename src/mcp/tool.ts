import type { z } from 'zod'
import type { Clock } from '../domain/ports.ts'
import type { Graph, Nodes } from '../graph/graph.ts'
import type { Handoff } from '../handoff/handoff.ts'
import type { Memory } from '../memory.ts'
import type { FileDesk } from './files/desk.ts'

/** Everything the tools work with; opened by the command or by the server. */
export type Desk = {
  readonly memory: Memory
  readonly graph: Graph & { readonly nodes: Nodes }
  readonly handoff: Handoff
  readonly files: FileDesk
  /** Tells whoever subscribed that what stands at an address has changed. */
  readonly changed: (workspace: string, uri: string) => void
  readonly clock: Clock
}

export type Level = 'debug' | 'info' | 'warning' | 'error'

/** One call of a tool: on whose behalf, in which workspace, and how to speak while it runs. */
export type Call = {
  readonly desk: Desk
  /** Resolved, and open to whoever asks. */
  readonly workspace: string
  /** Who asks: the name in the configuration or of the credential, else what the client calls itself. */
  readonly client: string
  /** Fires when the client gives up. */
  readonly signal: AbortSignal
  progress(done: number, total: number | undefined, message: string): void
  log(level: Level, message: string): void
}

/** `text` is what a model reads; `structured` fits the output schema. */
export type Told = { readonly text: string; readonly structured: Record<string, unknown> }

/** What a client may assume of a tool before it asks its user. */
export type Annotations = {
  readonly readOnlyHint: boolean
  readonly destructiveHint: boolean
  readonly idempotentHint: boolean
  readonly openWorldHint: boolean
}

/** A tool as the server offers it: `run` gets only what the input schema let through. */
export type Tool = {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly input: z.ZodObject
  readonly output: z.ZodObject
  readonly annotations: Annotations
  /** Tools of the reference server take no workspace argument; the server adds an optional one to all others. */
  readonly fixed?: true
  run(input: Record<string, unknown>, call: Call): Promise<Told>
}

type Spec<I extends z.ZodObject, O extends z.ZodObject> = Omit<Tool, 'input' | 'output' | 'run'> & {
  readonly input: I
  readonly output: O
  run(input: z.output<I>, call: Call): Promise<{ readonly text: string; readonly structured: z.input<O> }>
}

/**
 * Ties the schemas of a tool to what runs.
 *
 * @example
 * const countWords = tool({
 *   name: 'count_words',
 *   title: 'Count words',
 *   description: 'Counts the words of a text.',
 *   input: z.object({ text: z.string() }),
 *   output: z.object({ words: z.number() }),
 *   annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
 *   run: async ({ text }) => ({ text: 'Counted.', structured: { words: text.split(/\s+/).length } }),
 * })
 */
export function tool<I extends z.ZodObject, O extends z.ZodObject>(spec: Spec<I, O>): Tool {
  return {
    ...spec,
    // The server has parsed the arguments by this very schema.
    run: (input, call) => spec.run(input as z.output<I>, call),
  }
}
