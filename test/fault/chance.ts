/** Numbers from 0 up to 1 that look like chance and are the same for the same seed. */
export function chanceOf(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x9e3779b9) >>> 0
    let mixed = Math.imul(state ^ (state >>> 16), 0x21f0aaad)
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97)
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 32
  }
}

/** So many places from 0 up to `end`, one in each of as many equal parts: spread over the whole, yet not in step with anything. */
export function spread(count: number, end: number, chance: () => number): readonly number[] {
  return Array.from({ length: count }, (_, part) => Math.min(end - 1, Math.floor(((part + chance()) / count) * end)))
}
