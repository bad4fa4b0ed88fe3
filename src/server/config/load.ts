import { foundFile, readConfig, readText } from './file.ts'
import { type Given, givenIn, type Settings, settle } from './settings.ts'

/** What is said outside the file: which file it is, and what counts more than the file does. */
export type Said = { readonly file: string | undefined; readonly sources: readonly Given[] }

/** Settings, and the text of the file they were read from. */
export type Loaded = { readonly settings: Settings; readonly text: string | undefined }

/**
 * Reads the configuration: the file that was named, else the one in the current folder, if there is one, and over it what
 * was said elsewhere.
 *
 * @example
 * const { settings } = await loadSettings({ file: undefined, sources: [flags, environment] })
 */
export async function loadSettings({ file: named, sources }: Said): Promise<Loaded> {
  const file = named ?? foundFile()
  if (file === undefined) return { settings: settle(sources, undefined), text: undefined }
  const text = readText(file)
  return { settings: settle([...sources, givenIn(await readConfig(file, text), 'file')], file), text }
}
