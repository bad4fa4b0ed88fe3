/**
 * Program that writes while faults are injected. Several callers run their planned operations concurrently; every
 * journal line is written to stdout before the next step. Failed operations are retried under the same id.
 */
import { writeSync } from 'node:fs'
import { MemoryError } from '../../src/domain/error.ts'
import type { JournalLine, Position } from './journal.ts'
import { type Operation, type PlannedOperation, type PlanOptions, planOperations } from './operations.ts'
import { openStoreFile, runOperation } from './runOperation.ts'

export type Scenario = PlanOptions & {
  readonly file: string
  readonly callers: readonly string[]
  readonly maxAttempts: number
  /** Runs every operation a second time after its acknowledgement, as if that had been lost. */
  readonly repeatsOperations: boolean
}

const scenario = JSON.parse(process.argv[2] as string) as Scenario
const opened = await openStoreFile(scenario.file)

/** Writes synchronously: a line in the journal counts as acknowledged. */
const log = (line: JournalLine): void => void writeSync(1, `${JSON.stringify(line)}\n`)

async function runWithRetries(operation: Operation): Promise<readonly Position[]> {
  for (let attempts = 1; ; attempts++) {
    try {
      return await runOperation(opened, operation)
    } catch (error) {
      log({
        failed: operation.id,
        code: error instanceof MemoryError ? error.code : 'unknown',
        message: String(error),
      })
      if (attempts === scenario.maxAttempts) throw error
      log({ readCount: (await opened.memory.transcript(operation.session)).length })
    }
  }
}

async function runCaller(caller: string): Promise<void> {
  const stored = new Map<string, readonly Position[]>()
  const resolve = (planned: PlannedOperation): Operation => {
    if (planned.kind !== 'eraseMessage' && planned.kind !== 'replace') return planned
    const message = `m${stored.get(planned.target)?.at(-1)?.sequence}`
    if (planned.kind === 'replace') return { ...planned, message }
    const { target: _, ...rest } = planned
    return { ...rest, message }
  }
  for (const planned of planOperations(caller, scenario)) {
    const operation = resolve(planned)
    log({ requested: operation })
    for (let times = 0; times < (scenario.repeatsOperations ? 2 : 1); times++) {
      const positions = await runWithRetries(operation)
      stored.set(operation.id, positions)
      log({ acknowledged: operation.id, positions })
    }
  }
}

await Promise.all(scenario.callers.map(runCaller))
await opened.memory.close()
