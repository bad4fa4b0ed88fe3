import { MemoryError } from '../domain/error.ts'
import type { Entity } from '../graph/graph.ts'
import { stopIf } from '../portable/stop.ts'
import { every } from './every.ts'
import { version } from './layout/format.ts'
import { packed } from './layout/pack.ts'
import { type Folder, foldersIn, readFolder, type Skipped, versionOf } from './layout/read.ts'
import { taken } from './layout/take.ts'
import { writeFolder } from './layout/write.ts'
import { metadataOf } from './records.ts'
import { idIn, notFound, sessionRow } from './sessions.ts'
import type { Attending, HandoffParts } from './settings.ts'

export type ExportLayout = Attending & {
  /** Holds the folders `sessions` and `shared`; made if need be. */
  readonly directory: string
  /** Only this session. */
  readonly sessionId?: string
  /** As the settings say when left out. */
  readonly compress?: boolean
}
export type Exported = { readonly directory: string; readonly sessions: number; readonly messages: number }

export type ImportLayout = Attending & {
  readonly directory: string
  /** Only this workspace. */
  readonly workspace?: string
}
export type Taken = {
  readonly sessions: number
  readonly messages: number
  readonly unchanged: number
  readonly skipped: readonly Skipped[]
}

/**
 * Writes sessions as `sessions/<workspace>/<session>/` with their metadata, entities, relationships and transcript, and
 * what sessions share beside them. The same sessions always give the same bytes.
 */
export async function exportLayout(parts: HandoffParts, workspace: string, request: ExportLayout): Promise<Exported> {
  const { directory, sessionId, compress = parts.settings.compress, signal, progress } = request
  const rows = sessionId === undefined ? await rowsOf(parts, workspace) : [await existing(parts, workspace, sessionId)]
  let messages = 0
  for (const [done, row] of rows.entries()) {
    stopIf(signal, 'Exporting was stopped by the caller. What was written stays; export again to finish.')
    const session = await packed(parts, workspace, row)
    await writeFolder(directory, session, compress)
    messages += session.messages.length
    progress?.(done + 1, rows.length, `exported ${row.id}`)
  }
  return { directory, sessions: rows.length, messages }
}

async function rowsOf(parts: HandoffParts, workspace: string): Promise<readonly Entity[]> {
  const found = await every(
    async (page) =>
      (await parts.graph.entities(workspace, { types: ['session'], sort: [{ by: 'id' }], ...page })).entities,
  )
  const alive = await Promise.all(found.map(({ id }) => sessionRow(parts, workspace, id)))
  // One that was begun by a restore and never gone on with has nothing to tell.
  return alive.filter((row) => row !== undefined && metadataOf(row).messageCount > 0) as readonly Entity[]
}

async function existing(parts: HandoffParts, workspace: string, session: string): Promise<Entity> {
  const row = await sessionRow(parts, workspace, idIn(workspace, session))
  if (row === undefined) throw notFound(session)
  return row
}

/**
 * Takes in sessions from such a directory. Nothing is taken if something there is newer than this version can read; a
 * session that is damaged is left out, and named.
 */
export async function importLayout(
  parts: HandoffParts,
  { directory, workspace, signal, progress }: ImportLayout,
): Promise<Taken> {
  const { folders, skipped: strange } = await foldersIn(directory)
  const wanted = folders.filter((folder) => workspace === undefined || folder.workspace === workspace)
  const skipped: Skipped[] = strange.filter(
    ({ session }) => workspace === undefined || session.startsWith(`${workspace}/`),
  )
  const readable = await surveyed(directory, wanted, skipped)
  let [sessions, messages, unchanged] = [0, 0, 0]
  for (const [done, folder] of readable.entries()) {
    stopIf(signal, 'Importing was stopped by the caller. What was taken in stays; import again to finish.')
    const outcome = await readFolder(directory, folder)
      .then((session) => taken(parts, session))
      .catch(whyOf)
    if (outcome === 'unchanged') unchanged++
    else if ('why' in outcome) skipped.push({ session: nameOf(folder), why: outcome.why })
    else [sessions, messages] = [sessions + 1, messages + outcome.taken]
    progress?.(done + 1, readable.length, `imported ${nameOf(folder)}`)
  }
  return { sessions, messages, unchanged, skipped }
}

/** Which folders can be read at all; a newer one ends it before anything is written. */
async function surveyed(directory: string, folders: readonly Folder[], skipped: Skipped[]): Promise<readonly Folder[]> {
  const readable: Folder[] = []
  for (const folder of folders) {
    const found = await versionOf(directory, folder).catch(whyOf)
    if (typeof found !== 'number') skipped.push({ session: nameOf(folder), why: found.why })
    else if (found > version)
      throw new MemoryError(
        'bad-bundle',
        `${nameOf(folder)} was written in format ${found}, and this version reads up to ${version}. Import it with a newer version.`,
      )
    else readable.push(folder)
  }
  return readable
}

const nameOf = ({ workspace, session }: Folder): string => `${workspace}/${session}`

/** Damage is told; a store that fails is not damage. */
function whyOf(error: unknown): { readonly why: string } {
  if (
    error instanceof MemoryError &&
    (error.code === 'bad-bundle' || error.code === 'bad-message' || error.code === 'bad-key')
  )
    return { why: error.message }
  throw error
}
