import { readFileSync } from 'node:fs'
import type { WordTable } from '../domain/ports.ts'
import { languages } from '../languages/languages.ts'
import type { TextAnalysis } from '../search/scopeIndex.ts'
import { PackedWordTable } from '../search/wordTable.ts'

const file = new URL('../../data/word-table.bin', import.meta.url)
let loaded: WordTable | undefined

/** Returns the word table of this package. The first call reads it, in some 30 ms. */
export function wordTable(): WordTable {
  loaded ??= new PackedWordTable(readFileSync(file))
  return loaded
}

/** Analysis of text for the stores of Node. */
export const textAnalysis: TextAnalysis = { wordTable, languages }
