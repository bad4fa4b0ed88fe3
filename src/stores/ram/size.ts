import type { Entry } from '../../domain/entry.ts'
import { bytesOf, utf8Length } from '../../text/utf8.ts'

/** What a session takes before anything is said in it, and an entry beside its text: as measured, rounded up. */
export const sizeOfSession = 600
const sizeOfEntry = 200

/** What an entry takes of the process, about: its text in UTF-8, and what the engine keeps beside it. */
export const sizeOf = (entry: Entry): number =>
  sizeOfEntry + (entry.kind === 'message' ? bytesOf(entry) : utf8Length(JSON.stringify(entry)))
