import { hash } from 'node:crypto'
import type { Millis } from '../domain/entry.ts'
import { difference, packed } from './references/lines.ts'
import type { FileState } from './render.ts'

export { pathsIn } from './references/paths.ts'

/** What a look at a file gives: its text, or why there is none. `FileDesk.look` looks like this. */
export type Seen =
  | { readonly status: 'there'; readonly text: string; readonly size: number; readonly modified: Millis }
  | { readonly status: 'missing' }
  | { readonly status: 'refused' }

/** Looks at a file by its path. One that is missing or may not be read is an answer, not an error. */
export type Look = (path: string) => Promise<Seen>

/** A file as it was when it was talked about. None of its text is kept: `lines` are short hashes of its lines. */
export type FileReference = {
  readonly path: string
  readonly hash: string
  readonly last_modified: string
  readonly size: number
  readonly lines: string
}

/**
 * Refers to a file as it is now; a file that is not there, or may not be read, cannot be referred to.
 *
 * @example
 * const reference = await refer('src/app.ts', (path) => desk.look('ann', path))
 */
export async function refer(path: string, look: Look): Promise<FileReference | undefined> {
  const seen = await look(path)
  if (seen.status !== 'there') return undefined
  const { text, size, modified } = seen
  return {
    path,
    hash: hash('sha256', text),
    last_modified: new Date(modified).toISOString(),
    size,
    lines: packed(text),
  }
}

/**
 * Says what has become of a file: unchanged, changed (with a note on what changed where), missing, or refused. The note
 * quotes the file, so secrets in it are for the caller to mask.
 *
 * @example
 * await resolve(reference, look) // { path: 'src/app.ts', status: 'changed', note: '+1 −0 lines around 12: first changed lines: "retries: 3,"' }
 */
export async function resolve(reference: FileReference, look: Look): Promise<FileState> {
  const { path } = reference
  const seen = await look(path)
  if (seen.status !== 'there') return { path, status: seen.status }
  if (hash('sha256', seen.text) === reference.hash) return { path, status: 'unchanged' }
  return { path, status: 'changed', note: difference(reference.lines, seen.text) ?? sizes(reference, seen.size) }
}

/** What can be said without lines; of a file that a client told of by its name and hash, not even its size is known. */
function sizes({ size, hash: before }: FileReference, now: number): string {
  const isKnown = size > 0 || before === hash('sha256', '')
  return isKnown ? `${size} bytes then, ${now} bytes now` : 'what it said before is not known'
}
