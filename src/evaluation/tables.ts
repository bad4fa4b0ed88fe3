import type { MetricReport } from './benchmark.ts'
import type { CategoryResult } from './evidence.ts'
import { formatPercent, type Latency } from './statistics.ts'

/** A table of text cells; the first column is text, the others are numbers. */
export type Table = {
  readonly title: string
  readonly header: readonly string[]
  readonly rows: readonly (readonly string[])[]
}

const formatMs = (milliseconds: number): string => (Number.isNaN(milliseconds) ? '–' : milliseconds.toFixed(2))
const formatLatency = ({ p50, p95 }: Latency): string[] => [formatMs(p50), formatMs(p95)]
const notSupported = 'not supported'

/** Creates the table of a metric: one row for each system and budget. */
export function createTable(report: MetricReport): Table {
  const { dataset } = report
  switch (report.metric) {
    case 'evidence':
      return toTable(
        `${dataset}: evidence in budget, %`,
        ['questions', 'by turn', 'by word', 'all evidence', 'budget spent', 'over budget', 'p50 ms', 'p95 ms'],
        report,
        ({ questions, byTurn, byWord, allEvidence, budgetShare, overBudget, latency }) => [
          `${questions}`,
          ...[byTurn, byWord, allEvidence, budgetShare].map(formatPercent),
          `${overBudget}`,
          ...formatLatency(latency),
        ],
      )
    case 'future':
      return toTable(
        `${dataset}: future reference, %`,
        ['cuts', 'reused', 'over budget', 'p50 ms', 'p95 ms'],
        report,
        ({ cuts, reused, overBudget, latency }) => [
          `${cuts}`,
          formatPercent(reused),
          `${overBudget}`,
          ...formatLatency(latency),
        ],
      )
    case 'update':
      return toTable(
        `${dataset}: updated facts`,
        ['questions', 'newest shown', 'stale only', 'over budget'],
        report,
        ({ questions, current, staleOnly, overBudget }) =>
          [questions, current, staleOnly, overBudget].map((count) => `${count}`),
      )
    case 'isolation':
      return toTable(
        `${dataset}: isolation of users in one store`,
        ['questions', 'foreign turns', 'same context %', 'by turn alone', 'by turn shared'],
        report,
        ({ questions, foreignTurns, identical, aloneByTurn, sharedByTurn }) => [
          `${questions}`,
          `${foreignTurns}`,
          ...[identical, aloneByTurn, sharedByTurn].map(formatPercent),
        ],
      )
    case 'prefix':
      return toTable(
        `${dataset}: common prefix of consecutive prompts, %`,
        ['prompts', 'common', 'mean tokens', 'over budget', 'cuts', 'broken'],
        report,
        ({ prompts, common, meanTokens, overBudget, cuts, broken }) => [
          `${prompts}`,
          formatPercent(common),
          `${Math.round(meanTokens)}`,
          ...[overBudget, cuts, broken].map((count) => `${count}`),
        ],
      )
  }
}

type SystemResults<T> = {
  readonly system: string
  readonly results?: readonly (T & { readonly budget: number })[]
}

function toTable<T>(
  title: string,
  columns: readonly string[],
  { systems }: { readonly systems: readonly SystemResults<T>[] },
  toCells: (result: T) => readonly string[],
): Table {
  const rows = systems.flatMap(({ system, results }): (readonly string[])[] =>
    results === undefined
      ? [[system, notSupported, ...columns.map(() => '–')]]
      : results.map((result) => [system, `${result.budget}`, ...toCells(result)]),
  )
  return { title, header: ['system', 'budget', ...columns], rows }
}

/** Creates a table of evidence by turn and by word, with one row for each category and system. */
export function createCategoryTable({ dataset, systems }: MetricReport<'evidence'>): Table {
  const budgets = [...new Set(systems.flatMap(({ results }) => results?.map(({ budget }) => budget) ?? []))]
  const categories = [
    ...new Set(systems.flatMap(({ results }) => results?.[0]?.categories.map(({ category }) => category) ?? [])),
  ]
  const rows = categories.flatMap((category) =>
    systems.map(({ system, results }) => {
      const found = budgets.map((budget) =>
        results
          ?.find((result) => result.budget === budget)
          ?.categories.find((candidate) => candidate.category === category),
      )
      return [category, system, `${found[0]?.questions ?? 0}`, ...found.map(formatCategory)]
    }),
  )
  return {
    title: `${dataset}: evidence by turn / by word and category, %`,
    header: ['category', 'system', 'questions', ...budgets.map((budget) => `${budget}`)],
    rows,
  }
}

const formatCategory = (result: CategoryResult | undefined): string =>
  result === undefined ? '–' : `${formatPercent(result.byTurn)} / ${formatPercent(result.byWord)}`

/** Formats a table as Markdown. */
export function formatMarkdown({ title, header, rows }: Table): string[] {
  const toLine = (cells: readonly string[]): string =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
  return [
    `### ${title}`,
    '',
    toLine(header),
    toLine(header.map((_, column) => (column === 0 ? '---' : '---:'))),
    ...rows.map(toLine),
    '',
  ]
}
