import { globSync, readFileSync } from 'node:fs'
import type { Journal } from './journal.ts'
import type { Operation } from './operations.ts'

/** Messages whose forgetting was acknowledged and whose bytes are nevertheless still in the file, or in one of those beside it. */
export function remnantsIn(file: string, journal: Journal): readonly string[] {
  const bytes = Buffer.concat(globSync(`${file}*`).map((path) => readFileSync(path)))
  const forgotten = journal.asked.flatMap((operation, at) =>
    journal.done.has(operation.id) ? goneWith(operation, journal, journal.asked.slice(0, at)) : [],
  )
  return forgotten
    .filter((name) => bytes.includes(`${name} `))
    .map((name) => `${name} was forgotten and can still be read in the file`)
}

/** The messages an operation takes out, by the words they begin with. */
function goneWith(operation: Operation, { done }: Journal, before: readonly Operation[]): readonly string[] {
  if (operation.does !== 'drop' && operation.does !== 'forget') return []
  return before.flatMap((said) => {
    if (said.does !== 'say' || said.session !== operation.session) return []
    const names = Array.from({ length: said.messages }, (_, place) => `${said.id}#${place}`)
    return operation.does === 'forget'
      ? names
      : names.filter((_, place) => `m${done.get(said.id)?.[0]?.[place]?.sequence}` === operation.message)
  })
}
