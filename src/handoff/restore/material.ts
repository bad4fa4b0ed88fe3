import type { Message, Tokens } from '../../domain/entry.ts'
import { earlierOf } from '../chain.ts'
import { matched, type Reference } from '../continuation.ts'
import type { Provided } from '../records.ts'
import { resolve } from '../references.ts'
import type { Earlier, FileState, Material } from '../render.ts'
import { type Kept, kept, keyOf } from '../sessions.ts'
import type { Attending, HandoffParts } from '../settings.ts'

/** A session to go on from, with everything that was said in it, and other sessions about what the new chat begins with. */
export type Origin = {
  readonly workspace: string
  readonly from: Kept
  readonly messages: readonly Message[]
  readonly related: readonly Related[]
  /** How many tokens the text may have. */
  readonly budget: Tokens
}
export type Related = Reference & { readonly summary: string }

/** So many other sessions about the same are told of. */
const mostRelated = 3

/** Other sessions about what the new chat begins with, which are not of the same chain. */
export async function relatedTo(
  parts: HandoffParts,
  workspace: string,
  from: Kept,
  query: string | undefined,
): Promise<readonly Related[]> {
  if (query === undefined || query.trim() === '' || from.metadata.degraded !== undefined) return []
  const earlier = await earlierOf(parts, workspace, from)
  const own = new Set([from.metadata.sessionId, ...earlier.map(({ session }) => session)])
  const found = await matched(parts, workspace, query, own)
  return found
    .slice(0, mostRelated)
    .map(({ sessionId, summary, title }) => ({ session: sessionId, found: 'search', summary: summary || title }))
}

/** Everything a new chat could be told, and what went wrong when others were asked. */
export async function materialOf(
  parts: HandoffParts,
  origin: Origin,
  attending: Attending,
): Promise<{ readonly material: Material; readonly warnings: readonly string[] }> {
  const { from, messages } = origin
  const told = await providedFor(parts, origin, attending)
  const material: Material = {
    title: from.metadata.title,
    messages,
    items: from.items,
    files: await filesOf(parts, origin, attending),
    summaries: from.levels,
    earlier: await othersOf(parts, origin),
    // What a server says now stands in the place of what it said then.
    provided: [...new Map([...from.provided, ...told.provided].map((one) => [one.from, one])).values()],
    ...(from.state === undefined ? {} : { workspace: from.state }),
  }
  return { material, warnings: told.warnings }
}

/** What has become of the files. Notes quote them: no secret gets into a prompt that way. */
function filesOf(
  { files: eyes, memory }: HandoffParts,
  { workspace, from }: Origin,
  { client = '' }: Attending,
): Promise<readonly FileState[]> {
  const key = keyOf(workspace, from.metadata.sessionId)
  const state = async (file: Kept['files'][number]): Promise<FileState> => {
    if (eyes === undefined) return { path: file.path, status: 'unseen', note: 'not looked at: no folder is open' }
    const { note, ...found } = await resolve(file, (path) => eyes.look(client, path))
    return note === undefined ? found : { ...found, note: await memory.masked(key, note) }
  }
  return Promise.all(from.files.map(state))
}

/** What other servers say now, without secrets. */
async function providedFor(
  { providers, memory }: HandoffParts,
  { workspace, from }: Origin,
  { signal }: Attending,
): Promise<{ provided: readonly Provided[]; warnings: readonly string[] }> {
  if (providers === undefined) return { provided: [], warnings: [] }
  const { sessionId: session } = from.metadata
  const { provided, degraded } = await providers.gather(
    'restore',
    { workspace, session, text: from.levels.at(-1) ?? '' },
    signal,
  )
  const key = keyOf(workspace, session)
  return {
    provided: await Promise.all(provided.map(async (one) => ({ ...one, text: await memory.masked(key, one.text) }))),
    warnings: degraded.map(({ step, why }) => `${step}: ${why}`),
  }
}

/** Sessions that this one speaks of, those about the same, and those before it, the nearest last. */
async function othersOf(parts: HandoffParts, origin: Origin): Promise<Material['earlier']> {
  const { workspace, from, related } = origin
  if (from.metadata.degraded !== undefined) return []
  const { relationships } = await parts.graph.relationships(workspace, {
    from: from.metadata.sessionId,
    types: ['SESSION_REFERENCES'],
    limit: 20,
  })
  const named = await Promise.all(relationships.map(({ to }) => kept(parts, workspace, to)))
  const others = [
    ...named.flatMap((one) =>
      one === undefined
        ? []
        : [{ session: one.metadata.sessionId, summary: one.metadata.summary || one.metadata.title }],
    ),
    ...related.map(({ session, summary }) => ({ session, summary })),
    ...(await withWords(parts, origin, await earlierOf(parts, workspace, from))),
  ]
  return [...new Map(others.map((one) => [one.session, one])).values()]
}

/** With what was said in them, from the nearest back, for as long as the budget may have room for it. */
async function withWords(
  parts: HandoffParts,
  { workspace, messages, budget }: Origin,
  earlier: readonly Earlier[],
): Promise<readonly Earlier[]> {
  const tokensOf = (said: readonly Message[]): Tokens => said.reduce((sum, { tokens }) => sum + tokens, 0)
  const found: Earlier[] = []
  let room = budget - tokensOf(messages)
  for (const one of [...earlier].reverse()) {
    const before = room > 0 ? await kept(parts, workspace, one.session) : undefined
    const said = (await before?.messages()) ?? []
    room -= tokensOf(said)
    found.unshift(before === undefined ? one : { ...one, messages: said, items: before.items })
  }
  return found
}
