import { weighed } from '../../context/render.ts'
import { type Incoming, parseMessage } from '../../domain/chat.ts'
import { isObject } from '../../domain/checks.ts'
import { messageId, sequenceOf } from '../../domain/entry.ts'
import type { Key } from '../../domain/key.ts'
import { never } from '../../domain/session.ts'
import type { Entity, EntityDraft, RelationshipDraft } from '../../graph/graph.ts'
import { internalsOf } from '../../memory.ts'
import { canonical } from '../../portable/canonical.ts'
import { itemOf } from '../records.ts'
import { startsAfter } from '../retention.ts'
import { conversationId, fileId, itemId, originId, stateId, workspaceRowId } from '../save/rows.ts'
import { isoOf, keyOf } from '../sessions.ts'
import type { HandoffParts } from '../settings.ts'
import { damaged, hashOf, type Packed, type PackedEntity, type PackedMessage } from './format.ts'
import { packed } from './pack.ts'
import { parsed } from './read.ts'

/** What became of a session: taken in, there already as it is, or left out and why. */
export type Outcome = { readonly taken: number } | 'unchanged' | { readonly why: string }

/** Puts a session into the store: never in place of something newer, and never of something else. */
export async function taken(parts: HandoffParts, given: Packed): Promise<Outcome> {
  const { workspace, session, saved_at, created_at } = given.metadata
  const since = startsAfter(parts.memory.profile.lifetime, parts.clock())
  if (since !== undefined && created_at <= isoOf(since)) return { why: 'it is older than sessions are kept' }
  const key = keyOf(workspace, session)
  const drafts = given.entities.map((entity) => entityDraft(given, entity))
  if (!drafts.some(({ type }) => type === 'session' || type === 'session_origin'))
    throw damaged('it says nothing of its session')
  const messages = given.messages.map((message, at) => incoming(message, at))
  const row = await parts.graph.entity(workspace, session)
  if (row !== undefined && row.type !== 'session') return { why: 'its id is that of something else here' }
  const here = row === undefined ? undefined : await packed(parts, workspace, row)
  if (here !== undefined) {
    if (canonical(here.metadata) === canonical(given.metadata)) return 'unchanged'
    if (here.metadata.saved_at > saved_at) return { why: 'what is here is newer' }
  }
  const stored = await parts.memory.transcript(key)
  const isContinued = stored.every(
    ({ id, role, content }, at) =>
      id === given.messages[at]?.id && role === given.messages[at]?.role && content === given.messages[at]?.content,
  )
  if (!isContinued) return { why: 'something else was said in it here' }
  await written(parts, key, given, messages.slice(stored.length), stored.length)
  await rows(parts, given, drafts, here)
  return { taken: messages.length - stored.length }
}

/** Stores messages under the ids they had, with the gaps between them. */
async function written(
  parts: HandoffParts,
  key: Key,
  given: Packed,
  messages: readonly Incoming[],
  from: number,
): Promise<void> {
  const { memory } = parts
  const { sessions, tokenizer, profile } = internalsOf(memory)
  const begun = Date.parse(given.metadata.created_at)
  const expiresAt = profile.lifetime.age === undefined ? never : begun + profile.lifetime.age
  for (const run of runsOf(given.messages.slice(from))) {
    const some = messages.slice(run.first, run.first + run.count)
    const append = await Promise.all(
      some.map(async (one, at) =>
        weighed(tokenizer, await memory.asKept(key, parseMessage(one, at, begun)), profile.cap),
      ),
    )
    const { epoch, last, recent } = await sessions.head(key, 1)
    const newest = recent.at(-1)
    const place =
      run.sequence === last + 1
        ? {}
        : { from: { sequence: run.sequence, offset: newest === undefined ? 0 : newest.offset + newest.weight } }
    await sessions.commit({
      id: `layout ${run.sequence} ${hashOf(canonical(some))}`,
      key,
      at: begun,
      epoch,
      ...place,
      append,
      put: [],
      drop: [],
      expiresAt,
    })
  }
}

/** Messages that follow each other without a gap. */
function runsOf(
  messages: readonly PackedMessage[],
): readonly { readonly first: number; readonly count: number; readonly sequence: number }[] {
  const runs: { first: number; count: number; sequence: number }[] = []
  for (const [at, { id }] of messages.entries()) {
    const sequence = sequenceOf(id)
    const run = runs.at(-1)
    if (sequence === undefined || (run !== undefined && sequence < run.sequence + run.count))
      throw damaged('its messages are not in order')
    if (run !== undefined && run.sequence + run.count === sequence) run.count++
    else runs.push({ first: at, count: 1, sequence })
  }
  return runs
}

async function rows(
  parts: HandoffParts,
  given: Packed,
  drafts: readonly EntityDraft[],
  here: Packed | undefined,
): Promise<void> {
  const { workspace, session } = given.metadata
  const key = keyOf(workspace, session)
  const entities = await Promise.all(
    drafts.map(async (draft) => ({ ...draft, properties: await parts.memory.masked(key, { ...draft.properties }) })),
  )
  const relationships = given.relationships.map((one): RelationshipDraft => {
    if (one.from !== session && one.from !== conversationId(session))
      throw damaged('it has relationships of another session')
    return {
      from: one.from,
      to: one.to,
      type: one.type,
      properties: isObject(one.properties) ? one.properties : {},
      session,
    }
  })
  const id = workspaceRowId(workspace)
  const own =
    (await parts.graph.entity(workspace, id)) === undefined
      ? [{ type: 'workspace', id, properties: { workspace_id: workspace } }]
      : []
  const left = new Set(entities.map((entity) => entity.id))
  await parts.graph.write(workspace, {
    entities: [...own, ...entities],
    relationships,
    drop: (here?.entities ?? []).map((one) => one.id).filter((one) => !left.has(one)),
  })
}

/** An entity that belongs to its session; a folder can say nothing about another one. */
function entityDraft(given: Packed, { type, id, properties, shared }: PackedEntity): EntityDraft {
  const { workspace, session, created_at, saved_at } = given.metadata
  const held =
    shared === undefined ? properties : parsed(given.shared.get(shared) ?? 'null', `shared file reference ${shared}`)
  if (!isObject(held)) throw damaged(`entity ${JSON.stringify(id)} has no properties`)
  const all = given.messages.map((message) => message.id)
  const fits: Readonly<Record<string, () => readonly [boolean, readonly string[]]>> = {
    session: () => [
      id === session && held.workspace_id === workspace && held.created_at === created_at && held.saved_at === saved_at,
      all,
    ],
    session_origin: () => [id === originId(session), []],
    conversation: () => [id === conversationId(session), all],
    context_item: () => [
      id.startsWith(itemId(session, '')) && itemOf({ id, properties: held as Entity['properties'] }) !== undefined,
      textsIn(held.sources),
    ],
    file_reference: () => [typeof held.path === 'string' && id === fileId(session, held.path), []],
    workspace_state: () => [id === stateId(session), []],
    provided: () => [id.startsWith(`provided_${session}_`), []],
    mark: () => [id === `mark_${session}_${held.message}`, textsIn([held.message])],
  }
  const [isOwn, sources] = (Object.hasOwn(fits, type) ? fits[type]?.() : undefined) ?? [false, []]
  if (!isOwn) throw damaged(`entity ${JSON.stringify(id)} is none of this session`)
  return { type, id, session, properties: held as Entity['properties'], ...(sources.length === 0 ? {} : { sources }) }
}

const isListOfObjects = (value: unknown): boolean => Array.isArray(value) && value.every(isObject)
const textsIn = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.filter((one) => typeof one === 'string') : []

/** A message as a caller would give it, checked like any other. */
function incoming({ id, at, role, content, name, calls, answers }: PackedMessage, place: number): Incoming {
  if (calls !== undefined && !isListOfObjects(calls)) throw damaged('its messages have calls that are none')
  const said: Incoming = {
    role: role as Incoming['role'],
    content,
    at,
    ...(name === undefined ? {} : { name }),
    ...(calls === undefined
      ? {}
      : {
          tool_calls: calls.map((call) => ({ id: call.id, function: { name: call.name, arguments: call.arguments } })),
        }),
    ...(answers === undefined ? {} : { tool_call_id: answers }),
  }
  if (id !== messageId(sequenceOf(id) ?? -1)) throw damaged('its messages have no ids')
  parseMessage(said, place, at)
  return said
}
