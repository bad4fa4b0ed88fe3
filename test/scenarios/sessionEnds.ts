import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { expect } from 'vitest'
import { openMemory } from '../../src/index.ts'
import { compileCacheEnv } from '../cli/command.ts'
import { root } from '../shape/source.ts'
import { openTestedStore, shortLived, start } from './sessionEndWriter.ts'

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

/** Opens the store hours later and sweeps until no session end is left to report. */
async function reportEndsLater(location: string): Promise<readonly string[]> {
  const ends: string[] = []
  const clock = { now: start + 3_600_000 }
  await using memory = await openMemory({
    profile: shortLived,
    store: await openTestedStore(location),
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

/**
 * Kills a writer at a step, continues its work and expects every end exactly once per id. Resolves to the number of
 * steps if the writer had fewer than `killAtStep`.
 */
export async function expectEndsOnce(location: string, log: string, killAtStep: number): Promise<number | undefined> {
  const { signal, stderr } = spawnSync(
    process.execPath,
    ['test/scenarios/sessionEndWriter.ts', location, log, `${killAtStep}`],
    { cwd: root, encoding: 'utf8', env: { ...process.env, ...compileCacheEnv } },
  )
  const before = readLog(log)
  expect(before.steps === undefined ? signal : 'SIGKILL', stderr).toBe('SIGKILL')
  const later = await reportEndsLater(location)
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
  return before.steps
}
