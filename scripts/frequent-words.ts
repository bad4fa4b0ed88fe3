/**
 * Generates src/text/frequentWords.ts, the tables of the token upper bound, from the rank tables of cl100k_base and
 * o200k_base. Run: `npx node scripts/frequent-words.ts`.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import cl100k from 'gpt-tokenizer/bpeRanks/cl100k_base'
import o200k from 'gpt-tokenizer/bpeRanks/o200k_base'
import { PackedWordTable } from '../src/search/wordTable.ts'
import { stem } from '../src/text/stem.ts'
import { isStopword } from '../src/text/words.ts'
import { countBpeTokens, createRankIndex, type RankIndex, toByteString } from '../src/tokenizers/bytePairs.ts'

/** Each word takes 2 bytes of a compressed bundle. */
const maxWords = 12_000
const maxSymbols = 500
/** Ranks below it are the merges that byte pair encoding tries first. */
const mergeRanks = 1_500
const target = new URL('../src/text/frequentWords.ts', import.meta.url)
const [cl100kRanks, o200kRanks] = [createRankIndex(cl100k), createRankIndex(o200k)]
/** Its stems are in the order of their frequency in English. */
const wordTable = new PackedWordTable(readFileSync(new URL('../data/word-table.bin', import.meta.url)))
const lowercase = [...'abcdefghijklmnopqrstuvwxyz']
const letters = [...lowercase.map((letter) => letter.toUpperCase()), ...lowercase]

function isToken(text: string): boolean {
  const bytes = toByteString(text)
  return cl100kRanks.get(bytes) !== undefined && o200kRanks.get(bytes) !== undefined
}
const rankOf = (text: string): number => Math.max(cl100kRanks.get(text) ?? 0, o200kRanks.get(text) ?? 0)
const capitalise = (word: string): string => `${word.charAt(0).toUpperCase()}${word.slice(1)}`
/** Returns the higher of the two token counts. */
const maxTokens = (text: string): number =>
  Math.max(countBpeTokens(toByteString(text), cl100kRanks), countBpeTokens(toByteString(text), o200kRanks))

/** Characters that can merge with the word after them into one token; the bound counts each as its number of bytes. */
const mergingCharacters = [
  ...Array.from({ length: 128 }, (_, code) => String.fromCharCode(code)).filter((char) =>
    /[^A-Za-z0-9 \r\n']/.test(char),
  ),
  ...'‘’“”–—…',
]
const contractions = ["'s", "'t", "'m", "'d", "'ll", "'ve", "'re"]

/** True if the form after a space is one token, and two at most with a contraction. */
const isTokenAfterSpace = (form: string): boolean =>
  isToken(` ${form}`) && contractions.every((ending) => maxTokens(` ${form}${ending}`) <= 2)
/** True if the same holds without a space. */
const isTokenAtStart = (form: string): boolean =>
  isToken(form) && contractions.every((ending) => maxTokens(form + ending) <= 2)
/** True if the same holds after every merging character. */
const isTokenAnywhere = (form: string): boolean =>
  isTokenAtStart(form) && mergingCharacters.every((char) => maxTokens(char + form) <= 1 + toByteString(char).length)

/** Tokens of one or two letters that are words, not only prefixes of words. */
const shortWords = new Set(
  'a i am an as at be by do go he hi if in is it me my no of oh ok on or so to up us we'.split(' '),
)
/** Words of every context (roles and headings), and of chats and software, which the frequencies of news rank low. */
const alwaysListed = new Set(
  `assistant exchange past recent system tool user
  aren couldn didn doesn don hadn hasn haven isn shouldn wasn weren won wouldn
  alright awesome blog cute definitely email gonna haha hello hey hmm huh kinda online sorry thanks uh um wanna
  wow yeah yep yes yikes
  analytics api app async backend boolean browser bug cache callback cli client cloud code commit config css database
  datetime deploy docker docs email endpoint enum error file frontend function git github hash html http https
  import json kubernetes laptop library linux login markdown metadata middleware module node npm offline parse parser
  password podcast prompt python query regex repo repository request response runtime schema script server smartphone
  sql string subscription sync syntax template terminal test timestamp token typescript upload username validation
  website wifi workflow workspace yaml`.split(/\s+/),
)
/** Symbols of Markdown and quotes that are too rare in the training text of the encodings. */
const alwaysListedSymbols = new Set(
  ['```', '```\n', '```\n\n', '###', '####', ':**', '**:', '**:\n', '**\n\n', '---\n\n', ')**', ' **"', '!"', '?"']
    .concat(['—', '–', '…', '‘', '’', '“', '”', ' —', ' –', ' “', ' ”', ' ‘', '.”', ',”', '?”', '!”', '.’', '”.', '”,'])
    .concat(['.”\n\n', '...”', '”\n\n', '."\n\n', '…\n\n', '?\n', '!\n', '),', ').\n\n', '".', '",', '."', ',"']),
)

type Word = { readonly text: string; readonly places: number; readonly score: number }

/** Returns the place code of a word (see `words` in the generated file); undefined if it is not one token anywhere. */
function findPlaces(word: string): number | undefined {
  const [small, capital] = [isTokenAfterSpace(word), isTokenAfterSpace(capitalise(word))]
  if (!small || !capital) return small ? 2 : capital ? 3 : undefined
  if (!isTokenAnywhere(capitalise(word))) return isTokenAtStart(capitalise(word)) ? 5 : 1
  return isTokenAnywhere(word) ? 0 : 4
}

/** Scores a word by its frequency in English and by its rank, which follows the frequency of the token; 0 is best. */
function scoreOf(word: string, forms: readonly string[]): number {
  if (alwaysListed.has(word) || isStopword(word)) return 0
  const frequency = (wordTable.rowOf(stem(word)) ?? 40_000) / 26_542
  return frequency + Math.min(...forms.filter(isToken).map(rankOf)) / 100_000
}

function findWords(): readonly Word[] {
  const words = new Map<string, Word>()
  for (const token of cl100kRanks.keys()) {
    const text = token.slice(1).toLowerCase()
    if (!/^ [A-Za-z][a-z]*$/.test(token) || words.has(text) || (text.length < 3 && !shortWords.has(text))) continue
    const places = findPlaces(text)
    if (places !== undefined)
      words.set(text, { text, places, score: scoreOf(text, [` ${text}`, ` ${capitalise(text)}`]) })
  }
  return [...words.values()].sort((one, other) => one.score - other.score).slice(0, maxWords)
}

/** Codes the words in alphabetical order, each by the letters that differ from the word before. */
function packWords(words: readonly Word[]): string {
  let previous = ''
  return [...words]
    .sort((one, other) => (one.text < other.text ? -1 : 1))
    .map(({ text, places }) => {
      let shared = 0
      while (shared < 5 && shared < text.length - 1 && previous[shared] === text[shared]) shared++
      previous = text
      return `${(places * 6 + shared).toString(36).toUpperCase()}${text.slice(shared)}`
    })
    .join('')
}

const rankOfSymbol = (token: string): number => (alwaysListedSymbols.has(token) ? 0 : rankOf(toByteString(token)))
/** Symbols without letters and digits that are one token, most frequent first; single ones only outside ASCII. */
const symbols = [...cl100kRanks.keys()]
  .map((bytes) => Buffer.from(bytes, 'latin1').toString())
  .filter((token) => /^ ?(?:[!-/:-@[-`{-~‘’“”–—…]{1,8})\n{0,2}$/.test(token) && toByteString(token).length > 1)
  // Biome takes it for a forgotten template.
  .filter((token) => isToken(token) && !token.includes('${'))
  .sort((one, other) => rankOfSymbol(one) - rankOfSymbol(other))
  .slice(0, maxSymbols)

const findMerges = (ranks: RankIndex): string =>
  [...ranks.keys()]
    .filter((token) => (ranks.get(token) ?? mergeRanks) < mergeRanks && /^(?: ?[!-/:-~]+\n*|\n+)$/.test(token))
    .filter((token) => token.length > 1)
    .sort((one, other) => (ranks.get(one) ?? 0) - (ranks.get(other) ?? 0))
    .join('\t')

const findFollowers = (first: string, among: readonly string[]): string =>
  among.filter((letter) => isToken(first + letter)).join('')
const pairs = [' ', ...letters].map((first) => findFollowers(first, letters)).join(',')
const triples = [' ', ...lowercase]
  .flatMap((first) =>
    lowercase.map((second) => (isToken(first + second) ? findFollowers(first + second, lowercase) : '')),
  )
  .join(',')

const quote = (text: string): string =>
  `'${JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`
const words = findWords()
writeFileSync(
  target,
  `// Generated by scripts/frequent-words.ts from the rank tables of cl100k_base and o200k_base.

/**
 * Common words in alphabetical order, each without the prefix it shares with the previous one. The base-36 digit before
 * it is 6 times the places where the word is one token in both encodings, plus the length of that prefix. Places: 0
 * with or without a space before it, capitalised or not; 1 after a space, capitalised or not; 2 after a space in lower
 * case; 3 after a space and capitalised; 4 after a space, and capitalised also without one; 5 after a space, and
 * capitalised also as the start of a piece.
 */
export const words =
  ${quote(packWords(words))}

/** Symbols that are one token of both encodings. */
export const symbols =
  ${quote(symbols.join('\t'))}

/** Tokens of lowest rank in the order of their ranks: all without digits, with a space only first, line ends last. */
export const cl100kMerges =
  ${quote(findMerges(cl100kRanks))}
export const o200kMerges =
  ${quote(findMerges(o200kRanks))}

/** For space, A–Z and a–z in this order: the letters that form a token of both encodings after it. */
export const pairs =
  ${quote(pairs)}

/** The same for every pair of a space or lower-case letter with a lower-case letter. */
export const triples =
  ${quote(triples)}
`,
)
console.log(`${words.length} words, ${words.filter(({ places }) => places === 0).length} of them anywhere`)
