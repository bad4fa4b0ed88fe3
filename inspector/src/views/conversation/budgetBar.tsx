import { useId, useRef } from 'preact/hooks'
import type { Ledger, LedgerLine } from '../../api/types.ts'
import { formatCount, formatNumber, formatPercent, seriesIndex } from '../../format.ts'
import {
  countVerdicts,
  formatEntries,
  formatReason,
  formatSource,
  shownLines,
  verdicts,
  verdictTexts,
} from './ledgerLines.ts'

/** A context that uses less of its budget fills the whole bar, so that its segments can be seen. */
const minUsedShare = 0.1

type BudgetBarProps = {
  ledger: Ledger
  label: string
  selected: LedgerLine | undefined
  onSelect: (line: LedgerLine | undefined) => void
}

/** The context of a turn as a bar over its budget: one segment per line of the ledger, coloured by verdict. */
export function BudgetBar({ ledger, label, selected, onSelect }: BudgetBarProps) {
  const id = useId()
  const lines = shownLines(ledger)
  const isEnlarged = ledger.spent < ledger.budget * minUsedShare
  const limit = isEnlarged ? ledger.spent : Math.max(ledger.budget, ledger.spent)
  const index = selected === undefined ? -1 : lines.indexOf(selected)
  const list = useRef<HTMLDivElement>(null)
  const move = (event: KeyboardEvent): void => {
    const target = { ArrowRight: index + 1, ArrowLeft: index - 1, Home: 0, End: lines.length - 1 }[event.key]
    if (event.key === 'Escape') onSelect(undefined)
    const line = target === undefined ? undefined : lines[Math.min(Math.max(target, 0), lines.length - 1)]
    if (line === undefined) return
    event.preventDefault()
    onSelect(line)
  }
  return (
    <div class="budget">
      <div class="budget-track">
        <div
          ref={list}
          class="budget-segments"
          role="listbox"
          aria-label={`${label}: ${formatNumber(ledger.spent)} of ${formatNumber(ledger.budget)} tokens`}
          aria-activedescendant={index < 0 ? undefined : `${id}-${index}`}
          tabIndex={0}
          style={{ width: `${(100 * ledger.spent) / limit}%` }}
          onKeyDown={move}
        >
          {lines.map((line, position) => (
            <Segment
              key={position}
              id={`${id}-${position}`}
              line={line}
              isSelected={position === index}
              isBandStart={position > 0 && lines[position - 1]?.band !== line.band}
              onSelect={onSelect}
            />
          ))}
        </div>
        <CacheMark ledger={ledger} limit={limit} />
      </div>
      <Bands lines={lines} limit={limit} />
      <Legend ledger={ledger} isEnlarged={isEnlarged} />
      <LineDetails line={selected} />
    </div>
  )
}

type SegmentProps = {
  id: string
  line: LedgerLine
  isSelected: boolean
  isBandStart: boolean
  onSelect: (line: LedgerLine) => void
}

const Segment = ({ id, line, isSelected, isBandStart, onSelect }: SegmentProps) => (
  // biome-ignore lint/a11y/useFocusableInteractive: the list has the focus and names its active option
  // biome-ignore lint/a11y/useKeyWithClickEvents: arrow keys of the list select segments
  <div
    id={id}
    class={`segment ${line.entries === null ? 'overhead' : line.verdict} ${isBandStart ? 'band-start' : ''}`}
    role="option"
    aria-selected={isSelected}
    aria-label={`${line.band}, ${formatEntries(line)}, ${formatCount(line.tokens, 'token')}, ${line.why}`}
    style={{ flexGrow: line.tokens }}
    onMouseEnter={() => onSelect(line)}
    onClick={() => onSelect(line)}
  />
)

/** The bands under their segments, with their names and tokens. A screen reader gets the band with each segment. */
function Bands({ lines, limit }: { lines: readonly LedgerLine[]; limit: number }) {
  const bands = new Map<string, number>()
  for (const { band, tokens } of lines) bands.set(band, (bands.get(band) ?? 0) + tokens)
  const all = [...bands].map(([band, tokens], index) => ({ band, tokens, color: `series-${seriesIndex(index + 3)}` }))
  return (
    <>
      <div class="band-strip" aria-hidden="true">
        {all.map(({ band, tokens, color }) => (
          <span key={band} class={color} style={{ width: `${(100 * tokens) / limit}%` }} />
        ))}
      </div>
      <ul class="legend" aria-label="Bands">
        {all.map(({ band, tokens, color }) => (
          <li key={band}>
            <span class={`swatch band ${color}`} />
            {band} <b>{formatNumber(tokens)}</b>
          </li>
        ))}
      </ul>
    </>
  )
}

/** End of the beginning that the next prompt repeats, which a provider can cache. */
function CacheMark({ ledger: { cacheable }, limit }: { ledger: Ledger; limit: number }) {
  if (cacheable.tokens === 0) return null
  return <div class="cache-mark" style={{ left: `${(100 * cacheable.tokens) / limit}%` }} />
}

function Legend({ ledger, isEnlarged }: { ledger: Ledger; isEnlarged: boolean }) {
  const counts = countVerdicts(ledger)
  return (
    <ul class="legend" aria-label="Treatment of entries">
      {verdicts
        .filter((verdict) => counts[verdict].entries > 0)
        .map((verdict) => (
          <li key={verdict}>
            <span class={`swatch ${verdict}`} />
            {verdictTexts[verdict]} <b>{formatNumber(counts[verdict].entries)}</b>
          </li>
        ))}
      {ledger.cacheable.tokens > 0 && (
        <li>
          <span class="swatch cache" />
          cacheable prefix <b>{formatNumber(ledger.cacheable.tokens)}</b>
        </li>
      )}
      {isEnlarged && <li>the bar is enlarged</li>}
      <li class="push budget-total">
        <b>{formatNumber(ledger.spent)}</b> of {formatNumber(ledger.budget)} tokens (
        {formatPercent(ledger.spent / Math.max(1, ledger.budget))}), {formatNumber(ledger.history)} in the whole history
      </li>
    </ul>
  )
}

/** Tokens, reason and source of the segment under the pointer or the keyboard. */
function LineDetails({ line }: { line: LedgerLine | undefined }) {
  return (
    <p class="line-details" role="status">
      {line === undefined ? (
        <span class="muted">Point at a segment, or use the arrow keys, to see tokens, reason and source.</span>
      ) : (
        <>
          <span class={`swatch ${line.entries === null ? 'overhead' : line.verdict}`} />
          <b>{formatCount(line.tokens, 'token')}</b>
          <span>
            {line.band} · {formatEntries(line)} · {verdictTexts[line.verdict]}
          </span>
          <span class="muted">{formatReason(line)}</span>
          <span class="muted">from {formatSource(line)}</span>
        </>
      )}
    </p>
  )
}
