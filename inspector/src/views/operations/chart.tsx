import 'uplot/dist/uPlot.min.css'
import { useEffect, useRef } from 'preact/hooks'
import uPlot from 'uplot'
import { formatClock } from '../../format.ts'

/** A line of a chart; its colour is the token `--series-N`. */
export type Series = {
  readonly label: string
  readonly values: readonly (number | null)[]
  readonly color: 1 | 2 | 3 | 4
}

type ChartProps = {
  title: string
  /** Seconds since 1970. */
  times: readonly number[]
  series: readonly Series[]
  format: (value: number) => string
  /** True for numbers of things, which have no fractions. */
  isCount?: boolean
}

const chartHeightPx = 150

/** A chart over time. The figures are also in a table for screen readers. */
export function Chart({ title, times, series, format, isCount = false }: ChartProps) {
  const element = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const target = element.current
    if (target === null) return
    let plot: uPlot | undefined
    const draw = (): void => {
      plot?.destroy()
      plot = new uPlot(
        createOptions(target, series, format, isCount),
        [[...times], ...series.map(({ values }) => [...values])],
        target,
      )
    }
    draw()
    const observer = new ResizeObserver(() => plot?.setSize({ width: target.clientWidth, height: chartHeightPx }))
    observer.observe(target)
    const scheme = matchMedia('(prefers-color-scheme: dark)')
    scheme.addEventListener('change', draw)
    const theme = new MutationObserver(draw)
    theme.observe(document.documentElement, { attributeFilter: ['data-theme'] })
    return () => {
      observer.disconnect()
      theme.disconnect()
      scheme.removeEventListener('change', draw)
      plot?.destroy()
    }
  }, [times, series])
  const last = series.map(({ label, values }) => `${label} ${formatLast(values, format)}`).join(', ')
  return (
    <figure class="chart">
      <figcaption>
        <b>{title}</b>
        {series.map(({ label, color, values }) => (
          <span key={label} class="muted">
            <span class={`swatch series-${color}`} />
            {label} {formatLast(values, format)}
          </span>
        ))}
      </figcaption>
      <div ref={element} role="img" aria-label={`${title}: ${last}`} />
    </figure>
  )
}

const formatLast = (values: readonly (number | null)[], format: (value: number) => string): string => {
  const last = values.findLast((value) => value !== null)
  return last === undefined || last === null ? '–' : format(last)
}

/** Distances of the lines of a chart of things: 1, 2, 5, 10 and so on. */
const countSteps = Array.from({ length: 10 }, (_, power) => [1, 2, 5].map((step) => step * 10 ** power)).flat()

/** Values between gaps have no line, only a point. */
function findIsolated({ data }: uPlot, index: number): number[] {
  const values = data[index] ?? []
  const isGap = (at: number): boolean => (values[at] ?? null) === null
  return [...values.keys()].filter((at) => !isGap(at) && isGap(at - 1) && isGap(at + 1))
}

/** Canvases need resolved colours. */
function resolveColor(target: HTMLElement, token: string): string {
  const probe = document.createElement('span')
  probe.style.color = `var(${token})`
  target.append(probe)
  const { color } = getComputedStyle(probe)
  probe.remove()
  return color
}

function createOptions(
  target: HTMLElement,
  series: readonly Series[],
  format: (value: number) => string,
  isCount: boolean,
): uPlot.Options {
  const [muted, border] = [resolveColor(target, '--muted'), resolveColor(target, '--border')]
  const { fontFamily } = getComputedStyle(target)
  const axis = {
    stroke: muted,
    font: `11px ${fontFamily}`,
    grid: { stroke: border, width: 1 },
    ticks: { stroke: border, width: 1 },
  }
  return {
    width: target.clientWidth,
    height: chartHeightPx,
    padding: [8, 8, 0, 0],
    legend: { show: false },
    cursor: { drag: { x: false, y: false } },
    axes: [
      { ...axis, size: 28, values: (_, splits) => splits.map((seconds) => formatClock(seconds * 1_000)) },
      {
        ...axis,
        size: 66,
        values: (_, splits) => splits.map(format),
        ...(isCount && { incrs: countSteps }),
      },
    ],
    scales: { y: { range: (_, min, max) => [Math.min(0, min), max <= 0 ? 1 : max * 1.1] } },
    series: [
      {},
      ...series.map(({ label, color }) => {
        const stroke = resolveColor(target, `--series-${color}`)
        const points = { size: 4, fill: stroke, show: true, filter: findIsolated }
        return { label, stroke, width: 1.5, points, spanGaps: false }
      }),
    ],
  }
}
