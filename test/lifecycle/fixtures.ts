import type { Memory } from '../../src/index.ts'

/** Appends one user message to a session. */
export const appendUser = (memory: Memory, key: string, content = 'Hello') =>
  memory.append(key, [{ role: 'user', content }])
