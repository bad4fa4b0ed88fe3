/**
 * A program that writes, to have something happen to it: several callers at once, each doing what is planned for it, and
 * every line of the journal written to stdout before the next thing is done. What fails is tried again under the same id.
 */
import { writeSync } from 'node:fs'
import { MemoryError } from '../../src/domain/error.ts'
import type { Line, Place } from './journal.ts'
import { type Operation, type Plan, type Planned, planOf } from './operations.ts'
import { openFile, perform } from './perform.ts'

export type Scenario = Plan & {
  readonly file: string
  readonly callers: readonly string[]
  /** How often an operation is tried at most. */
  readonly tries: number
  /** Every operation is given a second time after its acknowledgement, as if that had never arrived. */
  readonly repeats: boolean
}

const scenario = JSON.parse(process.argv[2] as string) as Scenario
const opened = await openFile(scenario.file)

/** Waits until the line is out: what stands in the journal is known to the world. */
const tell = (line: Line): void => void writeSync(1, `${JSON.stringify(line)}\n`)

async function attempt(operation: Operation): Promise<readonly Place[]> {
  for (let tries = 1; ; tries++) {
    try {
      return await perform(opened, operation)
    } catch (error) {
      tell({
        failed: operation.id,
        code: error instanceof MemoryError ? error.code : 'unknown',
        message: String(error),
      })
      if (tries === scenario.tries) throw error
      tell({ read: (await opened.memory.transcript(operation.session)).length })
    }
  }
}

async function call(caller: string): Promise<void> {
  const stored = new Map<string, readonly Place[]>()
  const resolved = (planned: Planned): Operation => {
    if (planned.does !== 'drop') return planned
    const { of, ...rest } = planned
    return { ...rest, message: `m${stored.get(of)?.at(-1)?.sequence}` }
  }
  for (const planned of planOf(caller, scenario)) {
    const operation = resolved(planned)
    tell({ asked: operation })
    for (let times = 0; times < (scenario.repeats ? 2 : 1); times++) {
      const places = await attempt(operation)
      stored.set(operation.id, places)
      tell({ done: operation.id, places })
    }
  }
}

await Promise.all(scenario.callers.map(call))
await opened.memory.close()
