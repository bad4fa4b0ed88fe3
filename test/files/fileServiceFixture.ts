import { Files, type FilesParts } from '../../src/files/files.ts'
import { secretBarrier } from '../../src/memory/secretMasker.ts'
import { chars4 } from '../../src/text/estimators.ts'

/** Creates a file service with an approximate tokenizer, masked secrets, a fixed clock and ids that count up. */
export function createFiles(store: FilesParts['store'], deps: Partial<FilesParts> = {}): Files {
  let number = 0
  const randomBytes = (length: number): Uint8Array => Buffer.alloc(length, ++number)
  return new Files({
    store,
    tokenizer: chars4,
    barrier: secretBarrier('mask', chars4),
    clock: () => 1_000,
    randomBytes,
    ...deps,
  })
}

/** Creates a text of several batches in which every sentence is different. */
export const longText = (paragraphs = 1_000): string =>
  Array.from(
    { length: paragraphs },
    (_, index) => `Paragraph ${index} tells that warehouse w${index}x has ${index * 7} boxes of tea.\n\n`,
  ).join('')
