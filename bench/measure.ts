import { percentile } from '../src/evaluation/statistics.ts'

/** Operations measured side by side, by name. One round of each returns a time or a rate. */
export type Contenders = Readonly<Record<string, (round: number) => Promise<number>>>
/** Measurements of each contender, one per round, in order. */
export type Measurements = ReadonlyMap<string, readonly number[]>
/** Limit for the ratio of our measurement to that of a peer. */
export type Target = {
  readonly ours: string
  readonly peer: string
  readonly atLeast?: number
  readonly atMost?: number
}

/**
 * Runs rounds of all contenders interleaved, starting with another one each round, so that other load on the machine
 * affects all alike. The first `warmUpRounds` are not recorded.
 */
export async function measureInterleaved(
  contenders: Contenders,
  rounds: number,
  warmUpRounds = 1,
): Promise<Measurements> {
  const all = Object.entries(contenders)
  const measurements = new Map<string, number[]>(all.map(([name]) => [name, []]))
  for (let round = 0; round < warmUpRounds + rounds; round++) {
    for (let turn = 0; turn < all.length; turn++) {
      const [name, runRound] = all[(round + turn) % all.length] as (typeof all)[number]
      const value = await runRound(round)
      if (round >= warmUpRounds) measurements.get(name)?.push(value)
    }
  }
  return measurements
}

/** Returns the wall time of an operation in milliseconds. */
export async function measureMs(operation: () => unknown): Promise<number> {
  const start = performance.now()
  await operation()
  return performance.now() - start
}

/** Chooses entries by names separated by `;`: parts of names, or `=name` for a whole one. Without names, all. */
export const chooseByName = <T>(all: Readonly<Record<string, T>>, names?: string): (readonly [string, T])[] =>
  Object.entries(all).filter(
    ([name]) =>
      names?.split(';').some((part) => (part.startsWith('=') ? name === part.slice(1) : name.includes(part))) ?? true,
  )

export const sorted = (values: readonly number[]): number[] => [...values].sort((a, b) => a - b)
export const median = (values: readonly number[]): number => percentile(sorted(values), 0.5)

/**
 * Prints the median and interquartile range of every contender, then each target with the median ratio of the rounds.
 */
export function report(title: string, measurements: Measurements, targets: readonly Target[] = []): void {
  console.log(`\n${title}`)
  const width = Math.max(...[...measurements.keys()].map((name) => name.length))
  for (const [name, rounds] of measurements) {
    const [low, middle, high] = [0.25, 0.5, 0.75].map((share) => formatNumber(percentile(sorted(rounds), share)))
    console.log(`  ${name.padEnd(width)} ${middle?.padStart(10)}   (middle half ${low} to ${high})`)
  }
  for (const target of targets) console.log(`  ${formatTarget(measurements, target)}`)
}

function formatTarget(measurements: Measurements, { ours, peer, atLeast, atMost }: Target): string {
  const theirs = measurements.get(peer) ?? []
  const ratio = median((measurements.get(ours) ?? []).map((value, round) => value / (theirs[round] as number)))
  const text = `→ ${ours}: ${ratio.toFixed(2)}× ${peer}`
  if (atLeast !== undefined) return `${text}; target at least ${atLeast}×: ${ratio >= atLeast ? 'met' : 'MISSED'}`
  if (atMost !== undefined) return `${text}; target at most ${atMost}×: ${ratio <= atMost ? 'met' : 'MISSED'}`
  return text
}

const formatNumber = (value: number): string =>
  value >= 1_000 ? Math.round(value).toLocaleString('en') : value.toPrecision(3)

/**
 * Imports a package to compare with. Prints a note and returns undefined if it is not installed (`npm --prefix bench
 * ci`).
 */
export async function importPeer<T>(name: string): Promise<T | undefined> {
  try {
    return (await import(name)) as T
  } catch (error) {
    console.log(`${name} is skipped: it cannot be loaded (${error instanceof Error ? error.message : error})`)
    return undefined
  }
}
