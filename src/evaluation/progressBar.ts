const barWidth = 24
const redrawIntervalMs = 100
const lineIntervalMs = 5_000

export type ProgressBar = {
  readonly update: (done: number, total: number, label: string) => void
  /** Removes the bar from the terminal. */
  readonly clear: () => void
}

export type ProgressStream = { readonly isTTY?: boolean; write(text: string): unknown }

/** Shows progress: a bar on one line of a terminal, a line every few seconds elsewhere. */
export function createProgressBar(stream: ProgressStream, now: () => number = () => performance.now()): ProgressBar {
  const isTerminal = stream.isTTY === true
  // A short run prints nothing where lines cannot be overwritten.
  let updatedAt = isTerminal ? Number.NEGATIVE_INFINITY : now()
  return {
    update: (done, total, label) => {
      const at = now()
      if (at - updatedAt < (isTerminal ? redrawIntervalMs : lineIntervalMs)) return
      updatedAt = at
      const share = total === 0 ? 1 : done / total
      const percent = `${Math.floor(100 * share)} %`.padStart(5)
      stream.write(
        isTerminal
          ? `\r\u001b[K${formatBar(share)} ${percent} ${label}`
          : `${percent.trimStart()}, ${done} of ${total}: ${label}\n`,
      )
    },
    clear: () => void (isTerminal && stream.write('\r\u001b[K')),
  }
}

const formatBar = (share: number): string => {
  const full = Math.round(barWidth * Math.min(1, share))
  return `${'█'.repeat(full)}${'░'.repeat(barWidth - full)}`
}
