import { readFile } from 'node:fs/promises'
import { MemoryError } from '../domain/error.ts'
import { type Environment, setting } from './settings.ts'

/** The passphrase of a bundle, from a file or the environment: an option could be seen by everybody on the machine. */
export async function passphraseFrom(file: string | undefined, environment: Environment): Promise<string | undefined> {
  if (file === undefined) return setting(undefined, environment, 'THREADKEEP_PASSPHRASE')
  const text = await readFile(file, 'utf8').catch((cause: unknown) => {
    throw new MemoryError(
      'bad-option',
      `The passphrase cannot be read from ${file}. Name a file with one line in it.`,
      { param: 'passphrase-file', cause },
    )
  })
  const passphrase = text.replace(/\r?\n$/, '')
  if (passphrase === '')
    throw new MemoryError('bad-option', `${file} is empty; the passphrase must not be.`, { param: 'passphrase-file' })
  return passphrase
}
