import type { Part } from '../../domain/chat.ts'
import { textPart } from './chat.ts'
import type { FilePart } from './dialect.ts'
import { dataIn, fileOf, placeholder } from './media.ts'

/** A file as requests carry it: its bytes as a `data:` URL or plain base64, or nothing but where it is. */
type Carried = { readonly name: string; readonly data: string; readonly where: string }

/** What stands in the transcript for a file, which is put with the others that were found. */
export function filePart({ name, data, where }: Carried, files: FilePart[]): Part {
  const file = fileOf(name, data === '' ? undefined : (dataIn(data) ?? { type: '', bytes: Buffer.from(data, 'base64') }))
  files.push(file)
  return textPart(placeholder(`file ${file.name}`, file.bytes, where))
}
