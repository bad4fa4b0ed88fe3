import { MemoryError } from '../domain/error.ts'
import type { FileKind, Upload } from './kind.ts'
import type { FileLimits } from './limits.ts'
import { parseFile } from './parseFile.ts'
import { splitDocument, type TextSegment } from './segments.ts'

/** Messages to the reader process: parse a file, send the next batch, discard the current file. */
export type ReaderRequest =
  | { readonly type: 'read'; readonly kind: FileKind; readonly upload: Upload; readonly limits: FileLimits }
  | { readonly type: 'next' }
  | { readonly type: 'discard' }

/** A batch of a file's segments; `characters` is the length of the whole text, `hasFields` as in `ParsedDocument`. */
export type SegmentBatch = {
  readonly characters: number
  readonly hasFields: boolean
  readonly segments: readonly TextSegment[]
  readonly isLast: boolean
}
export type ReaderResponse = SegmentBatch | { readonly error: string }

/** Size of a batch; small, so that receiving one does not block the main process. */
const batchChars = 32_768

const noSegments = (): Iterator<TextSegment> => [][Symbol.iterator]()
let segments = noSegments()
let characters = 0
let hasFields = false

/**
 * Parses files in a child process, so that a file that takes too long or too much memory affects nothing else. A worker
 * thread is not enough: when one array outgrows its heap, the whole process ends.
 */
process.on('message', async (request: ReaderRequest) => {
  if (request.type === 'discard') segments = noSegments()
  else process.send?.(await handleRequest(request))
})

process.on('disconnect', () => process.exit())

async function handleRequest(request: Exclude<ReaderRequest, { type: 'discard' }>): Promise<ReaderResponse> {
  try {
    if (request.type === 'read') {
      limitByteArrays(request.limits.maxUnpackedBytes)
      const document = await parseFile(request.kind, request.upload, request.limits)
      characters = document.text.length
      hasFields = document.hasFields
      segments = splitDocument(document)
    }
    return nextBatch()
  } catch (error) {
    if (error instanceof MemoryError) return { error: error.message }
    throw error
  }
}

function nextBatch(): SegmentBatch {
  const batch: TextSegment[] = []
  for (let length = 0; length < batchChars; ) {
    const { value, done } = segments.next()
    if (done === true) return { characters, hasFields, segments: batch, isLast: true }
    batch.push(value)
    length += value.text.length
  }
  return { characters, hasFields, segments: batch, isLast: false }
}

let maxArrayBytes = Number.POSITIVE_INFINITY

/**
 * Limits the size of byte arrays. They are allocated outside the heap, so the heap limit does not cover them, and a few
 * kilobytes of a PDF may decompress to gigabytes. `DecompressionStream` is removed because it bypasses the check; the
 * PDF library then falls back to a decoder that does not.
 */
function limitByteArrays(maxBytes: number): void {
  const isInstalled = maxArrayBytes !== Number.POSITIVE_INFINITY
  maxArrayBytes = maxBytes
  if (isInstalled) return
  Reflect.deleteProperty(globalThis, 'DecompressionStream')
  globalThis.Uint8Array = new Proxy(Uint8Array, {
    construct(target, args: readonly unknown[], newTarget) {
      if (typeof args[0] === 'number' && args[0] > maxArrayBytes)
        throw new RangeError('The array exceeds the limit of decompressed bytes.')
      return Reflect.construct(target, args, newTarget) as Uint8Array
    },
  })
}
