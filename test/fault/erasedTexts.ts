import { globSync, readFileSync } from 'node:fs'
import type { Journal } from './journal.ts'
import type { Operation } from './operations.ts'

/** Finds messages whose erasure was acknowledged and whose text is still in the database files. */
export function findErasedTexts(file: string, journal: Journal): readonly string[] {
  const bytes = Buffer.concat(globSync(`${file}*`).map((path) => readFileSync(path)))
  const erased = journal.requested.flatMap((operation, at) =>
    journal.acknowledged.has(operation.id) ? messagesErasedBy(operation, journal, journal.requested.slice(0, at)) : [],
  )
  return erased
    .filter((name) => bytes.includes(`${name} `))
    .map((name) => `${name} was erased and can still be read in the file`)
}

/** Lists the messages an operation erases, by the beginning of their text. */
function messagesErasedBy(
  operation: Operation,
  { acknowledged }: Journal,
  earlier: readonly Operation[],
): readonly string[] {
  if (operation.kind !== 'eraseMessage' && operation.kind !== 'eraseSession') return []
  return earlier.flatMap((append) => {
    if (append.kind !== 'append' || append.session !== operation.session) return []
    const names = Array.from({ length: append.messages }, (_, index) => `${append.id}#${index}`)
    return operation.kind === 'eraseSession'
      ? names
      : names.filter((_, index) => `m${acknowledged.get(append.id)?.[0]?.[index]?.sequence}` === operation.message)
  })
}
