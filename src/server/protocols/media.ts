import { createHash } from 'node:crypto'
import { type Part, wellFormed } from '../../domain/chat.ts'
import { isObject } from '../../domain/checks.ts'
import type { FilePart, Sent } from './protocol.ts'
import { readType } from './validation.ts'

/** Bytes embedded in a request as a `data:` URL or plain base64. */
type InlineData = { readonly type: string; readonly bytes: Buffer }

/** Parses a `data:` URL; undefined for any other text. */
function parseDataUrl(url: string): InlineData | undefined {
  if (!/^data:/i.test(url)) return undefined
  const comma = url.indexOf(',')
  if (comma < 0) return undefined
  const [type = '', ...options] = url.slice(5, comma).split(';')
  const bytes = options.some((option) => option.trim().toLowerCase() === 'base64')
    ? Buffer.from(url.slice(comma + 1), 'base64')
    : Buffer.from(decodePercent(url.slice(comma + 1)), 'utf8')
  return { type: type.trim().toLowerCase() || 'text/plain', bytes }
}

function decodePercent(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** Formats the transcript text for media: its kind, size and a hash that identifies it when it is sent again. */
export function formatPlaceholder(kind: string, bytes: Uint8Array | undefined, address = ''): string {
  if (bytes === undefined) return `[${kind}${address === '' ? '' : ` ${wellFormed(address).slice(0, 200)}`}]`
  return `[${kind}, ${bytes.length} bytes, sha256 ${createHash('sha256').update(bytes).digest('hex').slice(0, 16)}]`
}

/** File in a request: `data` is a `data:` URL or plain base64, or empty when only an `address` was sent. */
type FileSource = { readonly name: string; readonly data: string; readonly address: string }

/** Appends a file to `files` and returns the placeholder part for the transcript. */
export function addFilePart({ name, data, address }: FileSource, files: FilePart[]): Part {
  const file = createFile(
    name,
    data === '' ? undefined : (parseDataUrl(data) ?? { type: '', bytes: Buffer.from(data, 'base64') }),
  )
  files.push(file)
  return toTextPart(formatPlaceholder(`file ${file.name}`, file.bytes, address))
}

/** Converts a media URL to a placeholder part. A `data:` URL that is not image, audio or video is appended to `files`. */
export function addMediaUrl(kind: string, url: string, files: FilePart[]): Part {
  const data = parseDataUrl(url)
  if (data === undefined || conversationalType.test(data.type))
    return toTextPart(formatPlaceholder(kind, data?.bytes, url))
  files.push(createFile('', data))
  return toTextPart(formatPlaceholder('file', data.bytes))
}

/**
 * Finds user messages with media that the client sent again before index `from`, keyed by the text memory stores for them.
 * The original message replaces that text wherever memory shows it unshortened, so that the model sees the media.
 *
 * @example
 * findResentMedia(request.messages, list, request.turnStart).get('[image, 20 bytes, sha256 fe1a4ab1fb634703]')
 * // { role: 'user', content: [{ type: 'image_url', … }] }
 */
export function findResentMedia<T>(
  messages: readonly Sent[],
  list: readonly T[],
  from: number,
): ReadonlyMap<string, T> {
  let found: Map<string, T> | undefined
  for (let position = 0; position < messages.length; position++) {
    const { role, content, place: index } = messages[position] as Sent
    if (index >= from) break
    const original = list[index]
    if (role !== 'user' || original === undefined || !hasMedia(original)) continue
    // A message that also carries tool results is skipped: memory may show one without the other.
    const isAlone = messages[position - 1]?.place !== index && messages[position + 1]?.place !== index
    if (isAlone) found = (found ?? new Map()).set(content, original)
  }
  return found ?? noMedia
}

const noMedia: ReadonlyMap<string, never> = new Map<string, never>()
const textTypes = ['text', 'input_text', 'output_text']

function hasMedia(message: unknown): boolean {
  const content = isObject(message) ? message.content : undefined
  return Array.isArray(content) && content.some((part) => !textTypes.includes(readType(part)))
}

export const toTextPart = (text: string): Part => ({ type: 'text', text })

/** Media types that belong to the conversation itself and are not stored as files. */
const conversationalType = /^(?:image|audio|video)\//

const createFile = (name: string, data: InlineData | undefined): FilePart => ({
  name: name === '' ? 'file' : wellFormed(name).slice(0, 255),
  type: data?.type ?? '',
  bytes: data?.bytes,
})
