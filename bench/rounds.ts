import { percentile } from './data.ts'

/** What is measured side by side, by name: a round of each gives a time or a rate. */
export type Contenders = Readonly<Record<string, (round: number) => Promise<number>>>
/** One figure for each round, in order. */
export type Figures = ReadonlyMap<string, readonly number[]>
/** What ours divided by a peer's must come to. */
export type Target = {
  readonly ours: string
  readonly peer: string
  readonly atLeast?: number
  readonly atMost?: number
}

/** Rounds of all contenders, turn and turn about and each time another one first: whatever else the machine is doing falls on all alike. */
export async function inTurn(contenders: Contenders, rounds: number, warm = 1): Promise<Figures> {
  const all = Object.entries(contenders)
  const figures = new Map<string, number[]>(all.map(([name]) => [name, []]))
  for (let round = 0; round < warm + rounds; round++) {
    for (let turn = 0; turn < all.length; turn++) {
      const [name, play] = all[(round + turn) % all.length] as (typeof all)[number]
      const figure = await play(round)
      if (round >= warm) figures.get(name)?.push(figure)
    }
  }
  return figures
}

/** How long it takes, in milliseconds. */
export async function timed(work: () => unknown): Promise<number> {
  const start = performance.now()
  await work()
  return performance.now() - start
}

export const sorted = (figures: readonly number[]): number[] => [...figures].sort((a, b) => a - b)
export const median = (figures: readonly number[]): number => percentile(sorted(figures), 0.5)

/** Prints the median of every contender with the middle half of its rounds, then each target with the median ratio of the rounds. */
export function report(title: string, figures: Figures, targets: readonly Target[] = []): void {
  console.log(`\n${title}`)
  const width = Math.max(...[...figures.keys()].map((name) => name.length))
  for (const [name, rounds] of figures) {
    const [low, middle, high] = [0.25, 0.5, 0.75].map((part) => shown(percentile(sorted(rounds), part)))
    console.log(`  ${name.padEnd(width)} ${middle?.padStart(10)}   (middle half ${low} to ${high})`)
  }
  for (const target of targets) console.log(`  ${verdict(figures, target)}`)
}

function verdict(figures: Figures, { ours, peer, atLeast, atMost }: Target): string {
  const theirs = figures.get(peer) ?? []
  const ratio = median((figures.get(ours) ?? []).map((figure, round) => figure / (theirs[round] as number)))
  const text = `→ ${ours}: ${ratio.toFixed(2)}× ${peer}`
  if (atLeast !== undefined) return `${text}; target at least ${atLeast}×: ${ratio >= atLeast ? 'met' : 'MISSED'}`
  if (atMost !== undefined) return `${text}; target at most ${atMost}×: ${ratio <= atMost ? 'met' : 'MISSED'}`
  return text
}

const shown = (figure: number): string =>
  figure >= 1_000 ? Math.round(figure).toLocaleString('en') : figure.toPrecision(3)
