import { useId } from 'preact/hooks'
import { formatDollars, formatNumber, formatTime } from '../../format.ts'
import type { Turn } from './useTurns.ts'

type TurnSliderProps = {
  /** Turns with a ledger, oldest first. */
  turns: readonly Turn[]
  /** Index of the selected turn; the number of turns stands for the present. */
  index: number
  onSelect: (index: number) => void
}

/** Moves through the turns of a session; the last position is the context that a model would get now. */
export function TurnSlider({ turns, index, onSelect }: TurnSliderProps) {
  const id = useId()
  const turn = turns[index]
  const text = turn === undefined ? 'Now' : `Turn ${index + 1} of ${turns.length}`
  return (
    <div class="turn-slider">
      <label class="turn-label" for={id}>
        {text}
      </label>
      <button
        type="button"
        class="button small"
        disabled={index === 0}
        aria-label="Previous turn"
        onClick={() => onSelect(index - 1)}
      >
        ‹
      </button>
      <input
        id={id}
        type="range"
        min={0}
        max={turns.length}
        value={index}
        aria-valuetext={text}
        onInput={(event) => onSelect(event.currentTarget.valueAsNumber)}
      />
      <button
        type="button"
        class="button small"
        disabled={index >= turns.length}
        aria-label="Next turn"
        onClick={() => onSelect(index + 1)}
      >
        ›
      </button>
      {turn === undefined ? (
        <p class="turn-facts muted">The context that a model would get now.</p>
      ) : (
        <TurnFacts turn={turn} />
      )}
    </div>
  )
}

/** The figures of a receipt in one line. */
function TurnFacts({ turn }: { turn: Turn }) {
  const cost = turn.cost as { readonly total: number; readonly saved: number | null } | null
  return (
    <p class="turn-facts muted">
      <span>{formatTime(turn.at)}</span>
      <span class="mono">{turn.model}</span>
      <span>reply {turn.sequence === null ? 'pending' : `m${turn.sequence}`}</span>
      <span>{formatNumber(turn.tokens.saved)} tokens saved</span>
      {cost !== null && <span>{formatDollars(cost.total)}</span>}
      {turn.degraded.map(({ code, message }) => (
        <span key={code} class="warning" title={message}>
          {message}
        </span>
      ))}
    </p>
  )
}
