import { randomBytes } from 'node:crypto'

/** Creates a unique text with a letter whose bytes differ between encodings. */
export const newCanary = (): string => `kanárek-${randomBytes(12).toString('hex')}`

/** Encodings in which a text may be stored in a file, by name. */
export function encodingsOf(text: string): Readonly<Record<string, Buffer>> {
  const escaped = Array.from(
    { length: text.length },
    (_, at) => `\\u${text.charCodeAt(at).toString(16).padStart(4, '0')}`,
  ).join('')
  return {
    plain: Buffer.from(text),
    'UTF-16': Buffer.from(text, 'utf16le'),
    'escaped in JSON': Buffer.from(escaped),
    'escaped in JSON but for ASCII': Buffer.from(text.replaceAll('á', '\\u00e1')),
    ...Object.fromEntries(
      [0, 1, 2].map((offset) => [`base64 after ${offset} bytes`, Buffer.from(base64At(offset, text))]),
    ),
  }
}

/** Base64 digits of a text at a byte offset that do not depend on the surrounding bytes. */
function base64At(offset: number, text: string): string {
  const bytes = Buffer.concat([Buffer.alloc(offset), Buffer.from(text)])
  return bytes.toString('base64').slice(Math.ceil((offset * 8) / 6), Math.floor((bytes.length * 8) / 6))
}

/** Names the encodings in which any of the texts occurs in the data. */
export const findEncodings = (data: Buffer, texts: readonly string[]): readonly string[] =>
  texts.flatMap((text) =>
    Object.entries(encodingsOf(text)).flatMap(([encoding, bytes]) => (data.includes(bytes) ? [encoding] : [])),
  )
