import type { Derived, Json, Knowledge, Millis, Source } from '../domain/entry.ts'
import { check, MemoryError } from '../domain/error.ts'
import type { Key } from '../domain/key.ts'
import { type Category, parseKnowledge } from '../domain/knowledge.ts'
import type { Clock, Store } from '../domain/ports.ts'
import type { Profile } from '../domain/profile.ts'
import type { Learning } from '../domain/rule.ts'
import type { Head } from '../domain/session.ts'
import { told, used } from '../upkeep/confidence.ts'
import { type Revised, revise } from '../upkeep/revise.ts'
import type { Barrier } from './secrets.ts'

/** Something worth knowing in every session of a scope. */
export type Remembered = {
  readonly category: Category
  readonly key: string
  readonly value: Json
  readonly confidence?: number
  /** Who says so: a person, or the program on its behalf, when left out. The profile decides whom to believe. */
  readonly by?: keyof Learning
  /** The session in which it was said: however often it says so, it counts once. */
  readonly session?: string
}

type Means = {
  readonly store: Store
  readonly clock: Clock
  readonly profile: Profile
  readonly barrier: Barrier | undefined
}

/** Puts knowledge into a scope's own memory, whoever else is writing there. */
export async function remember(
  means: Means,
  key: Key,
  given: Remembered,
): Promise<{ readonly entry: Knowledge; readonly epoch: number }> {
  const { store, clock, barrier } = means
  const isPending = permitted(means.profile, given.by ?? 'user', key) === 'ask'
  const checked = parseKnowledge(given)
  const knowledge: Remembered =
    barrier === undefined
      ? given
      : {
          ...given,
          key: await barrier.text(key, checked.key),
          value: await barrier.json(key, { [checked.key]: checked.value }).then(only),
        }
  const at = clock()
  const isMeant = (known: Derived): known is Knowledge =>
    known.kind === 'knowledge' && known.category === knowledge.category && known.key === knowledge.key
  const entryIn = ({ derived, revision }: Head): Knowledge =>
    believed(knowledge, derived.find(isMeant), { at, id: `k${revision + 1}`, isPending })
  const revised = await revise(store, key, (head) => ({ put: [entryIn(head)], drop: [] }), at)
  const { head } = revised as Revised
  return { entry: entryIn(head), epoch: head.epoch }
}

const only = (value: Json): Json => Object.values(value as Record<string, Json>)[0] as Json

/** Counts knowledge that was shown as used by a session; what has been counted today is not written again. */
export async function use(
  store: Store,
  key: Key,
  ids: readonly string[],
  by: { readonly session: string; readonly at: Millis },
): Promise<void> {
  const isCounted = ({ used: sessions, usedAt }: Knowledge): boolean =>
    sessions?.includes(by.session) === true && by.at - usedAt < day
  await revise(store, key, ({ derived }) => ({
    put: derived.flatMap((entry) =>
      entry.kind === 'knowledge' && ids.includes(entry.id) && !isCounted(entry) ? [used(entry, by)] : [],
    ),
    drop: [],
  }))
}

const day = 86_400_000

function permitted({ name, learns }: Profile, by: keyof Learning, { scope }: Key): 'yes' | 'ask' {
  check('by', by, Object.hasOwn(learns, by), `one of ${Object.keys(learns).join(', ')}`)
  const permission = learns[by]
  if (permission !== 'no') return permission
  throw new MemoryError(
    'bad-option',
    `Profile ${name} lets no ${by} add to what ${scope} knows. Let a person say it, or change learns.${by}.`,
    {
      param: 'by',
    },
  )
}

/** Who has told it: a session, or with an empty name the scope itself. What nobody tells any more is forgotten with them. */
function withTeller(sources: readonly Source[], session = ''): readonly Source[] {
  if (sources.some((source) => source.session === session)) return sources
  const tellers = [...sources, { message: '', session }]
  return [
    ...tellers.filter((source) => source.session === ''),
    ...tellers.filter((source) => source.session !== '').slice(-16),
  ]
}

/** What is known after it was told, perhaps again. What waited for approval still does; what did not is not made to. */
function believed(
  { category, key, value, confidence, session }: Remembered,
  known: Knowledge | undefined,
  { at, id, isPending }: { readonly at: Millis; readonly id: string; readonly isPending: boolean },
): Knowledge {
  const waits = isPending && (known === undefined || known.pending === true)
  // What a model claims does not change what a person has said, nor make it more certain.
  if (isPending && known !== undefined && known.pending !== true) return known
  // Another value is another thing to know: who told the old one has not told it.
  const isSame = known === undefined || JSON.stringify(known.value) === JSON.stringify(value)
  const before = isSame ? known : { ...known, told: [], sources: [] }
  const belief = told(before, { at, session, confidence })
  const sources = withTeller(before?.sources ?? [], session)
  // An id can be read where the rest is encrypted, so it tells nothing; each revision is there once.
  return {
    kind: 'knowledge',
    id: known?.id ?? id,
    category,
    key,
    value,
    ...belief,
    ...(waits ? { pending: true } : {}),
    sources,
  }
}
