import { existsSync, readFileSync } from 'node:fs'

/** Every way a text may lie in a file: as UTF-8 and UTF-16, in base64 at each of three places, escaped in JSON, in lower case. */
function formsOf(text: string): ReadonlyMap<string, Buffer> {
  const escaped = [...text].map((one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`).join('')
  const forms = new Map<string, Buffer>([
    ['UTF-8', Buffer.from(text)],
    ['lower case', Buffer.from(text.toLowerCase())],
    ['UTF-16', Buffer.from(text, 'utf16le')],
    ['JSON', Buffer.from(escaped)],
  ])
  for (const shift of [0, 1, 2]) {
    const whole = Buffer.from('\0'.repeat(shift) + text).toString('base64')
    // The ends of a run depend on what stands beside it.
    forms.set(`base64 ${shift}`, Buffer.from(whole.slice(shift === 0 ? 0 : 4, -4)))
  }
  return forms
}

/** In which files, and in which form, a text can be found. */
export function tracesOf(text: string, files: readonly string[]): string[] {
  return files
    .filter((file) => existsSync(file))
    .flatMap((file) => [...formsIn(readFileSync(file), text)].map((form) => `${file.replace(/^.*\//, '')}: ${form}`))
}

function* formsIn(bytes: Buffer, text: string): Iterable<string> {
  for (const [form, pattern] of formsOf(text)) if (bytes.includes(pattern)) yield form
}

/** A database with everything that lies beside it. */
export const databaseFiles = (file: string): readonly string[] =>
  ['', '-wal', '-shm', '-journal'].map((end) => file + end)
