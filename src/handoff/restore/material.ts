import type { Message, Tokens } from '../../domain/entry.ts'
import { internalsOf } from '../../memory.ts'
import { readEarlierSummaries, searchSessions } from '../chain.ts'
import { type FileReference, type FileState, resolveFileReference } from '../fileReferences.ts'
import type { RecalledPassage } from '../render/recalledLines.ts'
import type { EarlierSession, HandoffMaterial } from '../render/sections.ts'
import type { ProvidedContext, SessionReference } from '../rows.ts'
import { readSavedSession, type SavedSession, sessionKey } from '../sessions.ts'
import type { HandoffDeps, OperationContext } from '../settings.ts'

/** Session to restore, with its messages and other sessions about the topic of the new chat. */
export type RestoreSource = {
  readonly workspace: string
  readonly source: SavedSession
  readonly messages: readonly Message[]
  readonly related: readonly RelatedSession[]
  /** Maximum tokens of the text. */
  readonly budget: Tokens
  /** Question or topic of the new chat. */
  readonly query: string | undefined
}
export type RelatedSession = SessionReference & { readonly summary: string }

const maxRelatedSessions = 3
const maxNamedSessions = 20

/** Finds sessions about the topic of the new chat that are not in the chain of the restored one. */
export async function findRelatedSessions(
  deps: HandoffDeps,
  workspace: string,
  source: SavedSession,
  query: string | undefined,
): Promise<readonly RelatedSession[]> {
  if (query === undefined || query.trim() === '' || source.metadata.degraded !== undefined) return []
  const earlier = await readEarlierSummaries(deps, workspace, source)
  const chainIds = new Set([source.metadata.sessionId, ...earlier.map(({ session }) => session)])
  const matches = await searchSessions(deps, workspace, query, chainIds)
  return matches
    .slice(0, maxRelatedSessions)
    .map(({ sessionId, summary, title }) => ({ session: sessionId, found: 'search', summary: summary || title }))
}

/** Collects everything the renderer can choose from. Failed providers add warnings. */
export async function collectMaterial(
  deps: HandoffDeps,
  restore: RestoreSource,
  context: OperationContext,
): Promise<{ readonly material: HandoffMaterial; readonly warnings: readonly string[] }> {
  const { source, messages } = restore
  const { provided, warnings } = await gatherProvided(deps, restore, context)
  const material: HandoffMaterial = {
    title: source.metadata.title,
    messages,
    isShortened: source.metadata.keep === 'needed',
    recalled: await recall(deps, restore, source),
    items: source.items,
    files: await resolveFiles(deps, restore, context),
    summaries: source.summaries,
    earlier: await collectOtherSessions(deps, restore),
    // The current text of a provider replaces the one from the save.
    provided: [...new Map([...source.provided, ...provided].map((entry) => [entry.from, entry])).values()],
    ...(source.workspaceState === undefined ? {} : { workspaceState: source.workspaceState }),
  }
  return { material, warnings }
}

/**
 * Finds the passages of a session that matter to the question of the new chat, as a context for that question does. The
 * newest messages are shown anyway. A session that is not stored yet cannot be searched.
 */
async function recall(
  { memory }: HandoffDeps,
  { workspace, budget, query = '' }: RestoreSource,
  { metadata }: SavedSession,
): Promise<readonly RecalledPassage[]> {
  if (query.trim() === '' || metadata.degraded !== undefined) return []
  const units = await internalsOf(memory).recall(sessionKey(workspace, metadata.sessionId), query, budget)
  return units
    .filter(({ basis }) => basis !== 'filler')
    .flatMap(({ messages, passage }) =>
      messages.map(({ id, content }) => ({ messageId: id, text: passage ? content.slice(...passage) : content })),
    )
}

/** Compares the referenced files with their current state. Notes quote files, so secrets in them are masked. */
function resolveFiles(
  { files: inspector, memory }: HandoffDeps,
  { workspace, source }: RestoreSource,
  { client = '' }: OperationContext,
): Promise<readonly FileState[]> {
  const key = sessionKey(workspace, source.metadata.sessionId)
  const resolveFile = async (file: FileReference): Promise<FileState> => {
    if (inspector === undefined) return { path: file.path, status: 'unseen', note: 'not read: no folder is allowed' }
    const { note, ...state } = await resolveFileReference(file, (path) => inspector.look(client, path))
    return note === undefined ? state : { ...state, note: await memory.mask(key, note) }
  }
  return Promise.all(source.files.map(resolveFile))
}

/** Asks the context providers and masks secrets in their texts. */
async function gatherProvided(
  { providers, memory }: HandoffDeps,
  { workspace, source }: RestoreSource,
  { signal }: OperationContext,
): Promise<{ provided: readonly ProvidedContext[]; warnings: readonly string[] }> {
  if (providers === undefined) return { provided: [], warnings: [] }
  const { sessionId: session } = source.metadata
  const about = { workspace, session, text: source.summaries.at(-1) ?? '' }
  const { provided, degraded } = await providers.gather('restore', about, signal)
  const key = sessionKey(workspace, session)
  return {
    provided: await Promise.all(
      provided.map(async (entry) => ({ ...entry, text: await memory.mask(key, entry.text) })),
    ),
    warnings: degraded.map(({ step, why }) => `${step}: ${why}`),
  }
}

/** Collects sessions named in this one, related ones, and its predecessors, the nearest last. */
async function collectOtherSessions(deps: HandoffDeps, restore: RestoreSource): Promise<HandoffMaterial['earlier']> {
  const { workspace, source, related } = restore
  if (source.metadata.degraded !== undefined) return []
  const { relationships } = await deps.graph.queryRelationships(workspace, {
    from: source.metadata.sessionId,
    types: ['SESSION_REFERENCES'],
    limit: maxNamedSessions,
  })
  const named = await Promise.all(relationships.map(({ to }) => readSavedSession(deps, workspace, to)))
  const sessions = [
    ...named.flatMap((session) =>
      session === undefined
        ? []
        : [{ session: session.metadata.sessionId, summary: session.metadata.summary || session.metadata.title }],
    ),
    ...related.map(({ session, summary }) => ({ session, summary })),
    ...(await addMessages(deps, restore, await readEarlierSummaries(deps, workspace, source))),
  ]
  return [...new Map(sessions.map((session) => [session.session, session])).values()]
}

/** Adds messages to earlier sessions, nearest first, while the budget may have room for them. */
async function addMessages(
  deps: HandoffDeps,
  restore: RestoreSource,
  earlier: readonly EarlierSession[],
): Promise<readonly EarlierSession[]> {
  const countTokens = (messages: readonly Message[]): Tokens => messages.reduce((sum, { tokens }) => sum + tokens, 0)
  const { workspace, messages: ownMessages, budget } = restore
  const result: EarlierSession[] = []
  let remainingTokens = budget - countTokens(ownMessages)
  for (const session of [...earlier].reverse()) {
    const saved = remainingTokens > 0 ? await readSavedSession(deps, workspace, session.session) : undefined
    const messages = (await saved?.readMessages()) ?? []
    remainingTokens -= countTokens(messages)
    result.unshift(
      saved === undefined
        ? session
        : { ...session, messages, items: saved.items, recalled: await recall(deps, restore, saved) },
    )
  }
  return result
}
