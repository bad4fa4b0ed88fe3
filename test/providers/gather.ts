import type { MemoryError } from '../../src/domain/error.ts'
import type { Ask, Model } from '../../src/domain/ports.ts'

export const hello: Ask = { messages: [{ role: 'user', content: 'Hello there' }] }

/** All pieces of a reply. */
export async function piecesOf(model: Model, ask: Ask = hello, signal?: AbortSignal): Promise<string[]> {
  const pieces: string[] = []
  for await (const piece of model.reply(ask, signal)) pieces.push(piece)
  return pieces
}

/** How a reply failed, with the pieces that came before. */
export async function failureOf(
  model: Model,
  ask: Ask = hello,
  signal?: AbortSignal,
): Promise<{ pieces: string[]; error: MemoryError }> {
  const pieces: string[] = []
  try {
    for await (const piece of model.reply(ask, signal)) pieces.push(piece)
  } catch (error) {
    return { pieces, error: error as MemoryError }
  }
  throw new Error(`The reply did not fail but said ${JSON.stringify(pieces)}.`)
}

/** The text of an error with all its causes, as a log would show it. */
export function everythingIn(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return `${error.stack} ${JSON.stringify(error)} ${error.cause === undefined ? '' : everythingIn(error.cause)}`
}
