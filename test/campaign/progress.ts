import type { Part } from './part.ts'

const intervalMs = 5_000

/** Progress of a part on standard error: rate, and time left at that rate. */
export class Progress {
  private readonly part: Part
  private readonly planned: number
  private readonly doneByWorker = new Map<number, number>()
  private readonly startedAt = Date.now()
  private shownAt = Date.now()

  constructor(part: Part, planned: number) {
    this.part = part
    this.planned = planned
  }

  update(worker: number, done: number): void {
    this.doneByWorker.set(worker, done)
    if (Date.now() - this.shownAt < intervalMs) return
    this.shownAt = Date.now()
    this.show()
  }

  finish(): void {
    this.show()
  }

  private show(): void {
    const done = [...this.doneByWorker.values()].reduce((sum, count) => sum + count, 0)
    const seconds = (Date.now() - this.startedAt) / 1_000
    const rate = done / Math.max(0.001, seconds)
    const left = rate === 0 ? '?' : formatSeconds((this.planned - done) / rate)
    process.stderr.write(
      `${this.part.name}: ${done} of ${this.planned} ${this.part.unit}, ${Math.round(rate)}/s, ${formatSeconds(seconds)} so far, ${left} left\n`,
    )
  }
}

const formatSeconds = (seconds: number): string =>
  seconds < 90 ? `${Math.max(0, Math.round(seconds))} s` : `${Math.round(seconds / 60)} min`
