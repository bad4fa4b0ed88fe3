import { FileService, type FileServiceDeps } from '../../src/files/files.ts'
import { createSecretMasker } from '../../src/memory/secretMasker.ts'
import { chars4 } from '../../src/text/estimators.ts'

/** Creates a file service with an approximate tokenizer, masked secrets, a fixed clock and ids that count up. */
export function createFiles(store: FileServiceDeps['store'], deps: Partial<FileServiceDeps> = {}): FileService {
  let number = 0
  const randomBytes = (length: number): Uint8Array => Buffer.alloc(length, ++number)
  return new FileService({
    store,
    tokenizer: chars4,
    masker: createSecretMasker('mask', chars4),
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
