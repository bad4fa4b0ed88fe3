import { MemoryError } from '../../domain/error.ts'
import { clip } from '../../text/clip.ts'

export const fileLimits = {
  maxFileBytes: 4 * 1024 * 1024,
  maxListedNames: 1_000,
  maxPathBytes: 4_096,
  maxNameBytes: 255,
}

/**
 * Reasons a file operation is not performed, by the code in the audit log, with the text clients get. The text never
 * says whether a path outside the allowed folders exists, or where a link leads.
 */
const messages = {
  'invalid-path':
    'is not a valid path: use text without NUL, at most 4,096 bytes long, with names of at most 255 bytes.',
  outside: 'is not in an allowed folder. Call list_directory without a path to see the allowed folders.',
  'writing-disabled': 'cannot be written: writing is disabled. The server operator can enable it.',
  protected: 'belongs to the server and is not accessible to clients.',
  missing: 'does not exist.',
  'missing-parent': 'is in a folder that does not exist. Create the folder with create_directory first.',
  denied: 'cannot be opened by the server. Check its permissions.',
  'not-a-file': 'is neither a file nor a folder.',
  folder: 'is a folder, not a file.',
  file: 'is a file, not a folder.',
  'too-large': `is larger than ${fileLimits.maxFileBytes} bytes.`,
  'not-text': 'is not UTF-8 text.',
  moved: 'was changed while it was being opened, so nothing was done. Try again.',
  failed: 'cannot be read or written because of a disk error.',
} as const
export type FileErrorReason = keyof typeof messages

/** Reasons that are policy decisions, as opposed to failures. */
const forbiddenReasons: ReadonlySet<FileErrorReason> = new Set<FileErrorReason>([
  'invalid-path',
  'outside',
  'writing-disabled',
  'protected',
  'not-a-file',
  'too-large',
  'moved',
])

const reasonByError = new WeakMap<MemoryError, FileErrorReason>()

export function fileError(reason: FileErrorReason, path: string, cause?: unknown): MemoryError {
  const shownPath = escapeText(JSON.stringify(clip(path, 200, '…')))
  const error = new MemoryError('bad-option', `${shownPath} ${messages[reason]}`, { param: 'path', cause })
  reasonByError.set(error, reason)
  return error
}

/** Returns the reason of an error made by `fileError`, or `failed` for any other error. */
export const reasonOf = (error: unknown): FileErrorReason =>
  error instanceof MemoryError ? (reasonByError.get(error) ?? 'failed') : 'failed'

export const isForbidden = (reason: FileErrorReason): boolean => forbiddenReasons.has(reason)

const reasonBySystemCode: Readonly<Record<string, FileErrorReason>> = {
  ENOENT: 'missing',
  ENOTDIR: 'missing',
  ELOOP: 'moved',
  EACCES: 'denied',
  EPERM: 'denied',
  EROFS: 'denied',
  ENAMETOOLONG: 'invalid-path',
  EISDIR: 'folder',
  ENXIO: 'not-a-file',
}

/** Converts an operating system error to a `MemoryError` without the paths in its message. */
export function toFileError(error: unknown, path: string): MemoryError {
  if (error instanceof MemoryError) return error
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  return fileError(reasonBySystemCode[code] ?? 'failed', path, error)
}

/**
 * Control, format and separator characters, lone surrogates, and backslashes that would look like an escape of this
 * module.
 */
const unsafeChars = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]|\\(?=u\{)/gu

/**
 * Escapes characters that a terminal or editor would interpret, so that untrusted text stays on one line.
 *
 * @example
 * escapeText('a\nb') // 'a\\u{a}b'
 */
export const escapeText = (text: string): string =>
  text.replaceAll(unsafeChars, (char) => `\\u{${(char.codePointAt(0) ?? 0).toString(16)}}`)

/** Clips a text to a number of characters and escapes it. */
export const escapeClipped = (text: string, maxChars: number): string => escapeText(clip(text, maxChars, '…'))
