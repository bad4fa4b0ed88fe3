/** Vocabulary of the teacher: pieces with their log probability; the position is the id. */
export type PieceVocabulary = readonly (readonly [piece: string, score: number])[]

/** Ids below this one are reserved for control symbols. */
const firstPieceId = 6
const unknownId = 0
/** SentencePiece writes spaces as this character. */
const spaceMark = '\u2581'

/**
 * Creates the tokenizer of the teacher: the most probable sequence of pieces (a unigram model), with a run of unknown
 * characters as one piece.
 */
export function createPieceEncoder(vocabulary: PieceVocabulary): (text: string) => number[] {
  const ids = new Map<string, number>()
  let maxPieceLength = 0
  vocabulary.forEach(([piece], id) => {
    if (id < firstPieceId) return
    ids.set(piece, id)
    maxPieceLength = Math.max(maxPieceLength, [...piece].length)
  })
  const scoreOf = (id: number): number => (vocabulary[id] as PieceVocabulary[number])[1]

  return (text) => {
    const normalized = text.normalize('NFKC')
    if (normalized === '') return []
    const characters = [...(spaceMark + normalized.replaceAll(' ', spaceMark))]
    const count = characters.length
    // Position `end` of these arrays describes the best piece that ends there. A score of 0 means "none yet", also for
    // unknown characters: the tokenizer published with the teacher does the same, and its ids must be matched.
    const scores = new Float64Array(count + 1)
    const pieceIds = new Uint16Array(count + 1)
    const starts = Int32Array.from({ length: count + 1 }, (_, end) => end - 1)
    const offer = (start: number, end: number, id: number, score: number): void => {
      const total = score + (scores[start] as number)
      if (scores[end] !== 0 && total < (scores[end] as number)) return
      scores[end] = total
      pieceIds[end] = id
      starts[end] = start
    }
    for (let start = 0; start < count; start++) {
      let piece = ''
      let isKnown = false
      for (let end = start + 1; end <= Math.min(count, start + maxPieceLength); end++) {
        piece += characters[end - 1]
        const id = ids.get(piece)
        if (id === undefined) continue
        isKnown = true
        offer(start, end, id, scoreOf(id))
      }
      if (!isKnown) offer(start, start + 1, unknownId, 0)
    }
    return readBack(pieceIds, starts)
  }
}

/** Follows the best pieces from the end of the text to its start. */
function readBack(pieceIds: Uint16Array, starts: Int32Array): number[] {
  const pieces: number[] = []
  for (let end = pieceIds.length - 1; end > 0; end = starts[end] as number) {
    const id = pieceIds[end] as number
    if (id !== unknownId || pieces.at(-1) !== unknownId) pieces.push(id)
  }
  return pieces.reverse()
}
