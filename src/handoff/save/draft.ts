import type { Json, Message, Millis } from '../../domain/entry.ts'
import { stopIf } from '../../portable/stop.ts'
import { namedIn } from '../continuation.ts'
import { extractItems } from '../extract.ts'
import type { ContextItem } from '../item.ts'
import type { Provided } from '../records.ts'
import { type FileReference, pathsIn, refer } from '../references.ts'
import { isoOf, type Kept, titleIn } from '../sessions.ts'
import type { Attending, HandoffParts } from '../settings.ts'
import { similarityOf } from '../similarity.ts'
import { weightsOf } from '../weights.ts'
import { type Accepted, type GivenFile, isGiven } from './accept.ts'
import { levelsOf } from './levels.ts'
import { type Draft, itemId } from './rows.ts'

/** So many files are looked at for one session. */
const mostFiles = 200

/** What a draft is made from: what is asked, what was kept before, and everything that was said. */
export type Basis = {
  readonly accepted: Accepted
  readonly before: Kept | undefined
  readonly messages: readonly Message[]
  readonly startedAt: Millis
}

export type Drafted = { readonly draft: Draft; readonly warnings: readonly string[] }

/** Everything that is made of what was said in a session, and of what its client gives with it. */
export async function drafted(parts: HandoffParts, basis: Basis, attending: Attending): Promise<Drafted> {
  const { settings } = parts
  const { accepted, before, messages } = basis
  const { signal, progress } = attending
  const warnings: string[] = []
  const files = await filesOf(parts, basis, attending)
  progress?.(2, 5, `looked at ${files.length} files`)
  const levels = settings.summarise ? await levelsOf(messages, signal) : []
  progress?.(3, 5, 'summed up')
  const items = await itemsOf(parts, basis, warnings)
  stopIf(signal, 'Saving was stopped by the caller. What was said is stored; save the session again to finish.')
  const provided = await providedFor(parts, accepted, levels.at(-1)?.text ?? '', attending, warnings)
  progress?.(4, 5, `found ${items.length} items`)
  const draft: Draft = {
    ...rowOf(basis),
    workspace: accepted.workspace,
    levels,
    items,
    files,
    provided: provided ?? before?.provided ?? [],
    references: await namedIn(parts, accepted.workspace, accepted.id, messages),
    ...stateOf(accepted, before),
  }
  return { draft, warnings }
}

/** The session's own row. Its time changes only with what it holds: saving the same again writes nothing. */
function rowOf({ accepted, before, messages, startedAt }: Basis) {
  const { id, at, tokens, items, files, state, title, continues } = accepted
  const isSame =
    before !== undefined &&
    before.metadata.messageCount === messages.length &&
    items.length + files.length === 0 &&
    state === undefined &&
    title === undefined
  const goesOn = continues ?? before?.metadata.continuedFrom
  return {
    id,
    createdAt: before?.metadata.createdAt ?? isoOf(startedAt),
    savedAt: isSame && before.metadata.savedAt !== '' ? before.metadata.savedAt : isoOf(at),
    ...titleOf(title, before, messages, startedAt),
    tokens: tokens ?? messages.reduce((sum, message) => sum + message.tokens, 0),
    messages: messages.length,
    ...(goesOn === undefined ? {} : { continues: goesOn }),
    ...(before?.restored === undefined ? {} : { restored: before.restored as unknown as Json }),
  }
}

/** The title a client gave, now or before; else the first thing the user said, on one line. */
function titleOf(
  given: string | undefined,
  before: Kept | undefined,
  messages: readonly Message[],
  startedAt: Millis,
): Pick<Draft, 'title' | 'titleSources'> {
  const quoted = titleIn(messages)
  const known = given ?? before?.metadata.title ?? ''
  if (known !== '' && known !== quoted?.title) return { title: known, titleSources: [] }
  if (quoted === undefined) return { title: `Session of ${isoOf(startedAt).slice(0, 10)}`, titleSources: [] }
  return { title: quoted.title, titleSources: [quoted.source] }
}

function stateOf({ state }: Accepted, before: Kept | undefined): Pick<Draft, 'state'> {
  const now = state ?? before?.state
  return now === undefined ? {} : { state: now }
}

/** Items of the conversation, and those that clients have given now or before. */
async function itemsOf(
  parts: HandoffParts,
  { accepted: { workspace, id, items }, before, messages }: Basis,
  warnings: string[],
): Promise<readonly ContextItem[]> {
  const { memory, embedder } = parts
  const means = {
    tokenizer: memory.tokenizer,
    weights: await weightsOf(parts, workspace),
    marked: new Set(before?.marked),
  }
  const first = extractItems(messages, means)
  const similarity =
    embedder === undefined
      ? undefined
      : await similarityOf(embedder, messages, first).catch(
          (error: unknown) => void warnings.push(`items were not compared by meaning: ${whyOf(error)}`),
        )
  const found = similarity === undefined ? first : extractItems(messages, { ...means, similarity })
  const all = new Map<string, ContextItem>()
  for (const item of before?.items ?? []) if (isGiven(id, item)) all.set(item.id, item)
  for (const item of items) all.set(item.id, item)
  for (const item of found) all.set(itemId(id, item.id), { ...item, id: itemId(id, item.id) })
  return [...all.values()]
}

/** Files that the conversation speaks of, that its client names, and that were known before. */
async function filesOf(
  parts: HandoffParts,
  { accepted, before, messages }: Basis,
  { client = '' }: Attending,
): Promise<readonly FileReference[]> {
  const known = new Map((before?.files ?? []).map((file) => [file.path, file]))
  const given = new Map(accepted.files.map((file) => [file.path, file]))
  const { files } = parts
  const told = (path: string): FileReference | undefined => known.get(path) ?? believed(given.get(path))
  const paths = [
    ...new Set([...given.keys(), ...known.keys(), ...(files === undefined ? [] : pathsIn(messages))]),
  ].slice(0, mostFiles)
  const found = await Promise.all(
    paths.map(async (path) => (files && (await refer(path, (one) => files.look(client, one)))) ?? told(path)),
  )
  return found.filter((file) => file !== undefined)
}

/** Where nobody can look, what the client says of a file is all there is. */
const believed = (file: GivenFile | undefined): FileReference | undefined =>
  file && { path: file.path, hash: file.hash ?? '', last_modified: file.lastModified ?? '', size: 0, lines: '' }

/** What other servers have to say of the session, without secrets; nothing is lost if they fail. */
async function providedFor(
  parts: HandoffParts,
  { workspace, id }: Accepted,
  text: string,
  { signal }: Attending,
  warnings: string[],
): Promise<readonly Provided[] | undefined> {
  const { providers, memory } = parts
  if (providers === undefined) return undefined
  const { provided, degraded } = await providers.gather('save', { workspace, session: id, text }, signal)
  for (const { step, why } of degraded) warnings.push(`${step}: ${why}`)
  return Promise.all(
    provided.map(async ({ from, text: told }) => ({ from, text: await memory.masked(`${workspace}:${id}`, told) })),
  )
}

const whyOf = (error: unknown): string => (error instanceof Error ? error.message : 'unknown')
