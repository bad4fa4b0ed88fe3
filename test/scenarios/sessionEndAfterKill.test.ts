import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { describe, expect } from 'vitest'
import { openMemory } from '../../src/index.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { compileCacheEnv } from '../cli/command.ts'
import { verifies } from '../requirements/verifies.ts'
import { root } from '../shape/source.ts'
import { createTempPaths } from '../stores/tempPaths.ts'
import { shortLived, start } from './sessionEndWriter.ts'

const fresh = createTempPaths()

/** Parses the log that a writer left before it was killed. */
function readLog(log: string): {
  readonly stored: readonly string[]
  readonly reported: readonly string[]
  readonly steps: number | undefined
} {
  const lines = existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n') : []
  const of = (word: string) =>
    lines.flatMap((line) => (line.startsWith(`${word} `) ? [line.slice(word.length + 1)] : []))
  const [done] = of('done')
  return {
    stored: of('stored'),
    reported: of('ended'),
    steps: done === undefined ? undefined : Number(done.slice('after '.length)),
  }
}

/** Reopens the file hours later and sweeps until no session end is left to report. */
async function reportEndsLater(file: string): Promise<readonly string[]> {
  const ends: string[] = []
  const clock = { now: start + 3_600_000 }
  await using memory = await openMemory({
    profile: shortLived,
    store: sqliteStore(file),
    clock: () => clock.now,
    onSessionEnd: (key, { messages }, { id }) =>
      void ends.push(`${key} ${id} ${messages.map(({ content }) => content)}`),
  })
  for (let rounds = 0; rounds < 3; rounds++) {
    await memory.sweep()
    await memory.lifecycle.whenIdle()
    clock.now += 3_600_000
  }
  return ends
}

describe('session end events of a SQLite store', () => {
  verifies(
    'T-07',
    'are reported exactly once per id, at whichever step the process is killed',
    async () => {
      let steps: number | undefined
      for (let killAtStep = 1; steps === undefined; killAtStep++) {
        const file = fresh()
        const log = `${file}.log`
        const { signal, stderr } = spawnSync(
          process.execPath,
          ['test/scenarios/sessionEndWriter.ts', file, log, `${killAtStep}`],
          {
            cwd: root,
            encoding: 'utf8',
            env: { ...process.env, ...compileCacheEnv },
          },
        )
        const before = readLog(log)
        expect(before.steps === undefined ? signal : 'SIGKILL', stderr).toBe('SIGKILL')
        const later = await reportEndsLater(file)
        expect(new Set(later).size).toBe(later.length)
        const ends = new Set([...before.reported, ...later])
        // An end reported twice has the same text, so the set holds it once.
        const keys = [...ends].map((end) => end.split(' ')[0]).sort()
        expect({ last: killAtStep, keys }).toEqual({
          last: killAtStep,
          keys: [...new Set([...keys, ...before.stored])].sort(),
        })
        for (const end of ends) {
          const [key, id, ...words] = end.split(' ')
          expect([id?.startsWith(`end:${key}:`), words.join(' ')]).toEqual([true, `hello from ${key}`])
        }
        steps = before.steps
      }
      expect(steps).toBeGreaterThan(30)
    },
    240_000,
  )
})
