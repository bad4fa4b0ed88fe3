import { MemoryError } from '../../domain/error.ts'
import type { Entity } from '../../graph/graph.ts'
import { stopIf } from '../../portable/abort.ts'
import { metadataFromRow, readAllPages } from '../rows.ts'
import { findSessionRow, idIn, notFound } from '../sessions.ts'
import type { HandoffDeps, OperationContext } from '../settings.ts'
import { formatVersion } from './format.ts'
import { importSession } from './importSession.ts'
import { findFolders, readFolder, readVersion, type SessionFolder, type SkippedSession } from './read.ts'
import { packSession, writeFolder } from './write.ts'

export type ExportRequest = OperationContext & {
  /** Directory for the folders `sessions` and `shared`; created if missing. */
  readonly directory: string
  /** Exports only this session. */
  readonly sessionId?: string
  /** Default: the `compress` setting. */
  readonly compress?: boolean
}
export type ExportResult = { readonly directory: string; readonly sessions: number; readonly messages: number }

export type ImportRequest = OperationContext & {
  readonly directory: string
  /** Imports only this workspace. */
  readonly workspace?: string
}
export type ImportResult = {
  readonly sessions: number
  readonly messages: number
  readonly unchanged: number
  readonly skipped: readonly SkippedSession[]
}

/**
 * Writes sessions to `sessions/<workspace>/<session>/` with metadata, entities, relationships and transcript, and shared
 * file references beside them. The same sessions always give the same bytes.
 */
export async function exportLayout(
  deps: HandoffDeps,
  workspace: string,
  request: ExportRequest,
): Promise<ExportResult> {
  const { directory, sessionId, compress = deps.settings.compress, signal, progress } = request
  const rows =
    sessionId === undefined ? await readSessionRows(deps, workspace) : [await getSessionRow(deps, workspace, sessionId)]
  let messages = 0
  for (const [done, row] of rows.entries()) {
    stopIf(signal, 'Exporting was stopped by the caller. Exported sessions stay; export again to finish.')
    const session = await packSession(deps, workspace, row)
    await writeFolder(directory, session, compress)
    messages += session.messages.length
    progress?.(done + 1, rows.length, `exported ${row.id}`)
  }
  return { directory, sessions: rows.length, messages }
}

async function readSessionRows(deps: HandoffDeps, workspace: string): Promise<readonly Entity[]> {
  const all = await readAllPages(
    async (page) =>
      (await deps.graph.entities(workspace, { types: ['session'], sort: [{ by: 'id' }], ...page })).entities,
  )
  const rows = await Promise.all(all.map(({ id }) => findSessionRow(deps, workspace, id)))
  // Sessions created by a restore and never written to are not exported.
  return rows.filter((row) => row !== undefined && metadataFromRow(row).messageCount > 0) as readonly Entity[]
}

async function getSessionRow(deps: HandoffDeps, workspace: string, session: string): Promise<Entity> {
  const row = await findSessionRow(deps, workspace, idIn(workspace, session))
  if (row === undefined) throw notFound(session)
  return row
}

/**
 * Imports sessions from a directory. Damaged sessions are skipped and reported. If any folder has a newer format version,
 * nothing is imported and `bad-bundle` is thrown.
 */
export async function importLayout(
  deps: HandoffDeps,
  { directory, workspace, signal, progress }: ImportRequest,
): Promise<ImportResult> {
  const found = await findFolders(directory)
  const folders = found.folders.filter((folder) => workspace === undefined || folder.workspace === workspace)
  const skipped: SkippedSession[] = found.skipped.filter(
    ({ session }) => workspace === undefined || session.startsWith(`${workspace}/`),
  )
  const readable = await checkVersions(directory, folders, skipped)
  let [sessions, messages, unchanged] = [0, 0, 0]
  for (const [done, folder] of readable.entries()) {
    stopIf(signal, 'Importing was stopped by the caller. Imported sessions stay; import again to finish.')
    const outcome = await readFolder(directory, folder)
      .then((session) => importSession(deps, session))
      .catch(reasonOf)
    if (outcome === 'unchanged') unchanged++
    else if ('why' in outcome) skipped.push({ session: folderName(folder), why: outcome.why })
    else [sessions, messages] = [sessions + 1, messages + outcome.added]
    progress?.(done + 1, readable.length, `imported ${folderName(folder)}`)
  }
  return { sessions, messages, unchanged, skipped }
}

/** Returns the folders with a readable version. Throws on a newer one, before anything is written. */
async function checkVersions(
  directory: string,
  folders: readonly SessionFolder[],
  skipped: SkippedSession[],
): Promise<readonly SessionFolder[]> {
  const readable: SessionFolder[] = []
  for (const folder of folders) {
    const version = await readVersion(directory, folder).catch(reasonOf)
    if (typeof version !== 'number') skipped.push({ session: folderName(folder), why: version.why })
    else if (version > formatVersion)
      throw new MemoryError(
        'bad-bundle',
        `${folderName(folder)} was written in format ${version}, and this version reads up to ${formatVersion}. Import it with a newer version.`,
      )
    else readable.push(folder)
  }
  return readable
}

const folderName = ({ workspace, session }: SessionFolder): string => `${workspace}/${session}`

const dataErrorCodes: ReadonlySet<string> = new Set(['bad-bundle', 'bad-message', 'bad-key'])

/** Converts an error about the data to the reason for skipping it; rethrows store failures. */
function reasonOf(error: unknown): { readonly why: string } {
  if (error instanceof MemoryError && dataErrorCodes.has(error.code)) return { why: error.message }
  throw error
}
