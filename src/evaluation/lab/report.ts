import { escapeHtml } from '../../text/escapeHtml.ts'
import { formatPercent, mean } from '../statistics.ts'
import { drawBarChart } from './barChart.ts'
import type { LabRow } from './lab.ts'

/** Colours of up to ten series, readable on a light and on a dark background. */
const seriesColours = [
  '#3b7dd8',
  '#e07b39',
  '#3a9d6e',
  '#b3589a',
  '#c9a227',
  '#6f6fd1',
  '#4fa3a5',
  '#c2505a',
  '#8a8f3c',
  '#8b6f5c',
]

const style = `
:root { color-scheme: light dark; --text: #1f2328; --muted: #59636e; --line: #d1d9e0; --back: #fff; --stripe: #f6f8fa; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e6edf3; --muted: #9aa4af; --line: #3d444d; --back: #0d1117; --stripe: #161b22; }
}
body { font: 15px/1.5 system-ui, sans-serif; color: var(--text); background: var(--back); max-width: 1100px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(20rem, 1fr)); gap: 1rem; }
figure { margin: 0; padding: .75rem; border: 1px solid var(--line); border-radius: 6px; }
figcaption { font-weight: 600; } svg { width: 100%; height: auto; }
svg text { fill: var(--text); font-size: 12px; } .tick { text-anchor: end; fill: var(--muted); } .group { text-anchor: middle; }
.grid { stroke: var(--line); }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-size: 13px; width: 100%; }
th, td { padding: .3rem .6rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th.text, td.text { text-align: left; } tbody tr:nth-child(even) { background: var(--stripe); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; } dt { color: var(--muted); } dd { margin: 0; }
${seriesColours.map((colour, index) => `.series${index} { fill: ${colour}; }`).join(' ')}`

type Value = (row: LabRow) => number
type Label = (row: LabRow) => string

/** Averages a value by group and series. */
function averageBy(rows: readonly LabRow[], group: Label, series: Label, value: Value) {
  const groups = [...new Set(rows.map(group))]
  const names = [...new Set(rows.map(series))]
  const averageOf = (name: string, label: string): number =>
    mean(rows.filter((row) => group(row) === label && series(row) === name).map(value))
  return { groups, series: names.map((name) => ({ name, values: groups.map((label) => averageOf(name, label)) })) }
}

const bySize: Label = ({ size }) => `${size.toLocaleString('en')} tokens`
const byType: Label = ({ type }) => type
const byCompression: Label = ({ compression }) => compression
const byAlgorithm: Label = ({ algorithm }) => algorithm
const percent =
  (value: Value): Value =>
  (row) =>
    100 * value(row)

type Plot = {
  readonly title: string
  readonly unit: string
  readonly group: Label
  readonly series: Label
  readonly value: Value
}
const plots: readonly Plot[] = [
  {
    title: 'Fact survival by size',
    unit: '%',
    group: bySize,
    series: byAlgorithm,
    value: percent((row) => row.factSurvival),
  },
  {
    title: 'Fact survival by type',
    unit: '%',
    group: byType,
    series: byAlgorithm,
    value: percent((row) => row.factSurvival),
  },
  {
    title: 'Planted facts by type',
    unit: '%',
    group: byType,
    series: byAlgorithm,
    value: percent((row) => row.plantedFacts),
  },
  {
    title: 'Similarity by type',
    unit: '%',
    group: byType,
    series: byAlgorithm,
    value: percent((row) => row.similarity),
  },
  {
    title: 'Budget spent by size',
    unit: '%',
    group: bySize,
    series: byAlgorithm,
    value: percent((row) => row.restoredTokens / row.budget),
  },
  {
    title: 'Exported bytes by size',
    unit: 'kB',
    group: bySize,
    series: byCompression,
    value: (row) => row.exportBytes / 1_000,
  },
  { title: 'Time to restore by size', unit: 'ms', group: bySize, series: byAlgorithm, value: (row) => row.restoreMs },
  {
    title: 'Time to save, export and import by size',
    unit: 'ms',
    group: bySize,
    series: byCompression,
    value: (row) => row.saveMs + row.exportMs + row.importMs,
  },
]

/** Columns of the table of all results; the first four are text. */
export const labColumns: readonly (readonly [title: string, format: (row: LabRow) => string])[] = [
  ['size', (row) => `${row.size}`],
  ['type', byType],
  ['compression', byCompression],
  ['algorithm', byAlgorithm],
  ['messages', (row) => `${row.messages}`],
  ['tokens', (row) => `${row.tokens}`],
  ['budget', (row) => `${row.budget}`],
  ['restored', (row) => `${row.restoredTokens}`],
  ['lossless', (row) => (row.isLossless ? 'yes' : 'no')],
  ['similarity %', (row) => formatPercent(row.similarity)],
  ['facts %', (row) => formatPercent(row.factSurvival)],
  ['planted %', (row) => formatPercent(row.plantedFacts)],
  ['store bytes', (row) => `${row.storeBytes}`],
  ['export bytes', (row) => `${row.exportBytes}`],
  ['save ms', (row) => row.saveMs.toFixed(1)],
  ['export ms', (row) => row.exportMs.toFixed(1)],
  ['import ms', (row) => row.importMs.toFixed(1)],
  ['restore ms', (row) => row.restoreMs.toFixed(1)],
]
const textColumns = 4

const explanation = `<dl>
<dt>restored</dt><dd>tokens of the restored text, within the budget</dd>
<dt>lossless</dt><dd>the imported transcript is the saved one, message by message</dd>
<dt>similarity</dt><dd>TF-IDF cosine of the restored text and the conversation</dd>
<dt>facts</dt><dd>share of the names, numbers and constraints of the conversation in the restored text</dd>
<dt>planted</dt><dd>share of the words of the planted facts in the restored text; the questions are unknown when it is built</dd>
<dt>bytes</dt><dd>size of the SQLite file and of the exported directory</dd>
</dl>`

/** Creates a self-contained HTML page with plots and tables. It needs no script and makes no request. */
export function createLabReport(rows: readonly LabRow[], seed: number): string {
  const drawn = plots.map(({ title, unit, group, series, value }) =>
    drawBarChart({ title, unit, ...averageBy(rows, group, series, value) }),
  )
  const lossless = rows.every(({ isLossless }) => isLossless)
  const overBudget = rows.filter(({ restoredTokens, budget }) => restoredTokens > budget).length
  const summary = `${rows.length} combinations of size, type, compression and algorithm, seed ${seed}. Each conversation was generated, saved, exported, imported into a new store and restored. ${lossless ? 'Every imported transcript is identical to the saved one.' : 'Some imported transcripts differ from the saved ones.'} ${overBudget === 0 ? 'No restored text is over its budget.' : `${overBudget} restored texts are over their budget.`}`
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Threadkeep laboratory</title>
<style>${style}</style>
</head>
<body>
<h1>Threadkeep laboratory</h1>
<p>${summary}</p>
<h2>Plots</h2>
<div class="plots">
${drawn.join('\n')}
</div>
<h2>Results</h2>
${explanation}
<div class="scroll">
${createTable(rows)}
</div>
</body>
</html>
`
}

function createTable(rows: readonly LabRow[]): string {
  const toCells = (tag: 'th' | 'td', cells: readonly string[]): string =>
    cells
      .map((cell, column) => `<${tag}${column < textColumns ? ' class="text"' : ''}>${escapeHtml(cell)}</${tag}>`)
      .join('')
  const header = `<thead><tr>${toCells(
    'th',
    labColumns.map(([title]) => title),
  )}</tr></thead>`
  const body = rows.map(
    (row) =>
      `<tr>${toCells(
        'td',
        labColumns.map(([, format]) => format(row)),
      )}</tr>`,
  )
  return `<table>${header}\n<tbody>\n${body.join('\n')}\n</tbody></table>`
}
