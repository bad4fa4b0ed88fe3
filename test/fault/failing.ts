import { join } from 'node:path'
import { chanceOf, spread } from './chance.ts'
import { repeatedWith, seed } from './counts.ts'
import { examine } from './examine.ts'
import { newFolder } from './folder.ts'
import { onFile, prepare, usual, write } from './writer.ts'

/** From which call of a thread to which one every call fails. */
export type Window = { readonly from: number; readonly to: number }

/** So many windows that begin among the first `calls`, each of up to `longest` calls. */
export function windowsOf(count: number, calls: number, longest: number): readonly Window[] {
  const chance = chanceOf(seed)
  return spread(count, calls, chance).map((before) => ({
    from: before + 1,
    to: before + 1 + Math.floor(chance() * longest),
  }))
}

export type Outcome = { readonly codes: readonly string[]; readonly faults: readonly string[] }

/** Runs the writer while calls on its file fail for a time; with which codes its operations failed, and what is wrong in the end. */
export async function failing(calls: string, error: string, { from, to }: Window): Promise<Outcome> {
  using folder = newFolder()
  const file = join(folder.path, 'a.db')
  await prepare(file)
  const fail = [
    '--seccomp-bpf',
    '-o',
    '/dev/null',
    '-e',
    `trace=${calls}`,
    '-e',
    `inject=${calls}:error=${error}:when=${from}..${to}`,
  ]
  const { journal, ended } = await write({ ...usual(file, seed), tries: 1 + 2 * (to - from + 1) }, [
    ...fail,
    ...onFile(file),
  ])
  const { failed, reads } = journal
  const faults = [
    ...(ended.code === 0 && ended.stderr === '' ? [] : [`the writer ended with ${ended.code}: ${ended.stderr}`]),
    ...(reads.length === failed.length ? [] : [`after ${failed.length} failures ${reads.length} reads went on`]),
    ...(await examine(file, journal)),
  ]
  return {
    codes: [...new Set(failed.map(({ code }) => code))],
    faults: faults.map((fault) => `calls ${from}..${to}, ${repeatedWith}: ${fault}`),
  }
}
