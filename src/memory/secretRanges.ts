/** Part of a text: `text.slice(start, end)` is a secret, or a piece of one. */
export type SecretRange = { readonly start: number; readonly end: number }

/** Sorts ranges and merges those that overlap. */
export function mergeRanges(ranges: readonly SecretRange[]): readonly SecretRange[] {
  const merged: SecretRange[] = []
  for (const { start, end } of [...ranges].sort((left, right) => left.start - right.start)) {
    const last = merged.at(-1)
    if (last === undefined || start >= last.end) merged.push({ start, end })
    else merged[merged.length - 1] = { start: last.start, end: Math.max(last.end, end) }
  }
  return merged
}

/** Adds the occurrences of a secret that overlap none of the ranges. */
export function addOccurrences(ranges: readonly SecretRange[], text: string, secret: string): readonly SecretRange[] {
  const added: SecretRange[] = []
  let next = 0
  for (let index = text.indexOf(secret); index >= 0; index = text.indexOf(secret, index + secret.length)) {
    const end = index + secret.length
    while (next < ranges.length && (ranges[next] as SecretRange).end <= index) next++
    const following = ranges[next]
    if (following === undefined || following.start >= end) added.push({ start: index, end })
  }
  return added.length === 0 ? ranges : mergeRanges([...ranges, ...added])
}

/** A range of one part of a text. */
export type PartRange = SecretRange & { readonly part: string }

/** Splits ordered ranges of joined parts into the pieces that lie in each part. */
export function* splitByParts(
  parts: readonly string[],
  joinerLength: number,
  ranges: readonly SecretRange[],
): Generator<readonly PartRange[]> {
  let [first, firstStart] = [0, 0]
  for (const range of ranges) {
    const pieces: PartRange[] = []
    for (let index = first, from = firstStart; index < parts.length && from < range.end; index++) {
      const part = parts[index] as string
      const [start, end] = [Math.max(0, range.start - from), Math.min(part.length, range.end - from)]
      if (start < end) pieces.push({ part, start, end })
      from += part.length + joinerLength
      // Ranges are in order: the next one begins after the parts that end here.
      if (from <= range.end) [first, firstStart] = [index + 1, from]
    }
    yield pieces
  }
}
