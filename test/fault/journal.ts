import type { ErrorCode } from '../../src/domain/error.ts'
import type { Operation } from './operations.ts'

/** Where a message was put, as its writer was told. */
export type Place = { readonly sequence: number; readonly offset: number; readonly weight: number }

/** One line of what a writer tells: before it begins something, and what came of it. */
export type Line =
  | { readonly asked: Operation }
  | { readonly done: string; readonly places: readonly Place[] }
  | { readonly failed: string; readonly code: ErrorCode | 'unknown'; readonly message: string }
  /** After a failure: how many messages could still be read. */
  | { readonly read: number }

/** What writers told: what was begun, in order, what was acknowledged, and what failed. */
export type Journal = {
  readonly asked: readonly Operation[]
  /** Every acknowledgement; an operation that was given twice has two. */
  readonly done: ReadonlyMap<string, readonly (readonly Place[])[]>
  readonly failed: readonly Extract<Line, { failed: string }>[]
  readonly reads: readonly number[]
}

/** Reads what writers told, up to the last whole line. */
export function journalOf(...outputs: readonly string[]): Journal {
  const lines = outputs.flatMap((output) => output.split('\n').slice(0, -1)).map((line) => JSON.parse(line) as Line)
  const asked = new Map<string, Operation>()
  const done = new Map<string, (readonly Place[])[]>()
  for (const line of lines) {
    if ('asked' in line) asked.set(line.asked.id, line.asked)
    if ('done' in line) done.set(line.done, [...(done.get(line.done) ?? []), line.places])
  }
  return {
    asked: [...asked.values()],
    done,
    failed: lines.filter((line) => 'failed' in line),
    reads: lines.flatMap((line) => ('read' in line ? [line.read] : [])),
  }
}
