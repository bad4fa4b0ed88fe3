import { lstat, realpath } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join, parse, resolve, sep } from 'node:path'
import { type FileErrorReason, fileLimits } from './fileErrors.ts'

/** Path with all links resolved; `missing` are the trailing names that do not exist yet. */
export type ResolvedPath = { readonly real: string; readonly missing: readonly string[] }

/** True if a path without links is the folder or inside it. `/app-evil` is not inside `/app`. */
export const isWithin = (folder: string, path: string): boolean =>
  path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep)

/** Checks the text of a path without touching the file system. */
export function validatePath(path: string): FileErrorReason | undefined {
  const names = path.split(/[/\\]/)
  if (path === '' || path.includes('\0') || !path.isWellFormed() || Buffer.byteLength(path) > fileLimits.maxPathBytes)
    return 'invalid-path'
  if (names.some((name) => Buffer.byteLength(name) > fileLimits.maxNameBytes)) return 'invalid-path'
  // On Windows a colon selects an alternate data stream or another drive.
  const relative = path.slice(parse(path).root.length)
  return process.platform === 'win32' && (relative.includes(':') || path.startsWith('\\\\'))
    ? 'invalid-path'
    : undefined
}

/** Lists the absolute paths a path may stand for: a relative one is resolved against each folder. */
export const candidatePaths = (path: string, folders: readonly string[]): string[] =>
  isAbsolute(path) ? [resolve(path)] : folders.map((folder) => resolve(folder, path))

/**
 * Resolves all links of a path. If the path does not exist, its deepest existing ancestor is resolved. Returns undefined
 * for a dangling link, because its target can change at any time.
 */
export async function resolvePath(path: string): Promise<ResolvedPath | undefined> {
  const missing: string[] = []
  for (let current = path; ; current = dirname(current)) {
    const real = await realpath(current).catch(errorCode)
    if (typeof real === 'string') return { real, missing }
    if (real.code !== 'ENOENT' && real.code !== 'ENOTDIR') return undefined
    if (real.code === 'ENOENT' && (await lstat(current).catch(() => undefined)) !== undefined) return undefined
    if (current === dirname(current)) return undefined
    missing.unshift(basename(current))
  }
}

/** Joins the resolved part of a path and its missing names. */
export const toFullPath = ({ real, missing }: ResolvedPath): string => join(real, ...missing)

const errorCode = (error: NodeJS.ErrnoException): { readonly code: string } => ({ code: error.code ?? '' })
