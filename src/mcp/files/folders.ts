import type { Dirent, Stats } from 'node:fs'
import { lstat, mkdir, readdir } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { Millis } from '../../domain/entry.ts'
import { anchored } from './anchor.ts'
import { pathOf, placeOf } from './place.ts'
import { most, refusal } from './refusal.ts'

export type Kind = 'file' | 'directory' | 'link' | 'other'
export type Named = { readonly name: string; readonly kind: Kind }
export type State = { readonly kind: Kind; readonly size: number; readonly modified: Millis }

/** The names in a folder by its real path, in order, and how many there are. */
export async function namesIn(real: string): Promise<{ readonly entries: readonly Named[]; readonly total: number }> {
  await using folder = await anchored(real)
  const found = await readdir(folder.inside('.'), { withFileTypes: true })
  await folder.confirm()
  const entries = found
    .map((entry) => ({ name: entry.name, kind: kindOf(entry) }))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
  return { entries: entries.slice(0, most.names), total: entries.length }
}

/** What stands at a real path. */
export async function stateOf(real: string): Promise<State> {
  await using folder = await anchored(dirname(real))
  const state = await lstat(folder.inside(basename(real)))
  await folder.confirm()
  return { kind: kindOf(state), size: state.size, modified: Math.floor(state.mtimeMs) }
}

/** Makes a folder by its real path, with those above it that are not there; whether there was anything to make. */
export async function makeFolder(real: string): Promise<boolean> {
  const place = await placeOf(real)
  if (place === undefined || pathOf(place) !== real) throw refusal('moved', real)
  let at = place.real
  for (const name of place.rest) {
    await using folder = await anchored(at)
    await mkdir(folder.inside(name)).catch((error: NodeJS.ErrnoException) => {
      // Made by somebody else meanwhile: if it is a link, it cannot be held on to next.
      if (error.code !== 'EEXIST') throw error
    })
    await folder.sync()
    at = join(at, name)
  }
  await using _folder = await anchored(at)
  return place.rest.length > 0
}

function kindOf(entry: Dirent | Stats): Kind {
  if (entry.isSymbolicLink()) return 'link'
  if (entry.isDirectory()) return 'directory'
  return entry.isFile() ? 'file' : 'other'
}
