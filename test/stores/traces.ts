import { existsSync, readFileSync } from 'node:fs'
import { findEncodings } from '../fault/canary.ts'

/** Finds a text, as it is or in lower case, in files; returns file names with the encoding. */
export const findTraces = (text: string, files: readonly string[]): string[] =>
  files
    .filter((file) => existsSync(file))
    .flatMap((file) =>
      findEncodings(readFileSync(file), [...new Set([text, text.toLowerCase()])]).map(
        (encoding) => `${file.replace(/^.*\//, '')}: ${encoding}`,
      ),
    )

/** A database with its log, shared-memory and journal files. */
export const databaseFiles = (file: string): readonly string[] =>
  ['', '-wal', '-shm', '-journal'].map((suffix) => file + suffix)
