import type { ErrorCode } from '../../src/domain/error.ts'
import type { Operation } from './operations.ts'

/** Position of a message as acknowledged to its writer. */
export type Position = { readonly sequence: number; readonly offset: number; readonly weight: number }

/** One line of a writer's output: an operation before it starts, its acknowledgement or its failure. */
export type JournalLine =
  | { readonly requested: Operation }
  | { readonly acknowledged: string; readonly positions: readonly Position[] }
  | { readonly failed: string; readonly code: ErrorCode | 'unknown'; readonly message: string }
  /** Number of messages that could be read after a failure. */
  | { readonly readCount: number }

export type Journal = {
  /** In order of their start. */
  readonly requested: readonly Operation[]
  /** All acknowledgements by operation id; a repeated operation has several. */
  readonly acknowledged: ReadonlyMap<string, readonly (readonly Position[])[]>
  readonly failures: readonly Extract<JournalLine, { failed: string }>[]
  readonly readCounts: readonly number[]
}

/** Parses the output of writers, up to the last complete line of each. */
export function parseJournal(...outputs: readonly string[]): Journal {
  const lines = outputs
    .flatMap((output) => output.split('\n').slice(0, -1))
    .map((line) => JSON.parse(line) as JournalLine)
  const requested = new Map<string, Operation>()
  const acknowledged = new Map<string, (readonly Position[])[]>()
  for (const line of lines) {
    if ('requested' in line) requested.set(line.requested.id, line.requested)
    if ('acknowledged' in line)
      acknowledged.set(line.acknowledged, [...(acknowledged.get(line.acknowledged) ?? []), line.positions])
  }
  return {
    requested: [...requested.values()],
    acknowledged,
    failures: lines.filter((line) => 'failed' in line),
    readCounts: lines.flatMap((line) => ('readCount' in line ? [line.readCount] : [])),
  }
}
