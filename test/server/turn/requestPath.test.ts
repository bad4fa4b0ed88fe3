import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, it } from 'vitest'

const maxSourceFiles = 100
const maxHeadReads = 4

describe('the fifth turn of a chat over the RAM store', () => {
  let files: readonly string[]
  let heads: readonly string[]
  beforeAll(async () => {
    const probe = fileURLToPath(new URL('requestPathProbe.ts', import.meta.url))
    const { stdout } = await promisify(execFile)(process.execPath, [probe])
    ;({ files, heads } = JSON.parse(stdout))
  })

  it(`runs code of at most ${maxSourceFiles} source files`, () => {
    // Guards against a probe that measured nothing.
    expect(files).toContain('server/turn/handleTurn.ts')
    expect(files.length, files.join('\n')).toBeLessThanOrEqual(maxSourceFiles)
  })

  it(`reads at most ${maxHeadReads} session heads`, () => {
    expect(heads).toContain('acme:ann')
    expect(heads.length, heads.join('\n')).toBeLessThanOrEqual(maxHeadReads)
  })
})
