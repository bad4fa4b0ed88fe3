import { truncateText } from './table.ts'

const redrawIntervalMs = 100
const barWidth = 16
/** Before this much time a rate says little. */
const minRateMs = 500

type ProgressStream = { readonly isTTY?: boolean; readonly columns?: number; write(text: string): unknown }

type ProgressOptions = {
  readonly json?: boolean | undefined
  readonly stream?: ProgressStream
  readonly environment?: Readonly<Record<string, string | undefined>>
  readonly now?: () => number
}

/** Progress of a long operation: one line of a terminal that is overwritten. */
export type Progress = Disposable & {
  /** Shows a count, with the rate and, if the total is known, a bar and the time left. */
  count(label: string, done: number, total?: number): void
  /** Shows a step whose length is unknown, with the time since it began. */
  step(label: string): void
  /** Removes the line; a later update shows it again. */
  clear(): void
}

const eraseLine = '\r\u001b[K'

/**
 * Shows progress on standard error: only in a terminal, and not with `--json` or in CI. The line has no colours. It is
 * written here and not with a prompt library, whose spinners put the terminal into raw mode and end the process with
 * success on Ctrl-C.
 */
export function createProgress(options: ProgressOptions = {}): Progress {
  const { json = false, stream = process.stderr, environment = process.env, now = () => performance.now() } = options
  const isShown = stream.isTTY === true && !json && !isSet(environment.CI) && environment.TERM !== 'dumb'
  if (!isShown) return hiddenProgress
  let drawnAt = Number.NEGATIVE_INFINITY
  let isDrawn = false
  let current = { label: '', startedAt: 0, done: 0 }
  let timer: NodeJS.Timeout | undefined
  const draw = (text: string): void => {
    drawnAt = now()
    isDrawn = true
    stream.write(eraseLine + truncateText(text, (stream.columns || 80) - 1))
  }
  const begin = (label: string, done: number): void => {
    if (label !== current.label) current = { label, startedAt: now(), done }
  }
  const stopTimer = (): void => {
    clearInterval(timer)
    timer = undefined
  }
  const clear = (): void => {
    stopTimer()
    if (isDrawn) stream.write(eraseLine)
    isDrawn = false
    drawnAt = Number.NEGATIVE_INFINITY
  }
  // An interrupted command leaves an empty line.
  process.once('exit', clear)
  return {
    count(label, done, total) {
      stopTimer()
      begin(label, done)
      const isLast = total !== undefined && done >= total
      if (now() - drawnAt < redrawIntervalMs && !isLast) return
      draw(formatCountLine(label, done, total, { elapsedMs: now() - current.startedAt, from: current.done }))
    },
    step(label) {
      begin(label, 0)
      const show = (): void => draw(`${label} … ${formatDuration(now() - current.startedAt)}`)
      show()
      timer ??= setInterval(show, redrawIntervalMs).unref()
    },
    clear,
    [Symbol.dispose]() {
      process.off('exit', clear)
      clear()
    },
  }
}

const hiddenProgress: Progress = {
  count: () => undefined,
  step: () => undefined,
  clear: () => undefined,
  [Symbol.dispose]: () => undefined,
}

const isSet = (value: string | undefined): boolean => value !== undefined && value !== '' && value !== 'false'

type Elapsed = { readonly elapsedMs: number; readonly from: number }

function formatCountLine(label: string, done: number, total: number | undefined, { elapsedMs, from }: Elapsed): string {
  const rate = elapsedMs < minRateMs ? 0 : ((done - from) * 1_000) / elapsedMs
  const speed = rate === 0 ? [] : [`${formatNumber(rate)}/s`]
  if (total === undefined) return [`${label} ${formatNumber(done)}`, ...speed].join(', ')
  const share = total === 0 ? 1 : Math.min(1, done / total)
  const left = rate === 0 || done >= total ? [] : [`${formatDuration(((total - done) * 1_000) / rate)} left`]
  const counts = [`${label} ${formatNumber(done)} of ${formatNumber(total)}`, ...speed, ...left].join(', ')
  return `${formatBar(share)} ${`${Math.floor(100 * share)}`.padStart(3)} %  ${counts}`
}

const formatBar = (share: number): string => {
  const full = Math.round(barWidth * share)
  return `${'█'.repeat(full)}${'░'.repeat(barWidth - full)}`
}

/** Formats a count: `1,234`, or `0.7` below 10. */
const formatNumber = (value: number): string =>
  Number.isInteger(value) || value >= 10 ? Math.round(value).toLocaleString('en-US') : value.toFixed(1)

/** Formats a duration: `7 s`, `2 min 5 s`, `1 h 3 min`. */
export function formatDuration(ms: number): string {
  const seconds = Math.ceil(ms / 1_000)
  if (seconds < 60) return `${seconds} s`
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`
  return `${Math.floor(seconds / 3_600)} h ${Math.floor((seconds % 3_600) / 60)} min`
}
