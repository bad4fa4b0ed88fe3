import { describe, it } from 'vitest'
import { storeConformance } from '../../src/stores/conformance.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { createTempPaths } from './tempPaths.ts'

const newPath = createTempPaths()

describe('sqliteStore', () => {
  for (const { name, run } of storeConformance(async () => sqliteStore(newPath()))) it(name, run)
})
