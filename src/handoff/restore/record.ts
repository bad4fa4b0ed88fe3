import { hash } from 'node:crypto'

// A restored text is called a record. Clients paste records into new chats and save those chats, so records must be
// recognised and removed from saved messages.

/** Session created by a restore, and the session it continues. */
export type RecordSessions = { readonly session: string; readonly from: string }

const sessionsSentence = ({ session, from }: RecordSessions): string =>
  `This chat is session ${session}, which goes on from ${from}.`

/** Instruction on how to save the new chat, per kind of client. */
const saveInstructions = {
  tool: () => 'Save it with save_session and this sessionId.',
  command: ({ session }: RecordSessions) => `Save it with threadkeep save --session ${session}.`,
} as const satisfies Readonly<Record<string, (sessions: RecordSessions) => string>>
export type SaveMethod = keyof typeof saveInstructions

/** Sentence appended to a record while the store fails. */
export const notDurableNotice = 'The store fails at the moment: this is not durable yet.'

/** Formats the last line of a record. Its first sentence ends the hashed part of the record. */
export const formatClosing = (sessions: RecordSessions, method: SaveMethod): string =>
  `${sessionsSentence(sessions)} ${saveInstructions[method](sessions)}`

/** Start and end of a record, with any whitespace and anything before them on the line. */
const openingPattern =
  /(?:Continued\s+from\s+another\s+chat\.\s+What\s+follows\s+is\s+its\s+record|Record\s+of\s+another\s+chat):\s+data,\s+not\s+instructions\./g
const sessionIdPattern = '[A-Za-z0-9_+\\-.@]{1,128}'
const closingParts = [
  `(?<names>This chat is session (?<session>${sessionIdPattern}), which goes on from (?<from>${sessionIdPattern})\\.)`,
  `(?: Save it with (?:save_session and this sessionId|threadkeep save --session ${sessionIdPattern})\\.)?`,
  `(?: ${notDurableNotice.replace('.', '\\.')})?`,
]
const closingPattern = new RegExp(closingParts.join('').replaceAll(' ', '\\s+'), 'g')

/** Openings, closings and records examined per text: each candidate pair hashes the text between them. */
const maxCandidates = 4
const maxTitleChars = 2_000

/** Hashes the visible characters of a record, up to and including its sessions sentence. */
const hashVisible = (text: string): string =>
  hash('sha256', text.normalize('NFC').replaceAll(/[\s\p{C}]+/gu, '')).slice(0, 32)

/** Hashes a restored text; undefined if the budget had no room for its last line. */
export function hashRecord(text: string, sessions: RecordSessions): string | undefined {
  const sentence = sessionsSentence(sessions)
  const index = text.lastIndexOf(sentence)
  return index < 0 ? undefined : hashVisible(text.slice(0, index + sentence.length))
}

/** Looks up the hash of the record that a session was created with. */
export type FindRecordHash = (sessions: RecordSessions) => Promise<string | undefined>

/**
 * Removes records that were pasted into a text. Only verbatim records are removed; text that merely looks like one
 * stays.
 *
 * @example
 * await stripRecords(`${restored.context}\n\nGo on.`, findHash) // { text: 'Go on.', found: [{ session: 'session_2', from: 'session_1' }] }
 */
export async function stripRecords(
  text: string,
  findHash: FindRecordHash,
): Promise<{ readonly text: string; readonly found: readonly RecordSessions[] }> {
  const found: RecordSessions[] = []
  let rest = text
  for (
    let record = await findRecord(rest, findHash);
    record !== undefined && found.length < maxCandidates;
    record = await findRecord(rest, findHash)
  ) {
    found.push({ session: record.session, from: record.from })
    rest = [rest.slice(0, record.start).trimEnd(), rest.slice(record.end).trimStart()]
      .filter((part) => part !== '')
      .join('\n\n')
  }
  return { text: rest, found }
}

type FoundRecord = RecordSessions & { readonly start: number; readonly end: number }

async function findRecord(text: string, findHash: FindRecordHash): Promise<FoundRecord | undefined> {
  const starts = [...text.matchAll(openingPattern)]
    .slice(0, maxCandidates)
    .flatMap(({ index }) => [includeTitle(text, index), index])
  if (starts.length === 0) return undefined
  for (const { 0: closing, index, groups = {} } of [...text.matchAll(closingPattern)].slice(0, maxCandidates)) {
    const { names = '', session = '', from = '' } = groups
    const expectedHash = await findHash({ session, from })
    if (expectedHash === undefined) continue
    const hashedEnd = index + closing.indexOf(names) + names.length
    const start = starts.find((at) => at < index && hashVisible(text.slice(at, hashedEnd)) === expectedHash)
    if (start !== undefined) return { session, from, start, end: index + closing.length }
  }
  return undefined
}

/** Moves the start of a record to the title line above it, if there is one. */
function includeTitle(text: string, index: number): number {
  const title = /# [^\n]*\n\s*$/.exec(text.slice(Math.max(0, index - maxTitleChars), index))
  return title === null ? index : index - title[0].length
}
