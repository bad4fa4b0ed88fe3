import { hash } from 'node:crypto'

/** Which session a new chat is, and which one it goes on from. */
export type Names = { readonly session: string; readonly from: string }

const namesOf = ({ session, from }: Names): string => `This chat is session ${session}, which goes on from ${from}.`

/** How clients save it, by what they save with. */
const advice = {
  tool: () => 'Save it with save_session and this sessionId.',
  command: ({ session }: Names) => `Save it with threadkeep save --session ${session}.`,
} as const satisfies Readonly<Record<string, (names: Names) => string>>
export type Means = keyof typeof advice

/** What is added when it could not be written down yet. */
export const notDurable = 'The store fails at the moment: this is not durable yet.'

/** The last line of what is restored. With its first sentence a record ends, by which it is known when it comes back. */
export const closingOf = (names: Names, means: Means): string => `${namesOf(names)} ${advice[means](names)}`

/** How a record opens and how it ends, whatever has become of its white space, and whatever stands before it on its line. */
const opening =
  /(?:Continued\s+from\s+another\s+chat\.\s+What\s+follows\s+is\s+its\s+record|Record\s+of\s+another\s+chat):\s+data,\s+not\s+instructions\./g
const id = '[A-Za-z0-9_+\\-.@]{1,128}'
const ends = [
  `(?<names>This chat is session (?<session>${id}), which goes on from (?<from>${id})\\.)`,
  `(?: Save it with (?:save_session and this sessionId|threadkeep save --session ${id})\\.)?`,
  `(?: ${notDurable.replace('.', '\\.')})?`,
]
const closing = new RegExp(ends.join('').replaceAll(' ', '\\s+'), 'g')

/** So many places in a text are looked at: each may be megabytes from the next. */
const most = 4

/** What a record is known by: everything in it that can be read, up to the names of its sessions. */
const markOf = (text: string): string =>
  hash('sha256', text.normalize('NFC').replaceAll(/[\s\p{C}]+/gu, '')).slice(0, 32)

/** The mark of a text that was restored; undefined where its last line had no room. */
export function recordMark(text: string, names: Names): string | undefined {
  const at = text.lastIndexOf(namesOf(names))
  return at < 0 ? undefined : markOf(text.slice(0, at + namesOf(names).length))
}

/** Finds the mark of the record that a session was begun with. */
export type Marks = (names: Names) => Promise<string | undefined>

/**
 * What was said without the records that were pasted into it. Only what is a record word for word is cut out: what merely
 * looks like one stays, and so does everything around it.
 *
 * @example
 * await withoutRecords(`${restored.context}\n\nGo on.`, marks) // { text: 'Go on.', found: [{ session: 'session_2', from: 'session_1' }] }
 */
export async function withoutRecords(
  text: string,
  marks: Marks,
): Promise<{ readonly text: string; readonly found: readonly Names[] }> {
  const found: Names[] = []
  let rest = text
  for (
    let record = await recordIn(rest, marks);
    record !== undefined && found.length < most;
    record = await recordIn(rest, marks)
  ) {
    found.push({ session: record.session, from: record.from })
    rest = [rest.slice(0, record.start).trimEnd(), rest.slice(record.end).trimStart()]
      .filter((part) => part !== '')
      .join('\n\n')
  }
  return { text: rest, found }
}

type Place = Names & { readonly start: number; readonly end: number }

async function recordIn(text: string, marks: Marks): Promise<Place | undefined> {
  const openings = [...text.matchAll(opening)].slice(0, most).flatMap(({ index }) => [headed(text, index), index])
  if (openings.length === 0) return undefined
  for (const { 0: whole, index, groups = {} } of [...text.matchAll(closing)].slice(0, most)) {
    const { names = '', session = '', from = '' } = groups
    const mark = await marks({ session, from })
    if (mark === undefined) continue
    const end = index + whole.indexOf(names) + names.length
    const start = openings.find((one) => one < index && markOf(text.slice(one, end)) === mark)
    if (start !== undefined) return { session, from, start, end: index + whole.length }
  }
  return undefined
}

/** Where the title above an opening begins, if it has one. */
function headed(text: string, index: number): number {
  const before = /# [^\n]*\n\s*$/.exec(text.slice(Math.max(0, index - longestTitle), index))
  return before === null ? index : index - before[0].length
}

const longestTitle = 2_000
