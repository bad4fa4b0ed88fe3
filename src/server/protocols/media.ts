import { createHash } from 'node:crypto'
import { type Part, wellFormed } from '../../domain/chat.ts'
import { isObject } from '../../domain/checks.ts'
import { typeOf } from './checks.ts'
import type { FilePart, Sent } from './dialect.ts'

/** Bytes that stand inside a request, as `data:` URL or plain base64. */
type Data = { readonly type: string; readonly bytes: Buffer }

/** What a `data:` URL holds; undefined for any other text. */
function dataIn(url: string): Data | undefined {
  if (!/^data:/i.test(url)) return undefined
  const comma = url.indexOf(',')
  if (comma < 0) return undefined
  const [type = '', ...options] = url.slice(5, comma).split(';')
  const bytes = options.some((option) => option.trim().toLowerCase() === 'base64')
    ? Buffer.from(url.slice(comma + 1), 'base64')
    : Buffer.from(decoded(url.slice(comma + 1)), 'utf8')
  return { type: type.trim().toLowerCase() || 'text/plain', bytes }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** What stands in the transcript for a picture or a sound: its kind, size and hash, by which it is known again. */
export function placeholder(kind: string, bytes: Uint8Array | undefined, where = ''): string {
  if (bytes === undefined) return `[${kind}${where === '' ? '' : ` ${wellFormed(where).slice(0, 200)}`}]`
  return `[${kind}, ${bytes.length} bytes, sha256 ${createHash('sha256').update(bytes).digest('hex').slice(0, 16)}]`
}

/** A file as requests carry it: its bytes as a `data:` URL or plain base64, or nothing but where it is. */
type Carried = { readonly name: string; readonly data: string; readonly where: string }

/** What stands in the transcript for a file, which is put with the others that were found. */
export function filePart({ name, data, where }: Carried, files: FilePart[]): Part {
  const file = fileOf(
    name,
    data === '' ? undefined : (dataIn(data) ?? { type: '', bytes: Buffer.from(data, 'base64') }),
  )
  files.push(file)
  return textPart(placeholder(`file ${file.name}`, file.bytes, where))
}

/** A picture by its address; what is no picture is a file, whatever it is sent as. */
export function urlPart(kind: string, url: string, files: FilePart[]): Part {
  const data = dataIn(url)
  if (data === undefined || isConversational(data.type)) return textPart(placeholder(kind, data?.bytes, url))
  files.push(fileOf('', data))
  return textPart(placeholder('file', data.bytes))
}

/**
 * What the user has sent again with pictures, sounds or files in it, before a place in the client's list, by the words that
 * memory has for it. Where memory shows these words whole, the model is to see what they stand for.
 *
 * @example
 * resentMedia(ask.said, messages, ask.turn).get('[image, 20 bytes, sha256 fe1a4ab1fb634703]') // { role: 'user', content: [{ type: 'image_url', … }] }
 */
export function resentMedia<T>(said: readonly Sent[], list: readonly T[], from: number): ReadonlyMap<string, T> {
  let found: Map<string, T> | undefined
  for (let at = 0; at < said.length; at++) {
    const { role, content, place } = said[at] as Sent
    if (place >= from) break
    const own = list[place]
    if (role !== 'user' || own === undefined || !hasMedia(own)) continue
    // Where results of tools stand beside the words, memory may show the one without the other.
    const isAlone = said[at - 1]?.place !== place && said[at + 1]?.place !== place
    if (isAlone) found = (found ?? new Map()).set(content, own)
  }
  return found ?? nothing
}

const nothing: ReadonlyMap<string, never> = new Map<string, never>()
const texts = ['text', 'input_text', 'output_text']

function hasMedia(message: unknown): boolean {
  const content = isObject(message) ? message.content : undefined
  return Array.isArray(content) && content.some((part) => !texts.includes(typeOf(part)))
}

export const textPart = (text: string): Part => ({ type: 'text', text })

const conversational = /^(?:image|audio|video)\//

/** Whether bytes are part of the conversation, as a picture or a sound is, rather than a file. */
const isConversational = (type: string): boolean => conversational.test(type)

const fileOf = (name: string, data: Data | undefined): FilePart => ({
  name: name === '' ? 'file' : wellFormed(name).slice(0, 255),
  type: data?.type ?? '',
  bytes: data?.bytes,
})
