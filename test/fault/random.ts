/** Creates a pseudo-random generator of numbers in [0, 1) that repeats for the same seed. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x9e3779b9) >>> 0
    let mixed = Math.imul(state ^ (state >>> 16), 0x21f0aaad)
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97)
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 32
  }
}

/** Picks `count` integers in [0, end), one at random from each of `count` equal parts. */
export function stratifiedSample(count: number, end: number, random: () => number): readonly number[] {
  return Array.from({ length: count }, (_, part) => Math.min(end - 1, Math.floor(((part + random()) / count) * end)))
}
