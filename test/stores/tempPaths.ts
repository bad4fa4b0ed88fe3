import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from 'vitest'

/** Returns a function that creates new paths in a temporary folder, which is deleted after the tests of the file. */
export function createTempPaths(): (extension?: string) => string {
  const folder = mkdtempSync(join(tmpdir(), 'threadkeep-'))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  let files = 0
  return (extension = '.db') => join(folder, `${++files}${extension}`)
}
