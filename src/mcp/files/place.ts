import { lstat, realpath } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join, parse, resolve, sep } from 'node:path'
import { most, type Reason } from './refusal.ts'

/** Where a path leads once all links are followed; `rest` are the names at its end that are not there yet. */
export type Place = { readonly real: string; readonly rest: readonly string[] }

/** Whether a path, without links in it, is a folder or lies inside it: `/app-evil` is not in `/app`. */
export const isWithin = (folder: string, path: string): boolean =>
  path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep)

/** What is wrong with the text of a path, before anybody looks where it leads. */
export function faultOf(path: string): Reason | undefined {
  const names = path.split(/[/\\]/)
  if (path === '' || path.includes('\0') || !path.isWellFormed() || Buffer.byteLength(path) > most.path) return 'name'
  if (names.some((name) => Buffer.byteLength(name) > most.name)) return 'name'
  // On Windows a colon names a stream or a drive that is not the one it seems to be.
  const inner = path.slice(parse(path).root.length)
  return process.platform === 'win32' && (inner.includes(':') || path.startsWith('\\\\')) ? 'name' : undefined
}

/** The paths a text may mean: itself, or where it is relative, the one of that name in each folder. */
export const meanings = (path: string, folders: readonly string[]): string[] =>
  isAbsolute(path) ? [resolve(path)] : folders.map((folder) => resolve(folder, path))

/**
 * Follows all links of a path. Of one that is not there yet, the deepest folder that is there is followed; a link that
 * leads nowhere has no place, because nobody can say where it leads next.
 */
export async function placeOf(path: string): Promise<Place | undefined> {
  const rest: string[] = []
  for (let at = path; ; at = dirname(at)) {
    const real = await realpath(at).catch(codeOf)
    if (typeof real === 'string') return { real, rest }
    if (real.code !== 'ENOENT' && real.code !== 'ENOTDIR') return undefined
    if (real.code === 'ENOENT' && (await lstat(at).catch(() => undefined)) !== undefined) return undefined
    if (at === dirname(at)) return undefined
    rest.unshift(basename(at))
  }
}

/** The path a place stands for. */
export const pathOf = ({ real, rest }: Place): string => join(real, ...rest)

const codeOf = (error: NodeJS.ErrnoException): { readonly code: string } => ({ code: error.code ?? '' })
