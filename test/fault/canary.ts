import { randomBytes } from 'node:crypto'

/** A text that is nowhere else in the world, with a letter that differs between encodings. */
export const newCanary = (): string => `kanárek-${randomBytes(12).toString('hex')}`

/** The ways a text may stand in a file, by name. */
export function formsOf(text: string): Readonly<Record<string, Buffer>> {
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
      [0, 1, 2].map((before) => [`base64 after ${before} bytes`, Buffer.from(base64After(before, text))]),
    ),
  }
}

/** The digits of a text in base64 that do not depend on what stands before and after it. */
function base64After(before: number, text: string): string {
  const bytes = Buffer.concat([Buffer.alloc(before), Buffer.from(text)])
  return bytes.toString('base64').slice(Math.ceil((before * 8) / 6), Math.floor((bytes.length * 8) / 6))
}

/** In which forms these texts stand in some data. */
export const foundIn = (data: Buffer, texts: readonly string[]): readonly string[] =>
  texts.flatMap((text) =>
    Object.entries(formsOf(text)).flatMap(([form, bytes]) => (data.includes(bytes) ? [form] : [])),
  )
