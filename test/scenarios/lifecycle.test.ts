import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { describe, expect } from 'vitest'
import { openMemory } from '../../src/index.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { compiled } from '../cli/command.ts'
import { verifies } from '../requirements/verifies.ts'
import { root } from '../shape/source.ts'
import { freshFiles } from '../stores/tempPaths.ts'
import { brief, start } from './lifecycleWriter.ts'

const fresh = freshFiles()

/** What a writer has noted before it was killed. */
function noted(log: string): {
  readonly said: readonly string[]
  readonly told: readonly string[]
  readonly steps: number | undefined
} {
  const lines = existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n') : []
  const of = (word: string) =>
    lines.flatMap((line) => (line.startsWith(`${word} `) ? [line.slice(word.length + 1)] : []))
  const [done] = of('done')
  return {
    said: of('said'),
    told: of('told'),
    steps: done === undefined ? undefined : Number(done.slice('after '.length)),
  }
}

/** Opens what was left behind, hours later, until there is nothing left to tell. */
async function told(file: string): Promise<readonly string[]> {
  const ends: string[] = []
  const clock = { now: start + 3_600_000 }
  await using memory = await openMemory({
    profile: brief,
    store: sqliteStore(file),
    clock: () => clock.now,
    onSessionEnd: (key, { messages }, { id }) =>
      void ends.push(`${key} ${id} ${messages.map(({ content }) => content)}`),
  })
  for (let rounds = 0; rounds < 3; rounds++) {
    await memory.sweep()
    await memory.lifecycle.settled()
    clock.now += 3_600_000
  }
  return ends
}

describe('the ends of sessions on a disk', () => {
  verifies(
    'T-07',
    'are told exactly once, by their ids, wherever the process is killed',
    async () => {
      let steps: number | undefined
      for (let last = 1; steps === undefined; last++) {
        const file = fresh()
        const log = `${file}.log`
        const { signal, stderr } = spawnSync(
          process.execPath,
          ['test/scenarios/lifecycleWriter.ts', file, log, `${last}`],
          {
            cwd: root,
            encoding: 'utf8',
            env: { ...process.env, ...compiled },
          },
        )
        const before = noted(log)
        expect(before.steps === undefined ? signal : 'SIGKILL', stderr).toBe('SIGKILL')
        const later = await told(file)
        expect(new Set(later).size).toBe(later.length)
        const ends = new Set([...before.told, ...later])
        // The same end told twice is the same text, and so once in the set.
        const keys = [...ends].map((end) => end.split(' ')[0]).sort()
        expect({ last, keys }).toEqual({ last, keys: [...new Set([...keys, ...before.said])].sort() })
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
