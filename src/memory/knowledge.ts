import { checkOptions } from '../domain/checkOptions.ts'
import type { DerivedEntry, Json, Knowledge, KnowledgeOrigin, Millis, Source } from '../domain/entry.ts'
import { anyText, anyValue, checkOption, listOf, MemoryError } from '../domain/error.ts'
import type { Key } from '../domain/key.ts'
import { isLearned, type KnowledgeCategory, parseKnowledge } from '../domain/knowledge.ts'
import type { Clock, Store } from '../domain/ports.ts'
import type { KnowledgePolicy, Profile } from '../domain/profile.ts'
import type { SessionHead } from '../domain/session.ts'
import { recordMention, recordUse } from '../upkeep/confidence.ts'
import { type RevisionResult, revise } from '../upkeep/revise.ts'
import type { SecretMasker } from './secretMasker.ts'

/** Knowledge that holds in every session of a scope. */
export type KnowledgeInput = {
  readonly category: KnowledgeCategory
  /** Unique within the scope and category. */
  readonly key: string
  readonly value: Json
  /** Initial confidence from 0 to 1; default 0.5. */
  readonly confidence?: number
  /** Origin of the statement; default `user`. The profile decides which origins may add knowledge. */
  readonly by?: keyof KnowledgePolicy
  /** Session in which it was stated; repetitions within one session count once. */
  readonly session?: string
  /** Ids of the messages of that session that state it: the entry is forgotten with them. */
  readonly messages?: readonly string[]
  /**
   * `operator` for what holds until you change it, `learned` for what fades without use. Default: `operator`, but
   * `learned` with a session or when an assistant or a tool states it.
   */
  readonly origin?: KnowledgeOrigin
  /** Person of the scope whom it is about: it is stored in that person's memory instead of the scope's. */
  readonly person?: string
}

/** Throws `bad-option` for an unknown field; `parseKnowledge` checks the values of the others. */
export const checkKnowledgeFields = (input: unknown): void =>
  checkOptions<KnowledgeInput>('remember', input, {
    category: anyValue,
    key: anyValue,
    value: anyValue,
    confidence: anyValue,
    by: anyText,
    session: anyText,
    messages: listOf(anyText),
    origin: anyValue,
    person: anyText,
  })

type KnowledgeDeps = {
  readonly store: Store
  readonly clock: Clock
  readonly profile: Profile
  readonly masker: SecretMasker | undefined
}

const dayMs = 86_400_000
/** Sessions kept as sources of one entry. */
const maxSourceSessions = 16

/** Stores knowledge in the memory of a scope or a person; safe under concurrent writers. */
export async function remember(
  deps: KnowledgeDeps,
  key: Key,
  input: KnowledgeInput,
): Promise<{ readonly entry: Knowledge; readonly epoch: number }> {
  const { store, clock, masker } = deps
  const needsApproval = checkPermission(deps.profile, input.by ?? 'user', key) === 'ask'
  const parsed = parseKnowledge(input)
  const origin = originOf(input)
  masker?.checkKey(key)
  if (input.session !== undefined) masker?.checkKey({ scope: key.scope, id: input.session })
  const knowledge: KnowledgeInput =
    masker === undefined
      ? input
      : {
          ...input,
          key: await masker.maskText(key, parsed.key),
          value: await masker.maskJson(key, { [parsed.key]: parsed.value }).then(firstValue),
          ...(input.messages !== undefined && {
            messages: (await masker.maskJson(key, [...input.messages])) as readonly string[],
          }),
        }
  const at = clock()
  const isSameSlot = (entry: DerivedEntry): entry is Knowledge =>
    entry.kind === 'knowledge' && entry.category === knowledge.category && entry.key === knowledge.key
  const buildEntry = ({ derived, revision }: SessionHead): Knowledge =>
    mergeKnowledge(knowledge, derived.find(isSameSlot), { at, id: `k${revision + 1}`, needsApproval, origin })
  const revised = await revise(store, key, (head) => ({ put: [buildEntry(head)], drop: [] }), at)
  const { head } = revised as RevisionResult
  return { entry: buildEntry(head), epoch: head.epoch }
}

const firstValue = (value: Json): Json => Object.values(value as Record<string, Json>)[0] as Json

/** Counts shown knowledge as used by a session, at most once a day per session. */
export async function countKnowledgeUse(
  store: Store,
  key: Key,
  ids: readonly string[],
  by: { readonly session: string; readonly at: Millis },
): Promise<void> {
  const isCounted = ({ usedBy: sessions, usedAt }: Knowledge): boolean =>
    sessions?.includes(by.session) === true && by.at - usedAt < dayMs
  await revise(store, key, ({ derived }) => ({
    put: derived.flatMap((entry) =>
      entry.kind === 'knowledge' && ids.includes(entry.id) && !isCounted(entry) ? [recordUse(entry, by)] : [],
    ),
    drop: [],
  }))
}

const originOf = ({ origin, by = 'user', session }: KnowledgeInput): KnowledgeOrigin =>
  origin ?? (by === 'user' && session === undefined ? 'operator' : 'learned')

function checkPermission({ name, knowledgePolicy }: Profile, by: keyof KnowledgePolicy, { scope }: Key): 'yes' | 'ask' {
  checkOption('by', by, Object.hasOwn(knowledgePolicy, by), `one of ${Object.keys(knowledgePolicy).join(', ')}`)
  const permission = knowledgePolicy[by]
  if (permission !== 'no') return permission
  throw new MemoryError(
    'bad-option',
    `Profile ${name} does not let a ${by} add knowledge to ${scope}. Use by: 'user', or change knowledgePolicy.${by}.`,
    { param: 'by' },
  )
}

/**
 * Adds a session, or messages of it, as sources; the empty name stands for the scope itself. An entry without sources
 * is forgotten.
 */
function addSources(sources: readonly Source[], session = '', messages: readonly string[] = ['']): readonly Source[] {
  const isKnown = (message: string) => sources.some((one) => one.session === session && one.message === message)
  const added = messages.filter((message) => !isKnown(message)).map((message) => ({ message, session }))
  const all = [...sources, ...added]
  const sessions = new Set(all.map((source) => source.session).filter((id) => id !== ''))
  const kept = new Set(['', ...[...sessions].slice(-maxSourceSessions)])
  return all.filter((source) => kept.has(source.session))
}

type MergeOptions = {
  readonly at: Millis
  readonly id: string
  readonly needsApproval: boolean
  readonly origin: KnowledgeOrigin
}

/** Merges a statement into the known entry. A pending entry stays pending; an approved one never becomes pending. */
function mergeKnowledge(
  { category, key, value, confidence, session, messages, by = 'user' }: KnowledgeInput,
  known: Knowledge | undefined,
  { at, id, needsApproval, origin }: MergeOptions,
): Knowledge {
  // A model's claim neither changes nor confirms what a person has said, nor what the operator has.
  if (known !== undefined && known.pending !== true && (needsApproval || (by !== 'user' && !isLearned(known))))
    return known
  const isPending = needsApproval && (known === undefined || known.pending === true)
  // A new value starts with no confirmations: earlier sources confirmed the old value.
  const hasSameValue = known === undefined || JSON.stringify(known.value) === JSON.stringify(value)
  const before = hasSameValue ? known : { ...known, statedBy: [], sources: [] }
  return {
    kind: 'knowledge',
    // Ids are stored in plain text even in encrypted stores, so they carry no content; the revision makes them unique.
    id: known?.id ?? id,
    category,
    key,
    value,
    ...recordMention(before, { at, session, confidence }),
    ...(isPending && { pending: true }),
    // The statement of a session does not make an operator's entry fade.
    origin: known !== undefined && known.pending !== true && !isLearned(known) ? 'operator' : origin,
    sources: addSources(before?.sources ?? [], session, messages),
  }
}
