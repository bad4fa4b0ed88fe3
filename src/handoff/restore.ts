import type { Message, Tokens } from '../domain/entry.ts'
import { check, MemoryError } from '../domain/error.ts'
import { internalsOf } from '../memory.ts'
import { stopIf } from '../portable/stop.ts'
import { listedWithBegun } from './draftSessions.ts'
import type { ContextItem } from './item.ts'
import type { Pending } from './pending.ts'
import { preservation, preservationOf } from './preserve.ts'
import { closingOf, type Means } from './record.ts'
import type { Measured, WorkspaceState } from './records.ts'
import { type FileState, type Material, type Woven, weave } from './render.ts'
import { begun } from './restore/begin.ts'
import { materialOf, relatedTo } from './restore/material.ts'
import { saved } from './save.ts'
import { idIn, isBegun, isoOf, type Kept, kept, keyOf, notFound } from './sessions.ts'
import type { Attending, HandoffParts } from './settings.ts'

export type RestoreRequest = {
  /** The workspace's most recent one when left out. */
  readonly sessionId?: string
  /** How many tokens the text may have. */
  readonly budget?: Tokens
  /** What the new chat begins with: what it is about comes first, and other sessions about the same are told of. */
  readonly query?: string
  /** What the new chat is told to save itself with: a tool when left out. */
  readonly means?: Means
}

export type Restored = {
  readonly context: string
  /** The items that the text shows, the most important first. */
  readonly contextItems: readonly ContextItem[]
  /** Files that the conversation speaks of, and what has become of them. */
  readonly fileReferences: readonly FileState[]
  readonly workspaceState: WorkspaceState
  /** The new session, to save to from now on, and the one it goes on from. */
  readonly sessionId: string
  readonly continues: string
  readonly title: string
  readonly tokens: Tokens
  readonly budget: Tokens
  readonly compressed: Woven['compressed']
  readonly preservation: Measured
  /** Sessions before this one, and others about the same. */
  readonly earlier: readonly { readonly session: string; readonly summary: string }[]
  readonly degraded?: 'not durable'
  readonly warnings: readonly string[]
}

/** What a new chat begins with, inside the budget; the new session is linked to the one it goes on from. */
export async function restored(
  parts: HandoffParts,
  pending: Pending,
  workspace: string,
  request: RestoreRequest,
  attending: Attending,
): Promise<Restored> {
  const { settings, memory, clock } = parts
  const { budget = settings.budget, query, sessionId, means = 'tool' } = request
  check('budget', budget, Number.isSafeInteger(budget) && budget >= 1, 'a whole number of tokens, 1 or more')
  // The store may be back by now.
  await pending.retry()
  const from = await source(parts, pending, workspace, sessionId, attending)
  attending.progress?.(1, 3, `found ${from.metadata.sessionId}`)
  const origin = {
    workspace,
    from,
    messages: await from.messages(),
    related: await relatedTo(parts, workspace, from, query),
    budget,
  }
  const { material, warnings } = await materialOf(parts, origin, attending)
  stopIf(attending.signal, 'Restoring was stopped by the caller. Nothing was changed.')
  attending.progress?.(2, 3, `looked at ${material.files.length} files`)
  const bounds = { threshold: settings.importance, most: settings.items }
  const names = { session: parts.name(clock()), from: from.metadata.sessionId }
  const closing = closingOf(names, means)
  const woven = weave(material, {
    budget,
    tokenizer: memory.tokenizer,
    closing,
    ...bounds,
    ...(query === undefined ? {} : { query }),
  })
  const measured = measure(origin.messages, from.items, woven, budget, isoOf(clock()))
  const isDegraded = await begun(parts, pending, workspace, {
    session: names.session,
    from,
    woven,
    measured,
    related: origin.related,
  })
  attending.progress?.(3, 3, 'restored')
  return {
    ...resultOf(from, material, woven),
    sessionId: names.session,
    budget,
    preservation: measured,
    warnings,
    ...(isDegraded ? { degraded: 'not durable' } : {}),
  }
}

function resultOf({ items, state, metadata }: Kept, { files, earlier }: Material, woven: Woven) {
  const shown = new Set(woven.items)
  return {
    context: woven.text,
    contextItems: items.filter(({ id }) => shown.has(id)),
    fileReferences: files,
    workspaceState: state ?? {},
    continues: metadata.sessionId,
    title: metadata.title,
    tokens: woven.tokens,
    compressed: woven.compressed,
    earlier: earlier.map(({ session, summary }) => ({ session, summary })),
  }
}

/** The session to go on from: one that was begun by a restore and never written to stands for the one before it. */
async function source(
  parts: HandoffParts,
  pending: Pending,
  workspace: string,
  asked: string | undefined,
  attending: Attending,
): Promise<Kept> {
  const newest = async (): Promise<string | undefined> =>
    (await listedWithBegun(parts, workspace, { limit: 1 })).sessions[0]?.sessionId
  let id =
    asked === undefined ? (pending.newest(workspace)?.metadata.sessionId ?? (await newest())) : idIn(workspace, asked)
  if (id === undefined)
    throw new MemoryError(
      'bad-option',
      'No session was saved in this workspace yet. Save one with save_session, or name another workspace.',
      {
        param: 'sessionId',
      },
    )
  for (let steps = 0; steps < 100; steps++) {
    // Somebody may only have added to it: then it is saved now.
    const found: Kept | undefined =
      pending.kept(workspace, id) ?? (await current(parts, pending, workspace, id, attending))
    if (found === undefined) break
    const before: string | undefined = found.metadata.messageCount === 0 ? found.metadata.continuedFrom : undefined
    if (before === undefined) return found
    id = before
  }
  throw notFound(asked ?? id)
}

/** A session as it is now: what was added since it was last saved is part of it. */
async function current(
  parts: HandoffParts,
  pending: Pending,
  workspace: string,
  id: string,
  attending: Attending,
): Promise<Kept | undefined> {
  const before = await kept(parts, workspace, id)
  if (!(await isBegun(parts, workspace, id))) return before
  const { messages } = await internalsOf(parts.memory).sessions.head(keyOf(workspace, id), 0)
  if (before?.metadata.messageCount === messages) return before
  await saved(parts, pending, workspace, { sessionId: id }, attending)
  return kept(parts, workspace, id)
}

/** How much of the original is in what was restored, in all and by category. */
function measure(
  messages: readonly Message[],
  items: readonly ContextItem[],
  { own: text }: Woven,
  budget: Tokens,
  at: string,
): Measured {
  // What clients have given stands in no message.
  const original = [...messages, ...items.filter(({ sources }) => sources.length === 0)]
    .map(({ content }) => content)
    .join('\n')
  return { ...preservation(original, text), budget, at, categories: preservationOf(items, text) }
}
