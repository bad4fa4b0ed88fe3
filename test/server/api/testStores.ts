import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from 'vitest'

const folder = mkdtempSync(join(tmpdir(), 'threadkeep-api-'))
afterAll(() => rmSync(folder, { recursive: true }))

let files = 0

/** The URL of a new SQLite store. */
export const newSqliteUrl = (): string => `sqlite:${join(folder, `${files++}.db`)}`

/** Stores that tests run against. */
export const testStores: readonly (readonly [name: string, store: () => string])[] = [
  ['RAM', () => 'ram:'],
  ['SQLite', newSqliteUrl],
]
