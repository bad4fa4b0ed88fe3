import { MemoryError } from '../domain/error.ts'

/** For a file that cannot be read: what is wrong with it, and what to do. */
export const unreadable = (fault: string, cause?: unknown): MemoryError =>
  new MemoryError('bad-message', `The file ${fault}.`, { param: 'file', ...(cause === undefined ? {} : { cause }) })
