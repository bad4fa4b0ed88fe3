import '../../styles/memory.css'
import '../../styles/operations.css'
import { useMemo } from 'preact/hooks'
import { apiPath, request } from '../../api/client.ts'
import type { OperationsReport, OptimizerStatus, UsagePoint } from '../../api/types.ts'
import { useApp } from '../../appContext.ts'
import { Badge, Section, Stat, Stats, View } from '../../components/layout.tsx'
import { ScopeField } from '../../components/scopeField.tsx'
import { EmptyState, ResourceView } from '../../components/states.tsx'
import {
  formatBytes,
  formatCompact,
  formatCount,
  formatDollars,
  formatLatency,
  formatNumber,
  formatPercent,
  formatShortTime,
  formatTime,
} from '../../format.ts'
import { formatRoute, type Route, replaceSubject } from '../../router.ts'
import { useDelayed, useResource } from '../../useResource.ts'
import { Chart } from './chart.tsx'

type UsageSeries = { readonly intervalMs: number; readonly points: readonly UsagePoint[] }

/** Throughput, latency, tokens and cost over time, and the state of the server in words. */
export function OperationsView({ route }: { route: Route }) {
  const { access } = useApp()
  const [only = ''] = access.isOperator ? [] : access.scopes
  const scope = useDelayed(route.subject === '' ? only : route.subject, 250)
  const usage = useResource(
    (signal) => request<UsageSeries>(apiPath(['api', 'usage'], { scope }), { signal }),
    [scope],
    (event) => event.type === 'receipt',
  )
  return (
    <View title="Operations" subtitle="The last six hours, since the server started.">
      <search class="filters">
        <ScopeField scope={route.subject === '' ? only : route.subject} placeholder="All" onChange={replaceSubject} />
      </search>
      <ResourceView resource={usage}>
        {({ points, intervalMs }) =>
          points.length === 0 ? (
            <EmptyState title="No turns yet.">Figures appear with the first reply of a model.</EmptyState>
          ) : (
            <UsageCharts points={points} intervalMs={intervalMs} />
          )
        }
      </ResourceView>
      {access.isOperator && <ServerState />}
      <OptimizerSection scope={scope} />
    </View>
  )
}

function UsageCharts({ points, intervalMs }: { points: readonly UsagePoint[]; intervalMs: number }) {
  const charts = useMemo(() => toCharts(toIntervals(points, intervalMs)), [points])
  const sum = (read: (point: UsagePoint) => number): number => points.reduce((total, point) => total + read(point), 0)
  const [turns, shown, saved] = [sum((point) => point.turns), sum((point) => point.shown), sum((point) => point.saved)]
  return (
    <Section title="Usage">
      <Stats>
        <Stat label="Turns" value={formatNumber(turns)} note={`${formatNumber(sum((point) => point.failed))} failed`} />
        <Stat
          label="Mean latency"
          value={formatLatency(turns === 0 ? 0 : sum((point) => point.millis.total) / turns)}
          note={`${formatLatency(turns === 0 ? 0 : sum((point) => point.millis.memory) / turns)} in memory`}
        />
        <Stat label="Tokens sent" value={formatNumber(shown)} />
        <Stat
          label="Tokens saved"
          value={formatNumber(saved)}
          note={shown + saved === 0 ? '' : `${formatPercent(saved / (shown + saved))} of the history`}
        />
        <Stat label="Cost" value={formatDollars(sum((point) => point.dollars))} />
      </Stats>
      <div class="charts">
        {charts.map((chart) => (
          <Chart key={chart.title} {...chart} />
        ))}
      </div>
    </Section>
  )
}

/** A chart shows at least this many intervals. */
const minIntervals = 15
/** Intervals of a chart, in minutes; the first one with at most `maxIntervals` for the period is used. */
const chartMinutes = [1, 2, 5, 10, 20]
const maxIntervals = 48

type Totals = Pick<UsagePoint, 'turns' | 'failed' | 'shown' | 'saved' | 'dollars'> & {
  readonly at: number
  readonly totalMs: number
  readonly memoryMs: number
}

/** Sums the points of each interval of a chart; an interval without a turn is zero. */
function toIntervals(points: readonly UsagePoint[], intervalMs: number): readonly Totals[] {
  const [first = 0, last = 0] = [points[0]?.at, points.at(-1)?.at]
  const minutes = chartMinutes.find((count) => last - first <= count * intervalMs * maxIntervals) ?? 60
  const size = minutes * intervalMs
  const start = Math.min(Math.floor(first / size), Math.floor(last / size) - minIntervals)
  const count = Math.floor(last / size) - start + 1
  return Array.from({ length: count }, (_, index) => {
    const at = (start + index) * size
    const own = points.filter((point) => point.at >= at && point.at < at + size)
    const sum = (read: (point: UsagePoint) => number): number => own.reduce((total, point) => total + read(point), 0)
    return {
      at,
      turns: sum((point) => point.turns),
      failed: sum((point) => point.failed),
      shown: sum((point) => point.shown),
      saved: sum((point) => point.saved),
      dollars: sum((point) => point.dollars),
      totalMs: sum((point) => point.millis.total),
      memoryMs: sum((point) => point.millis.memory),
    }
  })
}

function toCharts(intervals: readonly Totals[]) {
  const times = intervals.map(({ at }) => at / 1_000)
  const minutes = Math.round(((times[1] ?? 60) - (times[0] ?? 0)) / 60)
  const unit = minutes === 1 ? 'minute' : `${minutes} minutes`
  const values = (read: (totals: Totals) => number): (number | null)[] => intervals.map(read)
  const means = (read: (totals: Totals) => number): (number | null)[] =>
    intervals.map((totals) => (totals.turns > 0 ? read(totals) / totals.turns : null))
  return [
    {
      title: `Turns per ${unit}`,
      times,
      isCount: true,
      format: formatCompact,
      series: [
        { label: 'answered', color: 1 as const, values: values(({ turns }) => turns) },
        { label: 'failed', color: 2 as const, values: values(({ failed }) => failed) },
      ],
    },
    {
      title: 'Mean latency',
      times,
      format: formatLatency,
      series: [
        { label: 'turn', color: 1 as const, values: means(({ totalMs }) => totalMs) },
        { label: 'memory', color: 3 as const, values: means(({ memoryMs }) => memoryMs) },
      ],
    },
    {
      title: `Tokens per ${unit}`,
      times,
      isCount: true,
      format: formatCompact,
      series: [
        { label: 'sent', color: 1 as const, values: values(({ shown }) => shown) },
        { label: 'saved', color: 3 as const, values: values(({ saved }) => Math.max(0, saved)) },
      ],
    },
    {
      title: `Cost per ${unit}`,
      times,
      format: formatDollars,
      series: [{ label: 'cost', color: 4 as const, values: values(({ dollars }) => dollars) }],
    },
  ]
}

const stateTones = { ok: 'good', failing: 'warning', down: 'danger' } as const
const statusTexts: Readonly<Record<OperationsReport['status'], string>> = {
  ok: 'Everything works.',
  degraded: 'The server works with restrictions:',
  draining: 'The server is shutting down.',
  unavailable: 'The server cannot answer requests:',
}

function ServerState() {
  const report = useResource(
    (signal) => request<OperationsReport>('/api/operations', { signal }),
    [],
    ({ type }) => type === 'receipt',
  )
  return (
    <ResourceView resource={report} rows={3}>
      {(found) => (
        <>
          <Section title="Server">
            <Health report={found} />
          </Section>
          <Section title="Upkeep" note="Since the server started.">
            <UpkeepSteps report={found} />
          </Section>
        </>
      )}
    </ResourceView>
  )
}

const Health = ({ report: { status, degraded, upstreams, ram, pendingDeliveries } }: { report: OperationsReport }) => (
  <div class="stack">
    <div>
      <p class={`status ${status === 'ok' ? 'good' : 'warning'}`}>{statusTexts[status]}</p>
      <ul class="faults">
        {[...new Map(degraded.map(({ part, why }) => [`${part} ${why}`, { part, why }]))].map(
          ([name, { part, why }]) => (
            <li key={name}>
              <Badge tone="warning">{part}</Badge> <span>{toSentence(why)}</span>
            </li>
          ),
        )}
      </ul>
    </div>
    <Stats>
      {upstreams.map(({ name, state }) => (
        <Stat key={name} label={`Upstream ${name}`} value={<Badge tone={stateTones[state]}>{state}</Badge>} />
      ))}
      <Stat
        label="Sessions in RAM"
        value={formatBytes(ram.used)}
        {...(ram.limit !== undefined && { note: `of ${formatBytes(ram.limit)}` })}
      />
      <Stat label="Waiting webhooks" value={formatNumber(pendingDeliveries)} />
    </Stats>
  </div>
)

/** Health reports phrases and sentences. A phrase may begin with the name of an upstream, which stays as it is. */
const toSentence = (text: string): string => text.replace(/\.?$/, '.')

const stepTexts: Readonly<Record<OperationsReport['steps'][number]['step'], string>> = {
  compact: 'Continued the summary',
  summariseHour: 'Summarised an hour',
  summariseSession: 'Summarised the session',
  reextractFacts: 'Looked for facts',
  optimize: 'Tuned the parameters',
  learn: 'Looked for knowledge',
  adoptTuning: 'Took over tuned parameters',
}

function UpkeepSteps({ report: { upkeep, steps } }: { report: OperationsReport }) {
  return (
    <div class="stack">
      <p class="muted">
        {upkeep
          .filter(({ done, running }) => done + running > 0)
          .map(({ profile, by, done, running }) => {
            const active = running === 0 ? '' : `, ${formatNumber(running)} running`
            return `${profile}: ${formatCount(done, 'step')} by ${by}${active}`
          })
          .join(' · ')}
      </p>
      {steps.length === 0 ? <p class="muted">No step has finished yet.</p> : <StepTable steps={steps} />}
    </div>
  )
}

const StepTable = ({ steps }: Pick<OperationsReport, 'steps'>) => (
  <div class="table-frame">
    <table class="stacked">
      <thead>
        <tr>
          <th scope="col">Step</th>
          <th scope="col">Session</th>
          <th scope="col" class="number">
            Summaries
          </th>
          <th scope="col" class="number">
            Facts
          </th>
          <th scope="col">Restrictions</th>
          <th scope="col" class="number">
            Finished
          </th>
        </tr>
      </thead>
      <tbody>
        {steps.map(({ key, at, step, summaries, facts, faults }, index) => (
          <tr key={index}>
            <td class="shrink">{stepTexts[step]}</td>
            <td class="shrink">
              <a class="mono" href={formatRoute('memory', key, { tab: summaries > 0 ? 'summaries' : 'facts' })}>
                {key}
              </a>
            </td>
            <td class="number" data-label="Summaries">
              {formatNumber(summaries)}
            </td>
            <td class="number" data-label="Facts">
              {formatNumber(facts)}
            </td>
            <td class="faults-cell lead">
              {faults.length === 0 ? <span class="muted">none</span> : faults.map((why) => <p key={why}>{why}</p>)}
            </td>
            <td class="number">
              <time dateTime={new Date(at).toISOString()} title={formatTime(at)}>
                {formatShortTime(at)}
              </time>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  </div>
)

function OptimizerSection({ scope }: { scope: string }) {
  const status = useResource(
    (signal) => request<OptimizerStatus>(apiPath(['learning', 'optimizer', 'status'], { key: scope }), { signal }),
    [scope],
  )
  return (
    <Section title="Optimizer">
      <ResourceView resource={status} rows={2}>
        {({ totalOptimizations, totalTokensSaved, currentParameters: now }) => (
          <Stats>
            <Stat label="Runs" value={formatNumber(totalOptimizations)} />
            <Stat label="Tokens saved" value={formatNumber(totalTokensSaved)} />
            <Stat label="Shortens from" value={formatPercent(now.compressionTrigger)} note="of the budget" />
            <Stat label="Whole messages" value={formatNumber(now.fullMessageWindow)} note="newest ones" />
            <Stat label="Minimum relevance" value={now.minRelevance.toFixed(2)} />
            <Stat label="Target" value={formatPercent(now.targetUsageRatio)} note="of the budget" />
          </Stats>
        )}
      </ResourceView>
    </Section>
  )
}
