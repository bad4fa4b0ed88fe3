import { randomUUID } from 'node:crypto'
import type { Message } from '../domain/entry.ts'
import type { Clock, Embedder } from '../domain/ports.ts'
import type { Graph } from '../graph/types.ts'
import { internalsOf, type Memory } from '../memory.ts'
import { type Analytics, analyseChain } from './analytics.ts'
import {
  type ChainLink,
  readChain,
  readLatestPreservation,
  relinkSuccessors,
  type Suggestion,
  suggestSession,
} from './chain.ts'
import { listDraftSessions, listSessions } from './draftSessions.ts'
import {
  type ExportRequest,
  type ExportResult,
  exportLayout,
  type ImportRequest,
  importLayout,
  type LayoutImportResult,
} from './layout/layout.ts'
import { type MarkRequest, type MarkResult, markImportant } from './mark.ts'
import {
  type AppendRequest,
  type CheckRequest,
  type SessionAppendResult,
  TokenMonitor,
  type TokenUsage,
} from './monitor.ts'
import { type PendingWriteStatus, PendingWrites } from './pendingWrites.ts'
import { type RestoreRequest, type RestoreResult, restoreSession } from './restore/restore.ts'
import { deleteSessionRows, sweepExpired } from './retention.ts'
import type { PreservationReport, SavedSessionMetadata, WorkspaceState } from './rows.ts'
import type { SaveRequest } from './save/request.ts'
import { type SaveResult, saveSession } from './save/save.ts'
import {
  findSessionRow,
  findSessionsWithoutRow,
  type Page,
  parseSessionId,
  readSavedSession,
  readUnsavedSession,
  type SavedSession,
  type SessionList,
  sessionKey,
  sessionNotFound,
} from './sessions.ts'
import {
  type ContextProviders,
  type FileInspector,
  type HandoffDeps,
  type HandoffSettings,
  type OperationContext,
  resolveSettings,
  type Schedule,
} from './settings.ts'

export type HandoffOptions = {
  readonly memory: Memory
  readonly graph: Graph
  readonly clock: Clock
  /** Overrides of the default settings. */
  readonly settings?: Partial<HandoffSettings>
  /** Reads files mentioned in conversations. Default: none; file references hold only what clients send. */
  readonly files?: FileInspector
  /** Contribute context on save and restore. Default: none. */
  readonly providers?: ContextProviders
  /** Ranks items by similarity to the newest messages. Default: none. */
  readonly embedder?: Embedder
  /** Schedules retries of pending writes. Default: an unreferenced timer. */
  readonly schedule?: Schedule
  /** Generates ids of new sessions. Default: `session_<time>_<random>`. */
  readonly generateSessionId?: HandoffDeps['generateSessionId']
}

/** Session metadata with its chain and counts. */
export type SessionDetails = SavedSessionMetadata & {
  /** Preservation measured when the session was last restored. */
  readonly preservation?: PreservationReport
  readonly chain: readonly ChainLink[]
  readonly items: number
  readonly files: readonly string[]
  readonly workspaceState?: WorkspaceState
}

/**
 * Saves conversations before they exceed the context window and restores them in new chats. Every method works in one
 * workspace; session ids of other workspaces are not found.
 *
 * @example
 * const { sessionId } = await handoff.save('default', { messages: [{ role: 'user', content: 'Fix the login page.' }] })
 * const { context } = await handoff.restore('default', { sessionId, budget: 4_000 })
 */
export class Handoff {
  readonly settings: HandoffSettings
  private readonly deps: HandoffDeps
  private readonly pendingWrites: PendingWrites
  private readonly monitor: TokenMonitor

  /** Throws `bad-option` if a setting is invalid. */
  constructor({
    memory,
    graph,
    clock,
    settings,
    files,
    providers,
    embedder,
    schedule = scheduleByTimer,
    generateSessionId = generateRandomId,
  }: HandoffOptions) {
    this.settings = resolveSettings(settings)
    this.deps = { memory, graph, clock, settings: this.settings, files, providers, embedder, generateSessionId }
    this.pendingWrites = new PendingWrites(this.settings.pending, clock, schedule)
    this.monitor = new TokenMonitor(this.deps, this.pendingWrites, (workspace, request, context) =>
      this.save(workspace, request, context),
    )
  }

  /** Saves a conversation; for a known session, only the new messages are stored. */
  save(workspace: string, request: SaveRequest, context: OperationContext = {}): Promise<SaveResult> {
    return saveSession(this.deps, this.pendingWrites, workspace, request, context)
  }

  /** Creates the text a new chat starts with and a new session that continues the given one, or the most recent one. */
  restore(workspace: string, request: RestoreRequest = {}, context: OperationContext = {}): Promise<RestoreResult> {
    return restoreSession(this.deps, this.pendingWrites, workspace, request, context)
  }

  /** Lists the sessions of a workspace, most recently changed first. Sessions never saved have `unsaved: true`. */
  async list(workspace: string, page: Page = {}): Promise<SessionList> {
    return this.pendingWrites.mergeIntoList(workspace, (page.offset ?? 0) === 0, async () => {
      // Forgetting a message also deletes a session row that quoted it; saving again rebuilds the row.
      for (const sessionId of await findSessionsWithoutRow(this.deps, workspace))
        await this.save(workspace, { sessionId })
      return listSessions(this.deps, workspace, page)
    })
  }

  /** Returns the details of a session, saved or not. */
  async get(workspace: string, session: string): Promise<SessionDetails> {
    const id = parseSessionId(workspace, session)
    const { metadata, items, files, workspaceState } = await this.findSession(workspace, id)
    const isStored = metadata.degraded === undefined
    const preservation = isStored ? await readLatestPreservation(this.deps, workspace, id) : undefined
    return {
      ...metadata,
      ...(preservation === undefined ? {} : { preservation }),
      chain: isStored ? await readChain(this.deps, workspace, id) : [],
      items: items.length,
      files: files.map(({ path }) => path),
      ...(workspaceState === undefined ? {} : { workspaceState }),
    }
  }

  /** Returns all messages of a session in order, including those not stored yet because the store fails. */
  async getTranscript(workspace: string, session: string): Promise<readonly Message[]> {
    return (await this.findSession(workspace, parseSessionId(workspace, session))).readMessages()
  }

  /** Deletes a session permanently: its messages and everything derived from them. */
  async delete(workspace: string, session: string): Promise<void> {
    const { memory, graph } = this.deps
    const id = parseSessionId(workspace, session)
    const key = sessionKey(workspace, id)
    const row = await findSessionRow(this.deps, workspace, id).catch(() => undefined)
    const isKnown = (await this.pendingWrites.discard(workspace, id)) || row !== undefined
    if (!isKnown && (await internalsOf(memory).sessions.readHead(key, 0)).revision === 0) throw sessionNotFound(id)
    await memory.forget({ key: `${workspace}:${id}` })
    if (row !== undefined) await relinkSuccessors(this.deps, workspace, row)
    await deleteSessionRows(graph, workspace, id)
    this.monitor.forget(workspace, id)
  }

  /** Marks messages as important; restored texts show them first. */
  mark(workspace: string, session: string, request: MarkRequest): Promise<MarkResult> {
    return markImportant(this.deps, this.pendingWrites, workspace, parseSessionId(workspace, session), request)
  }

  /** Appends messages to a session and saves it when it reaches the token threshold. */
  append(workspace: string, request: AppendRequest, context: OperationContext = {}): Promise<SessionAppendResult> {
    return this.monitor.append(workspace, request, context)
  }

  /** Counts the tokens of a chat and reports whether a save is due. */
  check(workspace: string, request: CheckRequest): Promise<TokenUsage> {
    return this.monitor.check(workspace, request)
  }

  /** Suggests the most recent session that a new chat may continue, given the start of that chat. */
  suggest(workspace: string, text: string): Promise<Suggestion | undefined> {
    return suggestSession(this.deps, workspace, text)
  }

  /** Returns the predecessors and successors of a session and itself, oldest first. */
  getChain(workspace: string, session: string): Promise<readonly ChainLink[]> {
    return readChain(this.deps, workspace, parseSessionId(workspace, session))
  }

  /** Reports which items were kept, used and missed over a chain of sessions. */
  async getAnalytics(workspace: string, session: string): Promise<Analytics> {
    const id = parseSessionId(workspace, session)
    this.pendingWrites.assertNone(workspace, id)
    return analyseChain(this.deps, workspace, id)
  }

  /** Writes the sessions of a workspace in the documented directory layout; unsaved sessions are saved first. */
  async export(workspace: string, request: ExportRequest): Promise<ExportResult> {
    const onlyId = request.sessionId === undefined ? undefined : parseSessionId(workspace, request.sessionId)
    for (const { sessionId } of await listDraftSessions(this.deps, workspace))
      if (onlyId === undefined || onlyId === sessionId) await this.save(workspace, { sessionId })
    return exportLayout(this.deps, workspace, request)
  }

  /** Imports sessions from the documented directory layout. */
  import(request: ImportRequest): Promise<LayoutImportResult> {
    return importLayout(this.deps, request)
  }

  /** Deletes expired sessions. Expired sessions without messages are found only in the given workspaces. */
  sweep(workspaces: readonly string[] = [], now = this.deps.clock()): Promise<{ readonly ended: readonly string[] }> {
    return sweepExpired(this.deps, workspaces, now)
  }

  /** Returns the writes that wait for the store, and those that were lost. */
  getPendingWrites(): readonly PendingWriteStatus[] {
    return this.pendingWrites.status()
  }

  /** Retries pending writes now; resolves to the number that still fail. */
  retry(): Promise<number> {
    return this.pendingWrites.retry()
  }

  /** Retries pending writes one last time, then stops. Does not close the memory or the graph. */
  async close(): Promise<void> {
    await this.pendingWrites.close()
  }

  private async findSession(workspace: string, id: string): Promise<SavedSession> {
    const saved = this.pendingWrites.preview(workspace, id) ?? (await readSavedSession(this.deps, workspace, id))
    if (saved !== undefined && saved.metadata.messageCount > 0) return saved
    const unsaved = await readUnsavedSession(this.deps, workspace, id)
    if (unsaved === undefined) {
      if (saved === undefined) throw sessionNotFound(id)
      return saved
    }
    const continuedFrom = saved?.metadata.continuedFrom
    return continuedFrom === undefined ? unsaved : { ...unsaved, metadata: { ...unsaved.metadata, continuedFrom } }
  }
}

const generateRandomId = (now: number): string => `session_${now}_${randomUUID().slice(0, 8)}`

const scheduleByTimer: Schedule = (delayMs, run) => {
  const timer = setTimeout(run, delayMs)
  // Pending writes must not keep an otherwise idle process alive.
  timer.unref()
  return () => clearTimeout(timer)
}
