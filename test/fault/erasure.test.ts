import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { startProgram } from '../cli/command.ts'
import { verifies } from '../requirements/verifies.ts'
import { runCounts, seed, seedHint, testTimeoutMs } from './config.ts'
import type { EraserOptions } from './eraserProcess.ts'
import { createStoreFile } from './runWriter.ts'
import { findDamage } from './storedSessions.ts'
import { createTempFolder } from './tempFolder.ts'

describe('two processes that append and forget', () => {
  verifies(
    'X-05',
    'leave no erased text in the file or its log after any acknowledged erasure, and a valid database',
    async () => {
      using folder = createTempFolder()
      const file = join(folder.path, 'a.db')
      await createStoreFile(file)
      const runs = ['ann', 'bob'].map((name, index) => {
        const options: EraserOptions = { file, name, seed: seed + index, steps: 2 * runCounts.steps }
        return startProgram('test/fault/eraserProcess.ts', [JSON.stringify(options)]).result
      })
      expect(await Promise.all(runs), seedHint).toEqual(runs.map(() => ({ code: 0, stdout: '', stderr: '' })))
      expect(findDamage(file)).toEqual([])
      expect(readFileSync(file).includes('so it goes on')).toBe(true)
    },
    testTimeoutMs,
  )
})
