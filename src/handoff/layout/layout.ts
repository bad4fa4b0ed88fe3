import { measureMessage } from '../../context/measureMessage.ts'
import { type MessageInput, parseMessage } from '../../domain/chat.ts'
import { formatMessageId, type Message, maxImportedSequence, parseMessageId } from '../../domain/entry.ts'
import { isObject, MemoryError } from '../../domain/error.ts'
import type { Key } from '../../domain/key.ts'
import { noExpiry } from '../../domain/session.ts'
import { allRows } from '../../graph/query.ts'
import type { Entity, EntityDraft, RelationshipDraft } from '../../graph/types.ts'
import { internalsOf } from '../../memory.ts'
import { throwIfAborted } from '../../portable/abort.ts'
import { toCanonicalJson } from '../../portable/canonical.ts'
import { expiryCutoff } from '../retention.ts'
import { conversationId, fileId, itemFromRow, itemId, metadataFromRow, originId, stateId, stringsIn } from '../rows.ts'
import { missingWorkspaceRow } from '../save/save.ts'
import { findSessionRow, parseSessionId, sessionKey, sessionNotFound, toIsoTime } from '../sessions.ts'
import type { HandoffDeps, OperationContext } from '../settings.ts'
import {
  damagedError,
  formatVersion,
  hashText,
  type PackedEntity,
  type PackedMessage,
  type PackedSession,
} from './format.ts'
import { findFolders, parseJsonFile, readFolder, readVersion, type SessionFolder, type SkippedSession } from './read.ts'
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
export type LayoutImportResult = {
  readonly sessions: number
  readonly messages: number
  readonly unchanged: number
  readonly skipped: readonly SkippedSession[]
}

/**
 * Writes sessions to `sessions/<workspace>/<session>/` with metadata, entities, relationships and transcript, and
 * shared file references beside them. The same sessions always give the same bytes.
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
    throwIfAborted(signal, 'Exporting was stopped by the caller. Exported sessions stay; export again to finish.')
    const session = await packSession(deps, workspace, row)
    await writeFolder(directory, session, compress)
    messages += session.messages.length
    progress?.(done + 1, rows.length, `exported ${row.id}`)
  }
  return { directory, sessions: rows.length, messages }
}

async function readSessionRows(deps: HandoffDeps, workspace: string): Promise<readonly Entity[]> {
  const query = { types: ['session'], sort: [{ by: 'id' }], limit: allRows }
  const { entities } = await deps.graph.queryEntities(workspace, query)
  const rows = await Promise.all(entities.map(({ id }) => findSessionRow(deps, workspace, id)))
  // Sessions created by a restore and never written to are not exported.
  return rows.filter((row) => row !== undefined && metadataFromRow(row).messageCount > 0) as readonly Entity[]
}

async function getSessionRow(deps: HandoffDeps, workspace: string, session: string): Promise<Entity> {
  const row = await findSessionRow(deps, workspace, parseSessionId(workspace, session))
  if (row === undefined) throw sessionNotFound(session)
  return row
}

/**
 * Imports sessions from a directory. Damaged sessions are skipped and reported. If any folder has a newer format
 * version, nothing is imported and `bad-bundle` is thrown.
 */
export async function importLayout(
  deps: HandoffDeps,
  { directory, workspace, signal, progress }: ImportRequest,
): Promise<LayoutImportResult> {
  const found = await findFolders(directory)
  const folders = found.folders.filter((folder) => workspace === undefined || folder.workspace === workspace)
  const skipped: SkippedSession[] = found.skipped.filter(
    ({ session }) => workspace === undefined || session.startsWith(`${workspace}/`),
  )
  const readable = await checkVersions(directory, folders, skipped)
  let [sessions, messages, unchanged] = [0, 0, 0]
  for (const [done, folder] of readable.entries()) {
    throwIfAborted(signal, 'Importing was stopped by the caller. Imported sessions stay; import again to finish.')
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

/** Result of an import: the number of added messages, `unchanged`, or the reason the session was skipped. */
type ImportOutcome = { readonly added: number } | 'unchanged' | { readonly why: string }

/** Imports a session. Never overwrites a newer session or one with different messages. */
async function importSession(deps: HandoffDeps, packed: PackedSession): Promise<ImportOutcome> {
  const { workspace, session, saved_at, created_at } = packed.metadata
  const cutoff = expiryCutoff(deps.memory.profile.lifetime, deps.clock())
  if (cutoff !== undefined && created_at <= toIsoTime(cutoff)) return { why: 'the session has expired' }
  const key = sessionKey(workspace, session)
  const drafts = packed.entities.map((entity) => toEntityDraft(packed, entity))
  if (!drafts.some(({ type }) => type === 'session' || type === 'session_origin'))
    throw damagedError('the session entity is missing')
  const messages = packed.messages.map(toIncoming)
  const row = await deps.graph.getEntity(workspace, session)
  if (row !== undefined && row.type !== 'session') return { why: 'its id belongs to another entity' }
  const existing = row === undefined ? undefined : await packSession(deps, workspace, row)
  if (existing !== undefined) {
    if (toCanonicalJson(existing.metadata) === toCanonicalJson(packed.metadata)) return 'unchanged'
    if (existing.metadata.saved_at > saved_at) return { why: 'the stored session is newer' }
  }
  const stored = await deps.memory.transcript(key)
  if (!isPrefix(stored, packed.messages)) return { why: 'the stored session has different messages' }
  await appendMessages(deps, key, packed, messages.slice(stored.length), stored.length)
  await writeRows(deps, packed, drafts, existing)
  return { added: messages.length - stored.length }
}

const isPrefix = (stored: readonly Message[], messages: readonly PackedMessage[]): boolean =>
  stored.every(({ id, role, content }, index) => {
    const message = messages[index]
    return id === message?.id && role === message.role && content === message.content
  })

/** Stores messages under their original ids, including the gaps between them. */
async function appendMessages(
  { memory }: HandoffDeps,
  key: Key,
  packed: PackedSession,
  messages: readonly MessageInput[],
  storedCount: number,
): Promise<void> {
  const { sessions, tokenizer, profile } = internalsOf(memory)
  const createdAt = Date.parse(packed.metadata.created_at)
  const expiresAt = profile.lifetime.age === undefined ? noExpiry : createdAt + profile.lifetime.age
  for (const run of splitRuns(packed.messages.slice(storedCount))) {
    const runMessages = messages.slice(run.first, run.first + run.count)
    const append = await Promise.all(
      runMessages.map(async (message, index) =>
        measureMessage(
          tokenizer,
          await memory.maskMessage(key, parseMessage(message, index, createdAt)),
          profile.maxMessageTokens,
        ),
      ),
    )
    const { epoch, lastSequence, recent } = await sessions.readHead(key, 1)
    const newest = recent.at(-1)
    const offset = newest === undefined ? 0 : newest.offset + newest.weight
    await sessions.commit({
      id: `layout ${run.sequence} ${hashText(toCanonicalJson(runMessages))}`,
      key,
      at: createdAt,
      epoch,
      ...(run.sequence === lastSequence + 1 ? {} : { from: { sequence: run.sequence, offset } }),
      append,
      put: [],
      drop: [],
      expiresAt,
    })
  }
}

/** Messages with consecutive sequence numbers. */
type MessageRun = { readonly first: number; readonly count: number; readonly sequence: number }

function splitRuns(messages: readonly PackedMessage[]): readonly MessageRun[] {
  const runs: { first: number; count: number; sequence: number }[] = []
  for (const [index, { id }] of messages.entries()) {
    const sequence = parseMessageId(id)
    const run = runs.at(-1)
    if (sequence === undefined || sequence > maxImportedSequence) throw damagedError('a message has an invalid id')
    if (run !== undefined && sequence < run.sequence + run.count) throw damagedError('the messages are not in order')
    if (run !== undefined && run.sequence + run.count === sequence) run.count++
    else runs.push({ first: index, count: 1, sequence })
  }
  return runs
}

/** Writes the rows with secrets masked, and deletes rows that the imported session no longer has. */
async function writeRows(
  deps: HandoffDeps,
  packed: PackedSession,
  drafts: readonly EntityDraft[],
  existing: PackedSession | undefined,
): Promise<void> {
  const { workspace, session } = packed.metadata
  const key = sessionKey(workspace, session)
  const entities = await Promise.all(
    drafts.map(async (draft) => ({ ...draft, properties: await deps.memory.mask(key, { ...draft.properties }) })),
  )
  const relationships = packed.relationships.map(({ from, to, type, properties }): RelationshipDraft => {
    if (from !== session && from !== conversationId(session))
      throw damagedError('a relationship belongs to another session')
    return { from, to, type, properties: isObject(properties) ? properties : {}, session }
  })
  const importedIds = new Set(entities.map((entity) => entity.id))
  await deps.graph.write(workspace, {
    entities: [...(await missingWorkspaceRow(deps, workspace)), ...entities],
    relationships,
    deleteEntities: (existing?.entities ?? []).map(({ id }) => id).filter((id) => !importedIds.has(id)),
  })
}

/** Converts a packed entity. Throws if it does not belong to its session: a folder must not change other sessions. */
function toEntityDraft(
  packed: PackedSession,
  { type, id, properties: ownProperties, shared }: PackedEntity,
): EntityDraft {
  const { workspace, session, created_at, saved_at } = packed.metadata
  const properties =
    shared === undefined
      ? ownProperties
      : parseJsonFile(packed.shared.get(shared) ?? 'null', `shared file reference ${shared}`)
  if (!isObject(properties)) throw damagedError(`entity ${JSON.stringify(id)} has no properties`)
  const messageIds = packed.messages.map((message) => message.id)
  /** Per type: validity of the entity, and the messages it quotes. */
  const validators: Readonly<Record<string, () => readonly [isValid: boolean, sources: readonly string[]]>> = {
    session: () => [
      id === session &&
        properties.workspace_id === workspace &&
        properties.created_at === created_at &&
        properties.saved_at === saved_at,
      messageIds,
    ],
    session_origin: () => [id === originId(session), []],
    conversation: () => [id === conversationId(session), messageIds],
    context_item: () => [
      id.startsWith(itemId(session, '')) &&
        itemFromRow({ id, properties: properties as Entity['properties'] }) !== undefined,
      stringsIn(properties.sources),
    ],
    file_reference: () => [typeof properties.path === 'string' && id === fileId(session, properties.path), []],
    workspace_state: () => [id === stateId(session), []],
    provided: () => [id.startsWith(`provided_${session}_`), []],
    mark: () => [id === `mark_${session}_${properties.message}`, stringsIn([properties.message])],
  }
  const [isValid, sources] = (Object.hasOwn(validators, type) ? validators[type]?.() : undefined) ?? [false, []]
  if (!isValid) throw damagedError(`entity ${JSON.stringify(id)} does not belong to this session`)
  return {
    type,
    id,
    session,
    properties: properties as Entity['properties'],
    ...(sources.length === 0 ? {} : { sources }),
  }
}

const isListOfObjects = (value: unknown): boolean => Array.isArray(value) && value.every(isObject)

/** Converts a packed message to an incoming one and validates it. */
function toIncoming({ id, at, role, content, name, calls, answers }: PackedMessage, index: number): MessageInput {
  if (calls !== undefined && !isListOfObjects(calls)) throw damagedError('a message has invalid tool calls')
  const message: MessageInput = {
    role: role as MessageInput['role'],
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
  if (id !== formatMessageId(parseMessageId(id) ?? -1)) throw damagedError('a message has an invalid id')
  parseMessage(message, index, at)
  return message
}
