import { countWords, isWithin, type Target } from './told.ts'

/** About how much of a source a target has room for: characters, words, and the part of the whole. */
export type Room = { readonly characters: number; readonly words: number; readonly part: number }

/** Measured by as much of the source itself as the target takes: what a tokenizer makes of a text depends on the text. */
export function roomFor(source: string, target: Target): Room {
  let [low, high] = [0, 1_024]
  while (low < source.length && isWithin(source.slice(0, high), target)) [low, high] = [high, 2 * high]
  if (low >= source.length) low = source.length
  // A sixteenth is close enough: what is chosen is measured again.
  for (high = Math.min(high, source.length + 1); high - low > 1 + low / 16; ) {
    const middle = (low + high) >> 1
    if (isWithin(source.slice(0, middle), target)) low = middle
    else high = middle
  }
  const taken = source.slice(0, low)
  return { characters: taken.length, words: countWords(taken), part: taken.length / Math.max(1, source.length) }
}
