import busboy from 'busboy'
import { describeUnknownName } from '../../domain/checkOptions.ts'
import { shortenText } from '../../domain/error.ts'
import { HttpError } from './httpError.ts'

/** The file of a form. */
export type Upload = {
  readonly name: string
  /** Media type given by the client. */
  readonly type: string | undefined
  readonly bytes: Uint8Array
}

/** Name of the only field. */
const fileField = 'file'
const maxParts = 16
const maxNameLength = 255

/** True for the content type of a form with a valid boundary. */
export const isMultipart = (contentType: string): boolean =>
  /^multipart\/form-data\s*;/i.test(contentType) &&
  /;\s*boundary=(?:"[^"]{1,70}"|[^\s;"]{1,70})\s*(?:;|$)/i.test(contentType)

/** Parses a form with one field, the file (RFC 7578). Throws 400 for anything else. */
export function parseMultipart(body: Buffer, contentType: string): Promise<Upload> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let file: Pick<Upload, 'name' | 'type'> | undefined
    let hasText = false
    const fail = (reason: string): void => reject(invalidUpload(reason))
    const parser = busboy({
      headers: { 'content-type': contentType },
      preservePath: true,
      defParamCharset: 'utf8',
      limits: { parts: maxParts },
    })
    parser
      .on('field', (field) => {
        if (field !== fileField) reject(unknownField(field))
        hasText = true
      })
      .on('file', (field, stream, { filename, mimeType }) => {
        stream.on('data', (chunk: Buffer) => chunks.push(chunk)).on('error', () => undefined)
        if (field !== fileField) return reject(unknownField(field))
        if (file !== undefined) return fail('it contains more than one file')
        const name = baseName(filename)
        const fault = nameFault(name)
        if (fault !== undefined) return fail(fault)
        file = { name, type: mimeType }
      })
      .on('partsLimit', () => fail(`it has more than ${maxParts} parts`))
      .on('error', (error: Error) => fail(error.message.toLowerCase()))
      .on('close', () => {
        if (file === undefined) return fail('it contains no file')
        if (hasText) return fail('it contains the field "file" as a text too')
        resolve({ ...file, bytes: Buffer.concat(chunks) })
      })
    parser.end(body)
  })
}

/** Last segment of a path on the client's machine, without control characters. Browsers write `%22` for a quote. */
const baseName = (path: string): string =>
  (path.split(/[/\\]/).at(-1) ?? '').replaceAll('%22', '"').replace(/\p{C}/gu, '').trim()

function nameFault(name: string): string | undefined {
  if (name === '' || name === '.' || name === '..') return 'its file has no name'
  if (name.includes('\uFFFD')) return 'the name of its file is not valid UTF-8'
  return name.length > maxNameLength ? `the name of its file is longer than ${maxNameLength} characters` : undefined
}

/** The parser has no name for a part without one. */
const unknownField = (name: string | undefined = ''): HttpError =>
  new HttpError(400, 'unknown_field', `Unknown field ${describeUnknownName(name, [fileField])}`, shortenText(name, 40))

const invalidUpload = (reason: string): HttpError =>
  new HttpError(
    400,
    'invalid_upload',
    `The upload cannot be read: ${reason}. Send one file as multipart/form-data.`,
    'file',
  )
