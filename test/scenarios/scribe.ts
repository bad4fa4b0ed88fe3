/**
 * A summary as a diligent model writes it: what the earlier one says, then every rule, address and decision, then the
 * beginning of everything that was said since, in exactly so many words if there is enough to say.
 */
export function summaryOf(said: string, previous: string | undefined, words: number): string {
  const lines = said.split('\n').filter((line) => line.trim() !== '')
  const kept = firstWords(previous ?? '', Math.floor(words * 0.7))
  const vital = lines
    .flatMap((line) => line.split(/(?<=[.!])\s+/))
    .filter((sentence) => /\bnever\b|:\/\/|\w-\d|\/\w+\.\w+|\bdecided\b/i.test(sentence))
  const room = words - countOf(kept) - countOf(vital.join(' '))
  const each = Math.max(1, Math.floor(room / lines.length))
  const begun = lines.map((line) => firstWords(line, each))
  const rest = (lines.at(-1) ?? '').slice(begun.at(-1)?.length ?? 0).trim()
  return firstWords([kept, ...vital, ...begun, rest].filter((part) => part !== '').join('\n'), words)
}

const countOf = (text: string): number => text.split(/\s+/).filter((word) => word !== '').length

/** The first so many words, line ends and all. */
const firstWords = (text: string, count: number): string =>
  new RegExp(`^\\s*(?:\\S+\\s*){0,${Math.max(0, count)}}`).exec(text)?.[0].trim() ?? ''
