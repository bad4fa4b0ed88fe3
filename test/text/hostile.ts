import fc from 'fast-check'
import { afterSpace, anywhere } from '../../src/text/letterRuns.ts'

const capitalised = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1)
const word = fc.constantFrom(...afterSpace, ...anywhere, 'zxqj', 'rhythm', 'forEach', 'HTTPServer', 'qqq', 'iPhone')
const someOf = (signs: string) => fc.constantFrom(...signs)

/** Pieces of text at whose seams tokenizers differ. */
const bits = [
  word,
  word.map((text) => ` ${text}`),
  word.map(capitalised),
  word.map((text) => ` ${capitalised(text)}`),
  word.map((text) => text.toUpperCase()),
  fc.constantFrom("'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'S", "'LL", "'ſ", "'", '’s', '’', '“', '”', '—', '…'),
  someOf('àéñßçŁжДﬁǅʰªºſİıK中文字한글あア'),
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
  someOf('!"#$%&()*+,-./:;<=>?@[\\]^_`{|}~\x00\x1f\x7f'),
  fc.nat({ max: 99_999_999 }).map(String),
  someOf('٣४５²Ⅷ½'),
  fc.string({ unit: someOf('abcdefghijklmnopqrstuvwxyzABCXYZ'), maxLength: 12 }),
  fc.string({ unit: someOf('jkqvwxzJQXZ'), maxLength: 12 }),
  fc.tuple(someOf(' \n-=/!'), fc.nat({ max: 200 })).map(([sign, times]) => sign.repeat(times)),
  fc.string({ unit: 'binary', maxLength: 3 }),
]

/** Texts made to find the places where a bound is too small or a count is off. */
export const hostileText = fc.array(fc.oneof(...bits), { maxLength: 24 }).map((parts) => parts.join(''))

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

/** A single word between two things that may change its tokens: little else to make up for a price too low. */
export const seam = fc
  .tuple(
    fc.constantFrom(...before),
    fc.oneof(word, word.map(capitalised), fc.string({ unit: someOf('abdeilmrstvz'), maxLength: 4 })),
    fc.constantFrom(...after),
  )
  .map((parts) => parts.join(''))

const half = 500_000

/** A million characters each, of kinds that are slow to count for tokenizers that are not careful. */
export const megabytes: Readonly<Record<string, string>> = {
  'one letter': 'a'.repeat(2 * half),
  'one capital': 'A'.repeat(2 * half),
  'letters without spaces': 'thequickbrownfoxjumps'.repeat((2 * half) / 20).slice(0, 2 * half),
  'letters and digits without spaces': 'aB3'.repeat((2 * half) / 3),
  'words of 4,000 letters': `${'qzjxkvbw'.repeat(500)} `.repeat((2 * half) / 4_001),
  ideographs: '中文'.repeat(half),
  'ideographs before capitals': '中'.repeat(half) + 'A'.repeat(half),
  emoji: '😀'.repeat(half),
  'lone surrogates': '\ud83d'.repeat(2 * half),
  'combining marks': '\u0301'.repeat(2 * half),
  spaces: ' '.repeat(2 * half),
  'line ends and spaces': ' \n'.repeat(half),
  apostrophes: "a's".repeat((2 * half) / 3),
  signs: '=-'.repeat(half),
}

/** How long something takes, in milliseconds. */
export function duration(action: () => void): number {
  const start = performance.now()
  action()
  return performance.now() - start
}
