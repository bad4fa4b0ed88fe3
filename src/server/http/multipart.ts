import { Refusal } from './problem.ts'

/** A file as a form brings it, with the fields that came beside it. */
export type Upload = {
  readonly name: string
  /** What the client says it is. */
  readonly type: string | undefined
  readonly bytes: Uint8Array
  readonly fields: ReadonlyMap<string, string>
}

type Part = { readonly headers: string; readonly body: Buffer }

/** What a form may have. */
const most = { parts: 16, head: 8192, field: 65_536, name: 255 }
const crlf = Buffer.from('\r\n')
const blank = Buffer.from('\r\n\r\n')

/** The boundary that a `content-type` names; `undefined` for other types. */
export function boundaryIn(contentType: string): string | undefined {
  const [, quoted, plain] =
    /^multipart\/form-data *;(?:[^"]*;)? *boundary=(?:"([\w'()+,\-./:=? ]{1,70})"|([\w'()+\-.]{1,70})) *(?:;|$)/i.exec(
      contentType,
    ) ?? []
  return quoted ?? plain
}

/** The one file in a form (RFC 7578). Its bytes are not copied. */
export function fileIn(bytes: Buffer, boundary: string): Upload {
  const fields = new Map<string, string>()
  let file: Omit<Upload, 'fields'> | undefined
  for (const { headers, body } of partsOf(bytes, boundary)) {
    const parameters = parametersOf(headers)
    const [name, fileName] = [parameters.get('name'), parameters.get('filename')]
    if (name === undefined) throw wrong('a part of it has no name')
    if (fileName === undefined) fields.set(name, fieldOf(name, body))
    else if (file !== undefined) throw wrong('it holds more than one file')
    else
      file = {
        name: baseName(fileName),
        type: /^content-type: *([^\r\n]{1,200}?) *$/im.exec(headers)?.[1],
        bytes: body,
      }
  }
  if (file === undefined) throw wrong('it holds no file')
  return { ...file, fields }
}

function partsOf(bytes: Buffer, boundary: string): readonly Part[] {
  const delimiter = Buffer.from(`\r\n--${boundary}`)
  const parts: Part[] = []
  // The first boundary may stand at the very beginning, where no line ends before it.
  const opening = delimiter.subarray(crlf.length)
  let at = bytes.subarray(0, opening.length).equals(opening) ? opening.length : endOf(bytes, delimiter, 0)
  while (!isClosing(bytes, at)) {
    if (parts.length === most.parts) throw wrong(`it has more than ${most.parts} parts`)
    const start = endOf(bytes, crlf, at)
    const end = endOf(bytes, delimiter, start - crlf.length)
    parts.push(partOf(bytes.subarray(start, Math.max(start, end - delimiter.length))))
    at = end
  }
  return parts
}

function partOf(bytes: Buffer): Part {
  const end = bytes.subarray(0, most.head).indexOf(blank)
  if (end < 0) throw wrong('a part of it has no end of its headers')
  return { headers: bytes.toString('utf8', 0, end), body: bytes.subarray(end + blank.length) }
}

const isClosing = (bytes: Buffer, at: number): boolean => bytes[at] === 0x2d && bytes[at + 1] === 0x2d

/** Where what is looked for ends. */
function endOf(bytes: Buffer, wanted: Buffer, from: number): number {
  const at = bytes.indexOf(wanted, from)
  if (at < 0) throw wrong('it is cut short')
  return at + wanted.length
}

/** What a part is called, as browsers write it (`%22` for a quote) or as others do (a backslash before it, or RFC 5987). */
function parametersOf(headers: string): ReadonlyMap<string, string> {
  const disposition = /^content-disposition: *form-data *(;.*)$/im.exec(headers)?.[1] ?? ''
  const found = new Map<string, string>()
  for (const [, name = '', quoted, plain = ''] of disposition.matchAll(
    /; *([\w*-]+)=(?:"((?:[^"\\]|\\.)*)"|([^";\s]*)) */gy,
  ))
    found.set(name.toLowerCase(), quoted?.replace(/\\(["\\])/g, '$1').replace(/%22/g, '"') ?? plain)
  const encoded = /^utf-8'[\w-]*'(.+)$/i.exec(found.get('filename*') ?? '')?.[1]
  return encoded === undefined ? found : found.set('filename', decoded(encoded))
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw wrong('the name of its file is not encoded properly')
  }
}

function fieldOf(name: string, body: Buffer): string {
  if (body.length > most.field)
    throw wrong(`its field ${JSON.stringify(name.slice(0, 40))} is longer than ${most.field} bytes`)
  return body.toString('utf8')
}

/** Folders on the client's machine are none of ours, and a name is for reading. */
function baseName(path: string): string {
  const name = (path.split(/[/\\]/).at(-1) ?? '').replace(/\p{C}/gu, '').trim()
  if (name === '' || name === '.' || name === '..') throw wrong('its file has no name')
  if (name.length > most.name) throw wrong(`the name of its file is longer than ${most.name} characters`)
  return name
}

const wrong = (why: string): Refusal =>
  new Refusal(400, 'invalid_upload', `The upload cannot be read: ${why}. Send one file as multipart/form-data.`, 'file')
