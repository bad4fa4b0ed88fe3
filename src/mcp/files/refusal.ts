import { MemoryError } from '../../domain/error.ts'
import { clip } from '../../text/clip.ts'
import { plain } from './plain.ts'

/** A file that is read or written is no larger, in bytes, and a folder is not listed further, in names. */
export const most = { bytes: 4 * 1024 * 1024, names: 1_000, path: 4_096, name: 255 }

/** Why something is not done with a file, as clients are told; whether a path outside exists, and where a link leads, is none of their business. */
const reasons = {
  name: 'is not a path: it must be text without NUL, at most 4,096 bytes long with names of at most 255.',
  outside: 'is not in a folder you may use. list_directory without a path tells which those are.',
  off: 'may not be written: writing is off. Whoever runs the server can allow it.',
  kept: 'belongs to the server itself and is not for clients.',
  missing: 'does not exist.',
  homeless: 'is in a folder that does not exist. Make that with create_directory first.',
  denied: 'may not be opened by the server: look at its permissions.',
  device: 'is neither a file nor a folder.',
  folder: 'is a folder, not a file.',
  file: 'is a file, not a folder.',
  large: `is larger than ${most.bytes} bytes.`,
  binary: 'is not text in UTF-8.',
  moved: 'was changed while it was being opened, so nothing was done. Try again.',
  failed: 'cannot be read or written: the disk reports a fault.',
} as const
export type Reason = keyof typeof reasons

/** What the rules forbid, as opposed to what does not work. */
const forbidden: ReadonlySet<Reason> = new Set<Reason>(['name', 'outside', 'off', 'kept', 'device', 'large', 'moved'])

const known = new WeakMap<MemoryError, Reason>()

/** The error for a path with which something is not done. */
export function refusal(reason: Reason, path: string, cause?: unknown): MemoryError {
  const error = new MemoryError('bad-option', `${plain(JSON.stringify(clip(path, 200, '…')))} ${reasons[reason]}`, {
    param: 'path',
    cause,
  })
  known.set(error, reason)
  return error
}

/** Why nothing was done. */
export const reasonOf = (error: unknown): Reason =>
  error instanceof MemoryError ? (known.get(error) ?? 'failed') : 'failed'

/** Whether rules were the reason. */
export const isForbidden = (reason: Reason): boolean => forbidden.has(reason)

const byCode: Readonly<Record<string, Reason>> = {
  ENOENT: 'missing',
  ENOTDIR: 'missing',
  ELOOP: 'moved',
  EACCES: 'denied',
  EPERM: 'denied',
  EROFS: 'denied',
  ENAMETOOLONG: 'name',
  EISDIR: 'folder',
  ENXIO: 'device',
}

/** What the operating system says, as a client is told it: without the paths in it. */
export function told(error: unknown, path: string): MemoryError {
  if (error instanceof MemoryError) return error
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  return refusal(byCode[code] ?? 'failed', path, error)
}
