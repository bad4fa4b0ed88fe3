import type { MemoryError } from '../../src/domain/error.ts'
import type { Model, ModelRequest } from '../../src/domain/ports.ts'

export const helloRequest: ModelRequest = { messages: [{ role: 'user', content: 'Hello there' }] }

/** Collects all pieces of a reply. */
export async function collectReply(
  model: Model,
  request: ModelRequest = helloRequest,
  signal?: AbortSignal,
): Promise<string[]> {
  const pieces: string[] = []
  for await (const piece of model.reply(request, signal)) pieces.push(piece)
  return pieces
}

/** Collects the error of a reply that must fail, with the pieces before it. */
export async function collectFailure(
  model: Model,
  request: ModelRequest = helloRequest,
  signal?: AbortSignal,
): Promise<{ pieces: string[]; error: MemoryError }> {
  const pieces: string[] = []
  try {
    for await (const piece of model.reply(request, signal)) pieces.push(piece)
  } catch (error) {
    return { pieces, error: error as MemoryError }
  }
  throw new Error(`The reply did not fail but was ${JSON.stringify(pieces)}.`)
}

/** Formats an error with all its causes, as a log would show it. */
export function formatErrorChain(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return `${error.stack} ${JSON.stringify(error)} ${error.cause === undefined ? '' : formatErrorChain(error.cause)}`
}
