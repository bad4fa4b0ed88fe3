import { parentPort, workerData } from 'node:worker_threads'
import { MemoryError } from '../domain/error.ts'
import type { Kind, Upload } from './kind.ts'
import type { FileLimits } from './limits.ts'
import { type Piece, piecesOf } from './pieces.ts'
import { read } from './read.ts'

/** What the thread is asked: to read a file, to go on with it, or to let go of it. */
export type Asked = { readonly read: Kind; readonly file: Upload } | { readonly next: true } | { readonly drop: true }

/** A portion of a file's pieces; the last one is told for it. `characters` is how long the whole text is. */
export type Portion = { readonly characters: number; readonly pieces: readonly Piece[]; readonly isLast: boolean }
export type Answer = Portion | { readonly failed: string }

/** So much at once: whoever gets it should not have to stop for it. */
const portionCharacters = 32_768

const { limits } = workerData as { limits: FileLimits }
let pieces: Iterator<Piece> = [][Symbol.iterator]()
let characters = 0

bound(limits.unpackedBytes)

/** A thread that reads files, so that one that takes long, or all the memory it can get, holds up nobody else. */
parentPort?.on('message', async (asked: Asked) => {
  if ('drop' in asked) pieces = [][Symbol.iterator]()
  else parentPort?.postMessage(await answer(asked))
})

async function answer(asked: Exclude<Asked, { drop: true }>): Promise<Answer> {
  try {
    if ('read' in asked) {
      const document = await read(asked.read, asked.file, limits)
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

/**
 * Bytes lie outside the heap, where no limit of a thread reaches: a few kilobytes may unfold to gigabytes in a PDF. So nobody
 * gets more of them at once than this, and the one decoder that does not ask here is taken away; there is another that does.
 */
function bound(most: number): void {
  Reflect.deleteProperty(globalThis, 'DecompressionStream')
  globalThis.Uint8Array = new Proxy(Uint8Array, {
    construct(target, given: readonly unknown[], made) {
      if (typeof given[0] === 'number' && given[0] > most) throw new RangeError('more bytes than may be unfolded')
      return Reflect.construct(target, given, made) as Uint8Array
    },
  })
}
