import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from 'vitest'

const folder = mkdtempSync(join(tmpdir(), 'threadkeep-rest-'))
afterAll(() => rmSync(folder, { recursive: true }))

let files = 0

/** A database that nobody has used. */
export const freshFile = (): string => `sqlite:${join(folder, `${files++}.db`)}`

/** Where memory may be kept. */
export const places: readonly (readonly [name: string, store: () => string])[] = [
  ['RAM', () => 'ram:'],
  ['SQLite', freshFile],
]
