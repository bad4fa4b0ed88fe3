import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { start } from '../cli/command.ts'
import { verifies } from '../requirements/verifies.ts'
import { counts, patience, repeatedWith, seed } from './counts.ts'
import { examine } from './examine.ts'
import { newFolder } from './folder.ts'
import { journalOf } from './journal.ts'
import { usual } from './writer.ts'

/** Four processes; each of four callers speaks through two of them at once, as a client does that gave up waiting and asked elsewhere. */
const callers = ['ann', 'bob', 'cy', 'dora']
const processes = callers.map((caller, at) => [caller, callers[(at + 1) % callers.length] as string])

describe('four processes that write one file', () => {
  verifies(
    ['X-07', 'H-11'],
    'store everything once, in one order all of them are told, and count without losing a step',
    async () => {
      using folder = newFolder()
      const file = join(folder.path, 'a.db')
      const scenario = { ...usual(file, seed), steps: counts.steps, erases: false, repeats: true, tries: 5 }
      const runs = processes.map(
        (two) => start('test/fault/scenario.ts', [JSON.stringify({ ...scenario, callers: two })]).ended,
      )
      const ended = await Promise.all(runs)
      expect(ended.map(({ code, stderr }) => ({ code, stderr }))).toEqual(
        processes.map(() => ({ code: 0, stderr: '' })),
      )
      const journal = journalOf(...ended.map(({ stdout }) => stdout))
      expect(journal.failed.filter(({ code }) => code !== 'busy')).toEqual([])
      expect([...journal.done.values()].map((acknowledgements) => acknowledgements.length)).toEqual(
        Array(callers.length * counts.steps).fill(4),
      )
      expect(await examine(file, journal), repeatedWith).toEqual([])
    },
    patience,
  )
})
