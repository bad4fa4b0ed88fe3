import { copyFileSync, existsSync } from 'node:fs'
import { describe } from 'vitest'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { verifies } from '../requirements/verifies.ts'
import { type ComparedStore, expectSameAsRam } from './equivalence.ts'
import { createTempPaths } from './tempPaths.ts'

const newPath = createTempPaths()

/** Saves every search index, so that a reopened store starts with it. */
const open = (file: string) => sqliteStore(file, { minSnapshotMessages: 1 })

/** Opens a store; a crash continues with a copy of the file and its log as they are at that moment. */
async function openCompared(): Promise<ComparedStore> {
  let file = newPath()
  let store = open(file)
  return {
    get store() {
      return store
    },
    reopen: async (how) => {
      const copy = newPath()
      if (how === 'crash')
        for (const suffix of ['', '-wal']) if (existsSync(file + suffix)) copyFileSync(file + suffix, copy + suffix)
      await store.close()
      file = how === 'crash' ? copy : file
      store = open(file)
    },
    close: () => store.close(),
  }
}

describe('ramStore and sqliteStore', () => {
  verifies(
    'X-07',
    'return the same bytes after any steps, including reopening, crashes, erasures and clock jumps',
    () => expectSameAsRam(openCompared, 15),
  )
})
