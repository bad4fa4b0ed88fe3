import { readFile } from 'node:fs/promises'
import { type LoadWordTable, WordTable } from '../search/wordTable.ts'

const file = new URL('../../data/word-table.bin', import.meta.url)
let loaded: Promise<WordTable> | undefined

/** Loads the word table of this package on first use. */
export const loadWordTable: LoadWordTable = () => {
  loaded ??= readFile(file).then((bytes) => new WordTable(bytes))
  return loaded
}
