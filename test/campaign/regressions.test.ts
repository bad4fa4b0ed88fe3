import { describe, expect, it } from 'vitest'
import { readFailures } from './failures.ts'
import { parts } from './parts.ts'

/** Failures that a campaign found and shrank. A file stays after the fix, so that the failure cannot come back. */
const failures = readFailures()

describe('a failure of an earlier campaign', () => {
  for (const [file, { part: name, kind, input }] of failures)
    it(`${file} (${kind.slice(0, 80)}) › does not come back`, async () => {
      const part = parts.find((candidate) => candidate.name === name) ?? expect.fail(`There is no part ${name}`)
      await using replayer = await part.openReplayer()
      expect((await replayer.replay(input)).filter((finding) => finding.kind === kind)).toEqual([])
    })

  it('names a part of the campaign', () => {
    const names = parts.map(({ name }) => name)
    expect([...failures.values()].filter(({ part }) => !names.includes(part))).toEqual([])
  })
})
