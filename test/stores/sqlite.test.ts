import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, it } from 'vitest'
import { storeConformance } from '../../src/stores/conformance.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'

const folder = mkdtempSync(join(tmpdir(), 'threadkeep-'))
afterAll(() => rmSync(folder, { recursive: true }))
let files = 0

describe('the SQLite store', () => {
  for (const { name, run } of storeConformance(async () => sqliteStore(join(folder, `${++files}.db`)))) it(name, run)
})
