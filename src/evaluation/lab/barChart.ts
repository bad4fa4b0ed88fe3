import { escapeHtml } from '../../text/escapeHtml.ts'
/** Values by group and series: one bar for each. */
export type BarChart = {
  readonly title: string
  readonly unit: string
  readonly groups: readonly string[]
  readonly series: readonly { readonly name: string; readonly values: readonly number[] }[]
}

const width = 720
const plot = { left: 64, right: 16, top: 16, height: 220 }
const labelHeight = 28
const legendLineHeight = 18
const legendColumns = 4
const tickCount = 4

/** Formats a number with at most three significant digits. */
const formatNumber = (value: number): string =>
  Number.isFinite(value) ? Number(value.toPrecision(3)).toLocaleString('en') : '–'

/** Returns the smallest round number that is not below a value: 1, 2 or 5 times a power of ten. */
function roundUp(value: number): number {
  if (!(value > 0)) return 1
  const power = 10 ** Math.floor(Math.log10(value))
  return ([1, 2, 5, 10].find((factor) => factor * power >= value) ?? 10) * power
}

/** Draws a grouped bar chart as an SVG figure. Colours come from the classes `series0`, `series1` and so on. */
export function drawBarChart({ title, unit, groups, series }: BarChart): string {
  const max = roundUp(Math.max(...series.flatMap(({ values }) => values.filter(Number.isFinite)), 0))
  const legendLines = Math.ceil(series.length / legendColumns)
  const height = plot.top + plot.height + labelHeight + legendLines * legendLineHeight + 8
  const groupWidth = (width - plot.left - plot.right) / Math.max(1, groups.length)
  const barWidth = (groupWidth * 0.84) / Math.max(1, series.length)
  const bars = groups.flatMap((group, groupIndex) =>
    series.map(({ name, values }, index) => {
      const value = values[groupIndex] ?? 0
      const barHeight = Number.isFinite(value) ? (plot.height * value) / max : 0
      const x = plot.left + groupWidth * (groupIndex + 0.08) + barWidth * index
      const label = escapeHtml(`${group}, ${name}: ${formatNumber(value)} ${unit}`)
      return `<rect class="series${index}" x="${x.toFixed(1)}" y="${(plot.top + plot.height - barHeight).toFixed(1)}" width="${(barWidth * 0.92).toFixed(1)}" height="${barHeight.toFixed(1)}"><title>${label}</title></rect>`
    }),
  )
  return `<figure><figcaption>${escapeHtml(title)} (${escapeHtml(unit)})</figcaption>
<svg viewBox="0 0 ${width} ${height}" role="img" aria-label="${escapeHtml(title)}">
${drawAxis(max)}
${bars.join('\n')}
${groups.map((group, index) => drawGroupLabel(group, plot.left + groupWidth * (index + 0.5))).join('\n')}
${series.map(({ name }, index) => drawLegend(name, index)).join('\n')}
</svg></figure>`
}

const drawAxis = (max: number): string =>
  Array.from({ length: tickCount + 1 }, (_, index) => {
    const y = (plot.top + plot.height * (1 - index / tickCount)).toFixed(1)
    const label = formatNumber((max * index) / tickCount)
    return `<line class="grid" x1="${plot.left}" x2="${width - plot.right}" y1="${y}" y2="${y}"/><text class="tick" x="${plot.left - 6}" y="${y}" dy="4">${label}</text>`
  }).join('\n')

const drawGroupLabel = (group: string, x: number): string =>
  `<text class="group" x="${x.toFixed(1)}" y="${plot.top + plot.height + 18}">${escapeHtml(group)}</text>`

function drawLegend(name: string, index: number): string {
  const x = plot.left + (index % legendColumns) * ((width - plot.left - plot.right) / legendColumns)
  const y = plot.top + plot.height + labelHeight + Math.floor(index / legendColumns) * legendLineHeight
  return `<rect class="series${index}" x="${x.toFixed(1)}" y="${y}" width="11" height="11"/><text class="legend" x="${(x + 16).toFixed(1)}" y="${y + 10}">${escapeHtml(name)}</text>`
}
