import { describe, it } from 'vitest'
import { storeConformance } from '../../src/stores/conformance.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { freshFiles } from './tempPaths.ts'

const newPath = freshFiles()

describe('sqliteStore', () => {
  for (const { name, run } of storeConformance(async () => sqliteStore(newPath()))) it(name, run)
})
