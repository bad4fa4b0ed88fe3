import { Files, type FilesParts } from '../../src/files/files.ts'
import { secretBarrier } from '../../src/memory/secretMasker.ts'
import { chars4 } from '../../src/text/estimators.ts'

/** Files with a simple tokenizer, no secrets kept, a time that stands still, and ids that count up. */
export function filesOn(store: FilesParts['store'], parts: Partial<FilesParts> = {}): Files {
  let number = 0
  const randomBytes = (length: number): Uint8Array => Buffer.alloc(length, ++number)
  return new Files({
    store,
    tokenizer: chars4,
    barrier: secretBarrier('mask', chars4),
    clock: () => 1_000,
    randomBytes,
    ...parts,
  })
}

/** A text so long that it comes in several portions, each sentence of it unlike the others. */
export const longText = (many = 1_000): string =>
  Array.from(
    { length: many },
    (_, at) => `Paragraph ${at} tells that warehouse w${at}x has ${at * 7} boxes of tea.\n\n`,
  ).join('')
