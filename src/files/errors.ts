import { MemoryError } from '../domain/error.ts'

/** Creates the error for a file that cannot be read; `problem` completes "The file …" and names the remedy. */
export const unreadableFileError = (problem: string, cause?: unknown): MemoryError =>
  new MemoryError('bad-message', `The file ${problem}.`, { param: 'file', ...(cause === undefined ? {} : { cause }) })
