import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { startProgram } from '../cli/command.ts'
import { verifies } from '../requirements/verifies.ts'
import { checkStore } from './checkStore.ts'
import { runCounts, seed, seedHint, testTimeoutMs } from './config.ts'
import { parseJournal } from './journal.ts'
import { standardScenario } from './runWriter.ts'
import { createTempFolder } from './tempFolder.ts'
import type { Scenario } from './writerProcess.ts'

/** Four processes. Each of four callers uses two of them at once, like a client that timed out and retried elsewhere. */
const callers = ['ann', 'bob', 'cy', 'dora']
const callersByProcess = callers.map((caller, index) => [caller, callers[(index + 1) % callers.length] as string])

describe('four processes writing to one file', () => {
  verifies(
    ['X-07', 'H-11'],
    'store everything once, acknowledge the same order, and lose no increment',
    async () => {
      using folder = createTempFolder()
      const file = join(folder.path, 'a.db')
      const scenario: Scenario = {
        ...standardScenario(file, seed),
        steps: runCounts.steps,
        withErasure: false,
        // Another process that does the same at the same time makes these end in conflicts.
        withOthers: false,
        repeatsOperations: true,
        maxAttempts: 5,
      }
      const runs = callersByProcess.map(
        (pair) => startProgram('test/fault/writerProcess.ts', [JSON.stringify({ ...scenario, callers: pair })]).result,
      )
      const results = await Promise.all(runs)
      expect(results.map(({ code, stderr }) => ({ code, stderr }))).toEqual(
        callersByProcess.map(() => ({ code: 0, stderr: '' })),
      )
      const journal = parseJournal(...results.map(({ stdout }) => stdout))
      expect(journal.failures.filter(({ code }) => code !== 'busy')).toEqual([])
      expect([...journal.acknowledged.values()].map((acknowledgements) => acknowledgements.length)).toEqual(
        Array(callers.length * runCounts.steps).fill(4),
      )
      expect(await checkStore(file, journal), seedHint).toEqual([])
    },
    testTimeoutMs,
  )
})
