import type { Json, Message } from '../../src/domain/entry.ts'
import type { Journal } from './journal.ts'
import {
  importedMessages,
  importedScope,
  importedSuffix,
  messageText,
  type Operation,
  replacementText,
} from './operations.ts'
import type { StoredSession } from './storedSessions.ts'

type Replacement = Extract<Operation, { kind: 'replace' }>
type StoredSessions = ReadonlyMap<string, StoredSession>

/**
 * Compares replaced messages, rows and imported sessions with the journal of their writers. Reports acknowledged ones that
 * are lost, stored twice or partially, and values that were never written or are older than an acknowledged one.
 */
export function findOtherViolations(
  journal: Journal,
  sessions: StoredSessions,
  rows: ReadonlyMap<string, readonly Json[]>,
): readonly string[] {
  return [...checkReplacements(journal, sessions), ...checkRows(journal, rows), ...checkImports(journal, sessions)]
}

const isReplacement = (operation: Operation): operation is Replacement => operation.kind === 'replace'

/** Gives messages with a complete replacement their former text, which shows what append they come from. */
export const undoReplacements = (messages: readonly Message[], requested: readonly Operation[]): readonly Message[] => {
  const replacements = new Map(
    requested.filter(isReplacement).map((operation) => [replacementText(operation), operation]),
  )
  return messages.map((message) => {
    const operation = replacements.get(message.content)
    return operation?.message === message.id
      ? { ...message, content: messageText(operation.target, operation.index) }
      : message
  })
}

/** The operations whose result may be stored: the last acknowledged one, and those after it. One caller wrote them all. */
function possibleOperations<T extends Operation>(journal: Journal, operations: readonly T[]): readonly T[] {
  return operations.slice(
    Math.max(
      0,
      operations.findLastIndex(({ id }) => journal.acknowledged.has(id)),
    ),
  )
}

const hasAcknowledged = (journal: Journal, operations: readonly Operation[]): boolean =>
  operations.some(({ id }) => journal.acknowledged.has(id))

function checkReplacements(journal: Journal, sessions: StoredSessions): readonly string[] {
  const byMessage = Map.groupBy(
    journal.requested.filter(isReplacement),
    ({ session, message }) => `${session} ${message}`,
  )
  return [...byMessage].flatMap(([name, operations]) => {
    const [{ session, message: id, target, index }] = operations as [Replacement]
    const content = sessions.get(session)?.messages.find((message) => message.id === id)?.content
    const possible = possibleOperations(journal, operations).map(replacementText)
    if (!hasAcknowledged(journal, operations)) possible.push(messageText(target, index))
    return content !== undefined && possible.includes(content)
      ? []
      : [`${name} is not as it was replaced: ${JSON.stringify(content?.slice(0, 40))}`]
  })
}

function checkRows(journal: Journal, rows: ReadonlyMap<string, readonly Json[]>): readonly string[] {
  const byRow = Map.groupBy(
    journal.requested.filter((operation) => operation.kind === 'putRow'),
    ({ row }) => row,
  )
  const unknown = [...rows.keys()].filter((row) => !byRow.has(row)).map((row) => `row ${row} was never written`)
  const wrong = [...byRow].flatMap(([row, operations]) => {
    const values = (rows.get(row) ?? []).map((value) => JSON.stringify(value))
    if (values.length === 0 && !hasAcknowledged(journal, operations)) return []
    const possible = possibleOperations(journal, operations).map(({ id }) =>
      JSON.stringify({ text: messageText(id, 0) }),
    )
    return values.length === 1 && possible.includes(values[0] as string)
      ? []
      : [`row ${row} is not as it was written: ${values.length} values, ${values[0]?.slice(0, 40)}`]
  })
  return [...unknown, ...wrong]
}

/** An interrupted import may have stored the beginning of a bundle; repeating it stores the rest. */
function checkImports(journal: Journal, sessions: StoredSessions): readonly string[] {
  const imports = journal.requested.filter(({ kind }) => kind === 'import')
  const expected = new Map(
    imports.flatMap((operation) =>
      [operation.session, `${operation.session}${importedSuffix}`].map((session) => [session, operation] as const),
    ),
  )
  const unknown = [...sessions.keys()]
    .filter((session) => session.startsWith(`${importedScope}:`) && !expected.has(session))
    .map((session) => `${session} was never imported`)
  const wrong = [...expected].flatMap(([session, { id }]) => {
    const name = session.slice(importedScope.length + 1)
    const texts = Array.from({ length: importedMessages }, (_, index) => messageText(name, index))
    const stored = sessions.get(session)?.messages.map(({ content }) => content) ?? []
    const isPart = stored.every((content, index) => content === texts[index]) && stored.length <= texts.length
    return isPart && (stored.length === texts.length || !journal.acknowledged.has(id))
      ? []
      : [`${session} is not as it was imported: ${stored.length} messages`]
  })
  return [...unknown, ...wrong]
}
