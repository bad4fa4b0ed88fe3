import fc from 'fast-check'
import { commonWords, symbolTokens } from '../../src/text/upperBound.ts'

const capitalize = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1)
const word = fc.constantFrom(...commonWords.keys(), 'zxqj', 'rhythm', 'forEach', 'HTTPServer', 'qqq', 'iPhone')
const oneOf = (characters: string) => fc.constantFrom(...characters)

/** A word made of parts of common ones, after a space, a symbol or nothing. */
export const rareWord = fc
  .tuple(
    fc.constantFrom('', ' ', '.', '_', '(', "'", ';\n/', ')\n/('),
    fc.array(fc.tuple(word, fc.nat({ max: 6 }), fc.integer({ min: 2, max: 5 })), { minLength: 1, maxLength: 4 }),
    fc.constantFrom('', '', "'s", "'ll", '.', '\n'),
  )
  .map(([before, parts, after]) => {
    const letters = parts.map(([text, from, length]) => text.slice(from, from + length))
    return `${before}${letters.join('')}${after}`
  })

/** Fragments at whose boundaries tokenizers differ. */
const fragments = [
  word,
  word.map((text) => ` ${text}`),
  word.map(capitalize),
  word.map((text) => ` ${capitalize(text)}`),
  word.map((text) => text.toUpperCase()),
  fc.constantFrom("'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'S", "'LL", "'ſ", "'", '’s', '’', '“', '”', '—', '…'),
  oneOf('àéñßçŁжДﬁǅʰªºſİıK中文字한글あア'),
  fc.constantFrom(
    '\u0301',
    '\u0308',
    '\u20dd',
    '\u093f',
    '\u200d',
    '\ufe0f',
    '\ud800',
    '\udc00',
    '😀',
    '👍🏽',
    '🇩🇪',
    '𐐀',
    '𐐨',
  ),
  fc.constantFrom(
    ' ',
    '  ',
    '    ',
    '\t',
    '\r',
    '\r\n',
    '\n',
    '\n\n',
    '\u00a0',
    '\u0085',
    '\u3000',
    '\u2028',
    '\v',
    '\f',
  ),
  oneOf('!"#$%&()*+,-./:;<=>?@[\\]^_`{|}~\x00\x1f\x7f'),
  fc.constantFrom(...symbolTokens),
  fc.string({ unit: oneOf('!"(),./:;?_-*=\'’”\n'), maxLength: 8 }),
  fc.nat({ max: 99_999_999 }).map(String),
  oneOf('٣४５²Ⅷ½'),
  fc.string({ unit: oneOf('abcdefghijklmnopqrstuvwxyzABCXYZ'), maxLength: 12 }),
  fc.string({ unit: oneOf('jkqvwxzJQXZ'), maxLength: 12 }),
  fc.tuple(oneOf(' \n-=/!'), fc.nat({ max: 200 })).map(([sign, times]) => sign.repeat(times)),
  fc.string({ unit: 'binary', maxLength: 3 }),
]

/** Texts that provoke an upper bound that is too small, or a wrong count. */
export const hostileText = fc.array(fc.oneof(...fragments), { maxLength: 24 }).map((parts) => parts.join(''))

const before = [
  '',
  ' ',
  'x',
  "'",
  "x'",
  " x'",
  'é',
  'xé',
  '中',
  '\u0301',
  '“',
  '(',
  '\n',
  '\t',
  '1',
  '٣',
  '\ufeff',
  '😀',
  '_',
]
const after = ['', ' ', "'", "'s", "'t", "'S", "'ſ", "'ll", "'lx", 'é', '\u0301', '中', '1', '\n', '’s', 'X', '_', '😀']

/** A single word between neighbours that may change its tokens, with little else to compensate for a cost that is too low. */
export const wordWithNeighbours = fc
  .tuple(
    fc.constantFrom(...before),
    fc.oneof(word, word.map(capitalize), fc.string({ unit: oneOf('abdeilmrstvz'), maxLength: 4 })),
    fc.constantFrom(...after),
  )
  .map((parts) => parts.join(''))

const halfMegabyte = 500_000

/** Texts of a million characters that are slow to count for naive tokenizers. */
export const megabytes: Readonly<Record<string, string>> = {
  'one letter': 'a'.repeat(2 * halfMegabyte),
  'one capital': 'A'.repeat(2 * halfMegabyte),
  'letters without spaces': 'thequickbrownfoxjumps'.repeat((2 * halfMegabyte) / 20).slice(0, 2 * halfMegabyte),
  'letters and digits without spaces': 'aB3'.repeat((2 * halfMegabyte) / 3),
  'words of 4,000 letters': `${'qzjxkvbw'.repeat(500)} `.repeat((2 * halfMegabyte) / 4_001),
  ideographs: '中文'.repeat(halfMegabyte),
  'ideographs before capitals': '中'.repeat(halfMegabyte) + 'A'.repeat(halfMegabyte),
  emoji: '😀'.repeat(halfMegabyte),
  'lone surrogates': '\ud83d'.repeat(2 * halfMegabyte),
  'combining marks': '\u0301'.repeat(2 * halfMegabyte),
  spaces: ' '.repeat(2 * halfMegabyte),
  'line ends and spaces': ' \n'.repeat(halfMegabyte),
  apostrophes: "a's".repeat((2 * halfMegabyte) / 3),
  signs: '=-'.repeat(halfMegabyte),
}

/** `process.threadCpuUsage` exists from Node 23.9 on; before, only the CPU time of the whole process is available. */
const readCpuUsage: typeof process.cpuUsage = (process.threadCpuUsage ?? process.cpuUsage).bind(process)

/** Milliseconds of CPU time that this thread spends on an action; unlike wall time, it does not depend on other processes. */
export function measureCpu(action: () => void): number {
  const before = readCpuUsage()
  action()
  const { user, system } = readCpuUsage(before)
  return (user + system) / 1_000
}
