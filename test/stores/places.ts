import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from 'vitest'

/** Names of files that are not there yet, in a folder that goes when the tests of this file are done. */
export function freshFiles(): (end?: string) => string {
  const folder = mkdtempSync(join(tmpdir(), 'threadkeep-'))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  let files = 0
  return (end = '.db') => join(folder, `${++files}${end}`)
}
