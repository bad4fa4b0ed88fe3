import type { Message } from '../domain/entry.ts'
import type { Embedder } from '../domain/ports.ts'
import type { ContextItem } from './item.ts'

/** How much of the newest turns says what the conversation is about now. */
const current = { messages: 6, characters: 4_000 }

/** How near each item is to what the conversation is about now, from 0 to 1, by their vectors. */
export async function similarityOf(
  embedder: Embedder,
  messages: readonly Message[],
  items: readonly ContextItem[],
): Promise<((text: string) => number) | undefined> {
  if (items.length === 0) return undefined
  const about = messages
    .slice(-current.messages)
    .map(({ content }) => content)
    .join('\n')
    .slice(-current.characters)
  const [now, ...vectors] = await embedder.embed([
    about,
    ...items.map(({ content }) => content.slice(0, current.characters)),
  ])
  if (now === undefined) return undefined
  const near = new Map(items.map(({ content }, at) => [content, cosine(now, vectors[at] ?? now)]))
  return (text) => near.get(text) ?? 0
}

/** Opposite counts as unrelated. */
function cosine(left: Float32Array, right: Float32Array): number {
  let [dot, ofLeft, ofRight] = [0, 0, 0]
  for (const [at, value] of left.entries()) {
    const other = right[at] ?? 0
    dot += value * other
    ofLeft += value * value
    ofRight += other * other
  }
  return ofLeft === 0 || ofRight === 0 ? 0 : Math.max(0, Math.min(1, dot / Math.sqrt(ofLeft * ofRight)))
}
