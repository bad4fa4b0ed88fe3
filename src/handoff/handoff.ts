import { randomUUID } from 'node:crypto'
import type { Message } from '../domain/entry.ts'
import type { Clock, Embedder } from '../domain/ports.ts'
import type { Graph } from '../graph/graph.ts'
import { internalsOf, type Memory } from '../memory.ts'
import { type Analytics, analysed } from './analytics.ts'
import { chainOf, type Link, lastMeasured, relinked } from './chain.ts'
import { type Suggestion, suggested } from './continuation.ts'
import { begunIn, listedWithBegun } from './draftSessions.ts'
import { eraseRows } from './erase.ts'
import {
  type Exported,
  type ExportLayout,
  exportLayout,
  type ImportLayout,
  importLayout,
  type Taken,
} from './layout.ts'
import { type Marked, type Marking, marked } from './mark.ts'
import { type Appended, type AppendRequest, type CheckRequest, Monitor, type Reading } from './monitor.ts'
import { Pending, type Waiting } from './pending.ts'
import type { Measured, SessionMetadata } from './records.ts'
import { type Restored, type RestoreRequest, restored } from './restore.ts'
import { sweep } from './retention.ts'
import { type SaveRequest, type SaveResult, saved } from './save.ts'
import { bare, idIn, type Kept, kept, keyOf, type Listing, notFound, sessionRow, unsaved } from './sessions.ts'
import {
  type Attending,
  type ContextSources,
  type FileEyes,
  type HandoffParts,
  type HandoffSettings,
  type Later,
  settingsOf,
} from './settings.ts'

export type HandoffOptions = {
  readonly memory: Memory
  readonly graph: Graph
  readonly clock: Clock
  readonly settings?: Partial<HandoffSettings>
  /** Looks at files that conversations speak of; without it, nothing is known of them but what clients say. */
  readonly files?: FileEyes
  readonly providers?: ContextSources
  readonly embedder?: Embedder
  /** Calls back when what waits for the store is tried again; a timer when left out. */
  readonly later?: Later
  /** Names sessions that begin; by the time, and by chance, when left out. */
  readonly name?: HandoffParts['name']
}

/** A session with the ones before and after it. */
export type SessionDetails = SessionMetadata & {
  /** How well it came through when it was last restored. */
  readonly preservation?: Measured
  readonly chain: readonly Link[]
  readonly items: number
  readonly files: readonly string[]
  readonly workspaceState?: Kept['state']
}

/**
 * Saves conversations before they overflow, and lets them go on elsewhere. Every method works in one workspace: ids of
 * others are not found.
 *
 * @example
 * const { sessionId } = await handoff.save('default', { messages: [{ role: 'user', content: 'Fix the login page.' }] })
 * const { context } = await handoff.restore('default', { sessionId, budget: 4_000 })
 */
export class Handoff {
  readonly settings: HandoffSettings
  private readonly parts: HandoffParts
  private readonly pendings: Pending
  private readonly monitor: Monitor

  constructor({
    memory,
    graph,
    clock,
    settings,
    files,
    providers,
    embedder,
    later = laterByTimer,
    name = nameOf,
  }: HandoffOptions) {
    this.settings = settingsOf(settings)
    this.parts = { memory, graph, clock, settings: this.settings, files, providers, embedder, name }
    this.pendings = new Pending(this.settings.pending, clock, later)
    this.monitor = new Monitor(this.parts, this.pendings, (workspace, request, attending) =>
      this.save(workspace, request, attending),
    )
  }

  /** Saves a conversation, or what is new in one that was saved before. */
  save(workspace: string, request: SaveRequest, attending: Attending = {}): Promise<SaveResult> {
    return saved(this.parts, this.pendings, workspace, request, attending)
  }

  /** What a new chat begins with to go on where a session ended: the one named, else the workspace's most recent. */
  restore(workspace: string, request: RestoreRequest = {}, attending: Attending = {}): Promise<Restored> {
    return restored(this.parts, this.pendings, workspace, request, attending)
  }

  /** The sessions of a workspace, the one saved or added to last first; those that were only added to say so. */
  async list(workspace: string, page: { readonly limit?: number; readonly offset?: number } = {}): Promise<Listing> {
    return this.pendings.listed(workspace, (page.offset ?? 0) === 0, async () => {
      // What was forgotten may have taken a session's row along: it is made again of what is left.
      for (const sessionId of await bare(this.parts, workspace)) await this.save(workspace, { sessionId })
      return listedWithBegun(this.parts, workspace, page)
    })
  }

  /** What is known of a session, also of one that was only added to yet. */
  async get(workspace: string, asked: string): Promise<SessionDetails> {
    const session = idIn(workspace, asked)
    const found = await this.found(workspace, session)
    const isStored = found.metadata.degraded === undefined
    const preservation = isStored ? await lastMeasured(this.parts, workspace, session) : undefined
    return {
      ...found.metadata,
      ...(preservation === undefined ? {} : { preservation }),
      chain: isStored ? await chainOf(this.parts, workspace, session) : [],
      items: found.items.length,
      files: found.files.map(({ path }) => path),
      ...(found.state === undefined ? {} : { workspaceState: found.state }),
    }
  }

  /** Everything that was said in a session, in order, also in one that waits for the store. */
  async transcript(workspace: string, session: string): Promise<readonly Message[]> {
    return (await this.found(workspace, idIn(workspace, session))).messages()
  }

  /** Forgets a session for good: what was said, and everything made of it. */
  async delete(workspace: string, asked: string): Promise<void> {
    const { memory, graph } = this.parts
    const session = idIn(workspace, asked)
    const key = keyOf(workspace, session)
    const row = await sessionRow(this.parts, workspace, session).catch(() => undefined)
    const isKnown = (await this.pendings.drop(workspace, session)) || row !== undefined
    if (!isKnown && (await internalsOf(memory).sessions.head(key, 0)).revision === 0) throw notFound(session)
    await memory.forget({ key: `${workspace}:${session}` })
    if (row !== undefined) await relinked(this.parts, workspace, row)
    await eraseRows(graph, workspace, session)
    this.monitor.forget(workspace, session)
  }

  /** Marks what was said as important: it comes first when the session is restored. */
  mark(workspace: string, session: string, marking: Marking): Promise<Marked> {
    return marked(this.parts, this.pendings, workspace, idIn(workspace, session), marking)
  }

  /** Adds to a session as it goes on, and saves it once it comes near the limit. */
  append(workspace: string, request: AppendRequest, attending: Attending = {}): Promise<Appended> {
    return this.monitor.append(workspace, request, attending)
  }

  /** How full a chat is, and whether it is time to save. */
  check(workspace: string, request: CheckRequest): Promise<Reading> {
    return this.monitor.check(workspace, request)
  }

  /** The most recent session that a new chat may be going on with, judged by how it begins. */
  suggest(workspace: string, text: string): Promise<Suggestion | undefined> {
    return suggested(this.parts, workspace, text)
  }

  /** The sessions that a session goes on from, and those that go on from it, the oldest first. */
  chain(workspace: string, session: string): Promise<readonly Link[]> {
    return chainOf(this.parts, workspace, idIn(workspace, session))
  }

  /** What was kept, used and missed over a chain of sessions. */
  async analytics(workspace: string, asked: string): Promise<Analytics> {
    const session = idIn(workspace, asked)
    this.pendings.refuseWaiting(workspace, session)
    return analysed(this.parts, workspace, session)
  }

  /** Writes the sessions of a workspace in the documented directory layout; those that were only added to are saved first. */
  async export(workspace: string, request: ExportLayout): Promise<Exported> {
    const only = request.sessionId === undefined ? undefined : idIn(workspace, request.sessionId)
    for (const { sessionId } of await begunIn(this.parts, workspace))
      if (only === undefined || only === sessionId) await this.save(workspace, { sessionId })
    return exportLayout(this.parts, workspace, request)
  }

  /** Takes in sessions from the documented directory layout. */
  import(request: ImportLayout): Promise<Taken> {
    return importLayout(this.parts, request)
  }

  /** Ends sessions that are over; those without anything said only in the workspaces named. */
  sweep(workspaces: readonly string[] = [], now = this.parts.clock()): Promise<{ readonly ended: readonly string[] }> {
    return sweep(this.parts, workspaces, now)
  }

  /** What waits for the store to be back. */
  pending(): readonly Waiting[] {
    return this.pendings.waiting()
  }

  /** Tries now to write what waits; resolves to how much still does. */
  retry(): Promise<number> {
    return this.pendings.retry()
  }

  /** Tries a last time to write what waits, and stops. Memory and graph are closed by whoever opened them. */
  async close(): Promise<void> {
    await this.pendings.close()
  }

  private async found(workspace: string, session: string): Promise<Kept> {
    const saved = this.pendings.kept(workspace, session) ?? (await kept(this.parts, workspace, session))
    if (saved !== undefined && saved.metadata.messageCount > 0) return saved
    const said = await unsaved(this.parts, workspace, session)
    const before = saved?.metadata.continuedFrom
    const found =
      said === undefined
        ? saved
        : { ...said, metadata: { ...said.metadata, ...(before === undefined ? {} : { continuedFrom: before }) } }
    if (found === undefined) throw notFound(session)
    return found
  }
}

const nameOf = (now: number): string => `session_${now}_${randomUUID().slice(0, 8)}`

const laterByTimer: Later = (after, call) => {
  const timer = setTimeout(call, after)
  // What waits for a store must not keep a process alive that has nothing else to do.
  timer.unref()
  return () => clearTimeout(timer)
}
