import { randomUUID } from 'node:crypto'
import { mkdir, open, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { canonical } from '../../portable/canonical.ts'
import { compressed, contents, metadataFile, type Packed } from './format.ts'
import { textsOf } from './pack.ts'

/** The folder of a session, and the file of a shared reference. */
export const folderOf = (directory: string, workspace: string, session: string): string =>
  join(directory, 'sessions', workspace, session)
export const sharedFile = (directory: string, hash: string): string =>
  join(directory, 'shared', 'file_references', `${hash}.json`)

/** Writes a session into its folder. Its metadata comes last: until then, what is there is what was there before, or is seen to be damaged. */
export async function writeFolder(directory: string, packed: Packed, compress: boolean): Promise<void> {
  const { workspace, session } = packed.metadata
  const folder = folderOf(directory, workspace, session)
  for (const [hash, text] of packed.shared) await write(sharedFile(directory, hash), text, compress)
  for (const [name, text] of Object.entries(textsOf(packed)))
    await write(join(folder, contents[name as keyof typeof contents]), text, compress)
  await write(join(folder, metadataFile), `${canonical(packed.metadata)}\n`, compress)
}

/** The file is there when it is whole, and not before; the same file compressed the other way goes. */
async function write(file: string, text: string, compress: boolean): Promise<void> {
  const [target, other] = compress ? [`${file}.zst`, file] : [file, `${file}.zst`]
  await mkdir(dirname(file), { recursive: true, mode: 0o700 })
  const unfinished = `${target}.${randomUUID()}.unfinished`
  try {
    const handle = await open(unfinished, 'wx', 0o600)
    try {
      await handle.writeFile(compress ? await compressed(text) : text)
      await handle.sync()
    } finally {
      await handle.close()
    }
    await rename(unfinished, target)
  } catch (error) {
    await rm(unfinished, { force: true })
    throw error
  }
  await rm(other, { force: true })
}
