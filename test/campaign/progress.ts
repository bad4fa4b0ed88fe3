import type { Part } from './part.ts'

const terminalIntervalMs = 1_000
const logIntervalMs = 30_000

/** Progress of a part on standard error: count, rate, and time left at that rate. */
export class Progress implements Disposable {
  private readonly part: Part
  private readonly planned: number
  private readonly deadline: number
  private readonly doneByWorker = new Map<number, number>()
  private readonly startedAt = Date.now()
  private readonly timer: NodeJS.Timeout

  constructor(part: Part, planned: number, deadline: number) {
    this.part = part
    this.planned = planned
    this.deadline = deadline
    const { isTTY } = process.stderr
    this.timer = setInterval(
      () => process.stderr.write(isTTY ? `\r\x1b[K${this.line}` : `${this.line}\n`),
      isTTY ? terminalIntervalMs : logIntervalMs,
    )
  }

  update(worker: number, done: number): void {
    this.doneByWorker.set(worker, done)
  }

  [Symbol.dispose](): void {
    clearInterval(this.timer)
    process.stderr.write(process.stderr.isTTY ? `\r\x1b[K${this.line}\n` : `${this.line}\n`)
  }

  private get line(): string {
    const done = [...this.doneByWorker.values()].reduce((sum, count) => sum + count, 0)
    const seconds = (Date.now() - this.startedAt) / 1_000
    const rate = done / Math.max(0.001, seconds)
    const limit = Math.max(0, this.deadline - Date.now()) / 1_000
    const left = rate === 0 ? '?' : formatSeconds(Math.min(limit, (this.planned - done) / rate))
    const shownRate = rate < 10 ? rate.toFixed(1) : Math.round(rate)
    return `${this.part.name}: ${done} of ${this.planned} ${this.part.unit}, ${shownRate}/s, ${formatSeconds(seconds)} so far, ${left} left`
  }
}

const formatSeconds = (seconds: number): string =>
  seconds < 90 ? `${Math.max(0, Math.round(seconds))} s` : `${Math.round(seconds / 60)} min`
