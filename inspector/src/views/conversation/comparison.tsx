import { apiPath, request } from '../../api/client.ts'
import type { Ledger, Replay } from '../../api/types.ts'
import { SelectField } from '../../components/fields.tsx'
import { Section } from '../../components/layout.tsx'
import { ResourceView } from '../../components/states.tsx'
import { capitalise, formatCount, formatNumber, formatShortTime } from '../../format.ts'
import { useResource } from '../../useResource.ts'
import { compareLedgers, countVerdicts, type VerdictChange, verdicts, verdictTexts } from './ledgerLines.ts'
import type { Turn } from './useTurns.ts'

const maxListedTurns = 200

type CompareFieldProps = {
  turns: readonly Turn[]
  profiles: readonly string[]
  /** `turn:ID`, `profile:NAME` or empty. */
  value: string
  onChange: (value: string) => void
}

/** Chooses another turn, or another profile, to compare the selected context with. */
export const CompareField = ({ turns, profiles, value, onChange }: CompareFieldProps) => (
  <SelectField
    label="Compare with"
    value={value}
    options={[
      ['', 'Nothing'],
      ...profiles.map((name) => [`profile:${name}`, `Profile ${name}`] as const),
      ...turns
        .map((turn, index) => [`turn:${turn.id}`, `Turn ${index + 1}, ${formatShortTime(turn.at)}`] as const)
        .slice(-maxListedTurns)
        .reverse(),
    ]}
    onChange={onChange}
  />
)

type ComparisonProps = {
  ledger: Ledger
  other: Ledger
  names: readonly [name: string, other: string]
  lastSequence: number
  onShow: (sequence: number) => void
}

/** Differences between two contexts: figures, and messages that are treated differently. */
export function Comparison({ ledger, other, names, lastSequence, onShow }: ComparisonProps) {
  const changes = compareLedgers(ledger, other, lastSequence)
  const [left, right] = [countVerdicts(ledger), countVerdicts(other)]
  const rows: readonly (readonly [name: string, was: number, is: number])[] = [
    ['Budget', ledger.budget, other.budget],
    ['Tokens', ledger.spent, other.spent],
    ...verdicts.map(
      (verdict) => [capitalise(verdictTexts[verdict]), left[verdict].entries, right[verdict].entries] as const,
    ),
  ]
  return (
    <Section title={`${names[0]} and ${names[1]}`} note={formatCount(changes.length, 'difference')}>
      <div class="comparison">
        <div class="table-frame">
          <table>
            <thead>
              <tr>
                <th scope="col">Figure</th>
                <th scope="col" class="number">
                  {names[0]}
                </th>
                <th scope="col" class="number">
                  {names[1]}
                </th>
                <th scope="col" class="number">
                  Difference
                </th>
              </tr>
            </thead>
            <tbody>
              {rows.map(([name, was, is]) => (
                <tr key={name}>
                  <td>{name}</td>
                  <td class="number">{formatNumber(was)}</td>
                  <td class="number">{formatNumber(is)}</td>
                  <td class="number">
                    {was === is ? '0' : `${is > was ? '+' : '−'}${formatNumber(Math.abs(is - was))}`}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
        <ChangeList changes={changes} onShow={onShow} />
      </div>
    </Section>
  )
}

const maxListedChanges = 100

function ChangeList({ changes, onShow }: { changes: readonly VerdictChange[]; onShow: (sequence: number) => void }) {
  if (changes.length === 0) return <p class="muted">Both treat every message alike.</p>
  return (
    <ul class="change-list">
      {changes.slice(0, maxListedChanges).map(({ first, last, was, is }) => (
        <li key={first}>
          <button type="button" class="list-button" onClick={() => onShow(first)}>
            <span class="mono change-range">{first === last ? `m${first}` : `m${first}–m${last}`}</span>
            <span>
              {was === undefined ? 'not there' : verdictTexts[was]} →{' '}
              {is === undefined ? 'not there' : verdictTexts[is]}
            </span>
          </button>
        </li>
      ))}
      {changes.length > maxListedChanges && <li class="hint">… and {changes.length - maxListedChanges} more</li>}
    </ul>
  )
}

/** Comparison of the present context with the one that another profile would build. */
export function ProfileComparison(props: {
  sessionKey: string
  profile: string
  lastSequence: number
  onShow: (sequence: number) => void
}) {
  const { sessionKey, profile, lastSequence, onShow } = props
  const replay = useResource(
    (signal) => request<Replay>(apiPath(['api', 'sessions', sessionKey, 'replay'], { profile }), { signal }),
    [sessionKey, profile],
    ({ key }) => key === sessionKey,
  )
  return (
    <ResourceView resource={replay} rows={4}>
      {({ was, ledger }) => (
        <Comparison
          ledger={was}
          other={ledger}
          names={[was.profile, profile]}
          lastSequence={lastSequence}
          onShow={onShow}
        />
      )}
    </ResourceView>
  )
}
