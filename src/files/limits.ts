import { MemoryError } from '../domain/error.ts'

/** Limits of file ingestion; exceeding one fails with an error that names it. */
export type FileLimits = {
  /** Size of an upload. Default: 20 MB. */
  readonly maxFileBytes: number
  /** Total size of the compressed parts of a file after decompression. Default: 100 MB. */
  readonly maxUnpackedBytes: number
  /** Length of the extracted text. Default: 5,000,000. */
  readonly maxCharacters: number
  /** Pages of a PDF. Default: 5,000. */
  readonly maxPages: number
  /** Time for parsing a file, until its first and between two batches of text. Default: 60,000. */
  readonly parseTimeoutMs: number
  /** Heap of the parser process. Default: 256. */
  readonly maxHeapMegabytes: number
  /** Files per tenant. Default: 2,000. */
  readonly maxFiles: number
  /** Files of all tenants that are being indexed or waiting for it. Default: 16. */
  readonly maxQueued: number
}

export const defaultFileLimits: FileLimits = {
  maxFileBytes: 20_000_000,
  maxUnpackedBytes: 100_000_000,
  maxCharacters: 5_000_000,
  maxPages: 5_000,
  parseTimeoutMs: 60_000,
  maxHeapMegabytes: 256,
  maxFiles: 2_000,
  maxQueued: 16,
}

/** Creates the error for a file that cannot be read; `problem` completes "The file …" and names the remedy. */
export const unreadableFileError = (problem: string, cause?: unknown): MemoryError =>
  new MemoryError('bad-message', `The file ${problem}.`, { param: 'file', ...(cause === undefined ? {} : { cause }) })

/** Collects extracted text and throws as soon as it exceeds the limit. */
export class TextBuffer {
  private readonly maxCharacters: number
  private readonly parts: string[] = []
  private size = 0

  constructor(maxCharacters: number) {
    this.maxCharacters = maxCharacters
  }

  get length(): number {
    return this.size
  }

  get text(): string {
    return this.parts.join('')
  }

  write(text: string): void {
    this.size += text.length
    if (this.size > this.maxCharacters)
      throw unreadableFileError(
        `holds more than ${this.maxCharacters.toLocaleString('en')} characters of text. Split it into smaller files`,
      )
    this.parts.push(text)
  }
}
