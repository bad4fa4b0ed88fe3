import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import { MemoryError } from '../domain/error.ts'

export type DatasetMessage = {
  readonly id: string
  /** Time in ms; null if unknown. */
  readonly at: number | null
  readonly speaker: string
  readonly role: 'user' | 'assistant'
  readonly text: string
  /** Sitting, episode or batch that the message belongs to. */
  readonly group: string | number | null
}

export type DatasetQuestion = {
  readonly id: string
  readonly category: string
  readonly query: string
  /** Expected answer; null if unknown. */
  readonly answer: string | null
  /** Ids of the messages that the answer needs, in any order. */
  readonly evidence: readonly string[]
}

export type DatasetConversation = {
  readonly id: string
  readonly messages: readonly DatasetMessage[]
  readonly questions: readonly DatasetQuestion[]
}

export type Dataset = { readonly name: string; readonly conversations: readonly DatasetConversation[] }

/**
 * Reads a dataset from a `.json` or `.json.gz` file.
 *
 * @throws {MemoryError} `bad-option` if the file cannot be read or does not have the documented shape.
 */
export async function readDataset(file: string): Promise<Dataset> {
  const bytes = await readFile(file).catch((cause: unknown) => {
    throw invalid(file, `cannot be read (${errorCode(cause)}). Name a .json or .json.gz file`, cause)
  })
  const isCompressed = bytes[0] === 0x1f && bytes[1] === 0x8b
  const json = isCompressed ? await decompress(file, bytes) : bytes
  return { name: datasetName(file), conversations: parseDataset(parseJson(file, json), file) }
}

const errorCode = (error: unknown): string => (error as NodeJS.ErrnoException).code ?? 'unknown error'

const datasetName = (file: string): string => (file.split(/[/\\]/).at(-1) ?? file).replace(/\.json(\.gz)?$/, '')

async function decompress(file: string, bytes: Uint8Array): Promise<Uint8Array> {
  try {
    return await promisify(gunzip)(bytes)
  } catch (cause) {
    throw invalid(file, 'is a damaged gzip file. Compress the JSON file again', cause)
  }
}

function parseJson(file: string, bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(bytes))
  } catch (cause) {
    throw invalid(file, 'is not valid JSON. Write an array of conversations', cause)
  }
}

const invalid = (place: string, problem: string, cause?: unknown): MemoryError =>
  new MemoryError('bad-option', `${place} ${problem}.`, { param: 'file', ...(cause === undefined ? {} : { cause }) })

type Fields = Readonly<Record<string, unknown>>

/** Validates parsed JSON. Error messages name the conversation and the field. */
export function parseDataset(value: unknown, source: string): DatasetConversation[] {
  if (!Array.isArray(value) || value.length === 0)
    throw invalid(source, 'is not an array with at least one conversation. See docs/evaluation.md for the format')
  const conversations = value.map((item, index) => parseConversation(item, `${source}, conversation ${index + 1}`))
  requireUnique(conversations, source, 'conversation')
  return conversations
}

function parseConversation(value: unknown, place: string): DatasetConversation {
  const fields = requireObject(value, place)
  const id = requireText(fields, 'id', place)
  const named = `${place} (${id})`
  const messages = requireArray(fields, 'messages', named).map((item, index) =>
    parseMessage(item, `${named}, messages[${index}]`),
  )
  if (messages.length === 0) throw invalid(named, 'has no messages. Add at least one, or remove the conversation')
  requireUnique(messages, named, 'message')
  const ids = new Set(messages.map((message) => message.id))
  const rawQuestions = fields.questions === undefined ? [] : requireArray(fields, 'questions', named)
  const questions = rawQuestions.map((item, index) => parseQuestion(item, `${named}, questions[${index}]`, ids))
  return { id, messages, questions }
}

function parseMessage(value: unknown, place: string): DatasetMessage {
  const fields = requireObject(value, place)
  const { at = null, role, group = null } = fields
  if (at !== null && !(typeof at === 'number' && Number.isFinite(at)))
    throw invalid(place, `has at ${JSON.stringify(at)}. Use milliseconds since 1970, or null if the time is unknown`)
  if (role !== 'user' && role !== 'assistant')
    throw invalid(place, `has role ${JSON.stringify(role)}. Use "user" or "assistant"`)
  if (group !== null && typeof group !== 'string' && typeof group !== 'number')
    throw invalid(place, `has group ${JSON.stringify(group)}. Use a string, a number or null`)
  const speaker = fields.speaker === undefined ? role : requireText(fields, 'speaker', place)
  return { id: requireId(fields, place), at, speaker, role, text: requireText(fields, 'text', place, true), group }
}

function parseQuestion(value: unknown, place: string, messageIds: ReadonlySet<string>): DatasetQuestion {
  const fields = requireObject(value, place)
  const { category = 'uncategorised', answer = null } = fields
  if (typeof category !== 'string') throw invalid(place, 'has a category that is not a string. Use a short name')
  const evidence = requireArray(fields, 'evidence', place).map(String)
  // Published datasets contain a few references to messages that do not exist. All of them wrong is a mistake.
  if (evidence.length > 0 && !evidence.some((id) => messageIds.has(id)))
    throw invalid(
      place,
      `has evidence ${JSON.stringify(evidence.slice(0, 3))}. Use ids of messages of the conversation`,
    )
  return {
    id: requireId(fields, place),
    category,
    query: requireText(fields, 'query', place),
    answer: answer === null ? null : typeof answer === 'string' ? answer : JSON.stringify(answer),
    evidence: [...new Set(evidence)].filter((id) => messageIds.has(id)),
  }
}

function requireObject(value: unknown, place: string): Fields {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Fields
  throw invalid(place, 'is not an object. See docs/evaluation.md for the format')
}

function requireArray(fields: Fields, name: string, place: string): readonly unknown[] {
  const value = fields[name]
  if (Array.isArray(value)) return value
  throw invalid(place, `has ${value === undefined ? `no ${name}` : `${name} that is no array`}. Add an array`)
}

function requireText(fields: Fields, name: string, place: string, mayBeEmpty = false): string {
  const value = fields[name]
  if (typeof value === 'string' && (mayBeEmpty || value.trim() !== '')) return value
  const problem = value === undefined ? `no ${name}` : `${name} ${JSON.stringify(value).slice(0, 40)}`
  throw invalid(place, `has ${problem}. Use a string${mayBeEmpty ? '' : ' that is not empty'}`)
}

/** Reads an id; numbers are accepted and become strings. */
const requireId = (fields: Fields, place: string): string =>
  typeof fields.id === 'number' ? String(fields.id) : requireText(fields, 'id', place)

function requireUnique(items: readonly { readonly id: string }[], place: string, noun: string): void {
  const ids = new Set<string>()
  for (const { id } of items) {
    if (ids.has(id)) throw invalid(place, `has the ${noun} id ${JSON.stringify(id)} twice. Make ids unique`)
    ids.add(id)
  }
}

/** Converts a message of a dataset to the input of `memory.append`. */
export const toMessageInput = ({ role, speaker, text, at }: DatasetMessage) => ({
  role,
  content: text,
  ...(speaker === role ? {} : { name: speaker }),
  ...(at === null ? {} : { at }),
})
