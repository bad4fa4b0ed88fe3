import { MemoryError } from '../domain/error.ts'
import type { Kind, Upload } from './kind.ts'
import type { FileLimits } from './limits.ts'
import { type Piece, piecesOf } from './pieces.ts'
import { read } from './read.ts'

/** What the process is asked: to read a file, to go on with it, or to let go of it. */
export type Asked =
  | { readonly read: Kind; readonly file: Upload; readonly limits: FileLimits }
  | { readonly next: true }
  | { readonly drop: true }

/** A portion of a file's pieces; the last one is told for it. `characters` is how long the whole text is. */
export type Portion = { readonly characters: number; readonly pieces: readonly Piece[]; readonly isLast: boolean }
export type Answer = Portion | { readonly failed: string }

/** So much at once: whoever gets it should not have to stop for it. */
const portionCharacters = 32_768

let pieces: Iterator<Piece> = [][Symbol.iterator]()
let characters = 0

/**
 * A process that reads files, so that one that takes long, or all the memory it can get, holds up nobody else. A thread would
 * not do: where a single list outgrows its heap, the process around it ends as well.
 */
process.on('message', async (asked: Asked) => {
  if ('drop' in asked) pieces = [][Symbol.iterator]()
  else process.send?.(await answer(asked))
})

// Whoever asked is gone, however it ended.
process.on('disconnect', () => process.exit())

async function answer(asked: Exclude<Asked, { drop: true }>): Promise<Answer> {
  try {
    if ('read' in asked) {
      bound(asked.limits.unpackedBytes)
      const document = await read(asked.read, asked.file, asked.limits)
      characters = document.text.length
      pieces = piecesOf(document)
    }
    return portion()
  } catch (error) {
    if (error instanceof MemoryError) return { failed: error.message }
    throw error
  }
}

function portion(): Portion {
  const taken: Piece[] = []
  for (let length = 0; length < portionCharacters; ) {
    const { value, done } = pieces.next()
    if (done === true) return { characters, pieces: taken, isLast: true }
    taken.push(value)
    length += value.text.length
  }
  return { characters, pieces: taken, isLast: false }
}

let most = Number.POSITIVE_INFINITY

/**
 * Bytes lie outside the heap and its limit: a few kilobytes may unfold to gigabytes in a PDF. So nobody gets more of them at
 * once than this, and the one decoder that does not ask here is taken away; there is another that does.
 */
function bound(bytes: number): void {
  const isFirst = most === Number.POSITIVE_INFINITY
  most = bytes
  if (!isFirst) return
  Reflect.deleteProperty(globalThis, 'DecompressionStream')
  globalThis.Uint8Array = new Proxy(Uint8Array, {
    construct(target, given: readonly unknown[], made) {
      if (typeof given[0] === 'number' && given[0] > most) throw new RangeError('more bytes than may be unfolded')
      return Reflect.construct(target, given, made) as Uint8Array
    },
  })
}
