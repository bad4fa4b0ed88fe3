import type { z } from 'zod'
import type { Clock } from '../../domain/ports.ts'
import type { Graph, NodeStore } from '../../graph/types.ts'
import type { Handoff } from '../../handoff/handoff.ts'
import type { Memory } from '../../memory.ts'
import type { FileAccess } from '../files/fileAccess.ts'

/** Dependencies shared by all tools. */
export type ToolContext = {
  readonly memory: Memory
  readonly graph: Graph & { readonly nodes: NodeStore }
  readonly handoff: Handoff
  readonly files: FileAccess
  /** Notifies subscribers that the resource at a URI has changed. */
  readonly notifyChanged: (workspace: string, uri: string) => void
  readonly clock: Clock
}

export type LogLevel = 'debug' | 'info' | 'warning' | 'error'

/** Single call of a tool. */
export type ToolInvocation = {
  readonly context: ToolContext
  /** Resolved workspace, which the principal may use. */
  readonly workspace: string
  /** Name from the configuration or the credential, else the name the client reports. */
  readonly client: string
  /** Fires when the client cancels the call. */
  readonly signal: AbortSignal
  progress(done: number, total: number | undefined, message: string): void
  log(level: LogLevel, message: string): void
}

/** `text` is for the model; `structured` matches the output schema. */
export type ToolResult = { readonly text: string; readonly structured: Record<string, unknown> }

/** Behaviour hints for clients, as defined by MCP. */
export type Annotations = {
  readonly readOnlyHint: boolean
  readonly destructiveHint: boolean
  readonly idempotentHint: boolean
  readonly openWorldHint: boolean
}

export type Tool = {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly input: z.ZodObject
  readonly output: z.ZodObject
  readonly annotations: Annotations
  /** True for tools of the reference server, whose schemas must not get the optional `workspace` argument. */
  readonly isReferenceTool?: true
  /** Gets arguments that were validated with the input schema. */
  run(input: Record<string, unknown>, invocation: ToolInvocation): Promise<ToolResult>
}

type ToolSpec<I extends z.ZodObject, O extends z.ZodObject> = Omit<Tool, 'input' | 'output' | 'run'> & {
  readonly input: I
  readonly output: O
  run(
    input: z.output<I>,
    invocation: ToolInvocation,
  ): Promise<{ readonly text: string; readonly structured: z.input<O> }>
}

/**
 * Defines a tool whose `run` is typed by its schemas.
 *
 * @example
 * const countWords = defineTool({
 *   name: 'count_words',
 *   title: 'Count words',
 *   description: 'Counts the words of a text.',
 *   input: z.object({ text: z.string() }),
 *   output: z.object({ words: z.number() }),
 *   annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
 *   run: async ({ text }) => ({ text: 'Counted.', structured: { words: text.split(/\s+/).length } }),
 * })
 */
export function defineTool<I extends z.ZodObject, O extends z.ZodObject>(spec: ToolSpec<I, O>): Tool {
  // The server has validated the arguments with this schema.
  return { ...spec, run: (input, invocation) => spec.run(input as z.output<I>, invocation) }
}
