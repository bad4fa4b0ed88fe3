/** Words that the rules would stem wrongly. */
const exceptions = new Map(
  Object.entries({
    skis: 'ski',
    skies: 'sky',
    dying: 'die',
    lying: 'lie',
    tying: 'tie',
    idly: 'idl',
    gently: 'gentl',
    ugly: 'ugli',
    early: 'earli',
    only: 'onli',
    singly: 'singl',
    sky: 'sky',
    news: 'news',
    howe: 'howe',
    atlas: 'atlas',
    cosmos: 'cosmos',
    bias: 'bias',
    andes: 'andes',
  }),
)
/** Words that stay as they are after plural removal. */
const unchanged = new Set(['inning', 'outing', 'canning', 'herring', 'earring', 'proceed', 'exceed', 'succeed'])
const longPrefixes = ['gener', 'commun', 'arsen']

/** `after` lists the letters that may precede the suffix. */
type SuffixRules = readonly (readonly [suffix: string, replacement: string, after?: string])[]

// Longest first: the first matching suffix decides, even if its condition fails.
const step2 = byLastLetter([
  ['ational', 'ate'],
  ['ization', 'ize'],
  ['fulness', 'ful'],
  ['ousness', 'ous'],
  ['iveness', 'ive'],
  ['tional', 'tion'],
  ['biliti', 'ble'],
  ['lessli', 'less'],
  ['entli', 'ent'],
  ['ation', 'ate'],
  ['alism', 'al'],
  ['aliti', 'al'],
  ['ousli', 'ous'],
  ['iviti', 'ive'],
  ['fulli', 'ful'],
  ['enci', 'ence'],
  ['anci', 'ance'],
  ['abli', 'able'],
  ['izer', 'ize'],
  ['ator', 'ate'],
  ['alli', 'al'],
  ['bli', 'ble'],
  ['ogi', 'og', 'l'],
  ['li', '', 'cdeghkmnrt'],
])
const step3 = byLastLetter([
  ['ational', 'ate'],
  ['tional', 'tion'],
  ['alize', 'al'],
  ['icate', 'ic'],
  ['iciti', 'ic'],
  ['ative', ''],
  ['ical', 'ic'],
  ['ness', ''],
  ['ful', ''],
])
const step4 = byLastLetter([
  ['ement', ''],
  ['ance', ''],
  ['ence', ''],
  ['able', ''],
  ['ible', ''],
  ['ment', ''],
  ['ant', ''],
  ['ent', ''],
  ['ism', ''],
  ['ate', ''],
  ['iti', ''],
  ['ous', ''],
  ['ive', ''],
  ['ize', ''],
  ['ion', '', 'st'],
  ['al', ''],
  ['er', ''],
  ['ic', ''],
])

function byLastLetter(rules: SuffixRules): readonly SuffixRules[] {
  const table: (readonly [string, string, string?])[][] = Array.from({ length: 26 }, () => [])
  for (const rule of rules) table[rule[0].charCodeAt(rule[0].length - 1) - 97]?.push(rule)
  return table
}

/** A few thousand short words make up most text, so their stems are cached. */
const maxCachedWords = 8_192
const maxCachedLetters = 12
const cache = new Map<string, string>()

/** Stems a lower-case English word by the Porter2 algorithm; returns any other word unchanged. */
export function stem(word: string): string {
  if (word.length < 3) return word
  const cached = cache.get(word)
  if (cached !== undefined) return cached
  if (!isLowercaseWord(word)) return word
  const result = exceptions.get(word) ?? applyPorter2(word)
  if (word.length > maxCachedLetters) return result
  if (cache.size >= maxCachedWords) cache.clear()
  cache.set(word, result)
  return result
}

function applyPorter2(word: string): string {
  let rest = markConsonants(word.charCodeAt(0) === 39 ? word.slice(1) : word)
  const r1 = findR1(rest)
  const r2 = findRegionAfter(rest, r1)
  rest = dropPlural(dropPossessive(rest))
  if (unchanged.has(rest)) return rest
  rest = softenFinalY(dropTense(rest, r1))
  rest = replaceSuffix(rest, step2, r1)
  // `ative` is the only suffix of step 3 that must lie in region R2.
  rest = rest.endsWith('ative') && rest.length - 5 < r2 ? rest : replaceSuffix(rest, step3, r1)
  rest = dropFinal(replaceSuffix(rest, step4, r2), r1, r2)
  return rest.includes('Y') ? rest.toLowerCase() : rest
}

function isLowercaseWord(word: string): boolean {
  for (let at = 0; at < word.length; at++) {
    const code = word.charCodeAt(at)
    if ((code < 97 || code > 122) && code !== 39) return false
  }
  return true
}

/** Recognises a e i o u y; the `Y` written by `markConsonants` is a consonant. */
function isVowel(code: number): boolean {
  return code === 97 || code === 101 || code === 105 || code === 111 || code === 117 || code === 121
}

function hasVowel(word: string, end: number): boolean {
  for (let at = 0; at < end; at++) if (isVowel(word.charCodeAt(at))) return true
  return false
}

/** Writes `Y` for a consonant y: at the start of the word or after a vowel. */
function markConsonants(word: string): string {
  if (!word.includes('y')) return word
  let marked = ''
  for (let at = 0; at < word.length; at++) {
    const afterVowel = at > 0 && isVowel(marked.charCodeAt(at - 1))
    marked += word[at] === 'y' && (at === 0 || afterVowel) ? 'Y' : word[at]
  }
  return marked
}

/** Returns the start of region R1. */
function findR1(word: string): number {
  for (const prefix of longPrefixes) if (word.startsWith(prefix)) return prefix.length
  return findRegionAfter(word, 0)
}

/** Returns the index after the first consonant that follows a vowel, searching from `from`. */
function findRegionAfter(word: string, from: number): number {
  for (let at = from + 1; at < word.length; at++) {
    if (!isVowel(word.charCodeAt(at)) && isVowel(word.charCodeAt(at - 1))) return at + 1
  }
  return word.length
}

function dropPossessive(word: string): string {
  if (!word.includes("'")) return word
  if (word.endsWith("'s'")) return word.slice(0, -3)
  if (word.endsWith("'s")) return word.slice(0, -2)
  return word.endsWith("'") ? word.slice(0, -1) : word
}

function dropPlural(word: string): string {
  if (word.endsWith('sses')) return word.slice(0, -2)
  if (word.endsWith('ied') || word.endsWith('ies')) return word.slice(0, word.length > 4 ? -2 : -1)
  if (!word.endsWith('s') || word.endsWith('us') || word.endsWith('ss')) return word
  return hasVowel(word, word.length - 2) ? word.slice(0, -1) : word
}

function dropTense(word: string, r1: number): string {
  const bare = word.endsWith('ly') ? word.slice(0, -2) : word
  if (bare.endsWith('eed')) return bare.length - 3 >= r1 ? bare.slice(0, -1) : word
  const cut = bare.endsWith('ed') ? 2 : bare.endsWith('ing') ? 3 : 0
  if (cut === 0 || !hasVowel(bare, bare.length - cut)) return word
  const left = bare.slice(0, -cut)
  if (left.endsWith('at') || left.endsWith('bl') || left.endsWith('iz')) return `${left}e`
  const last = left.charAt(left.length - 1)
  if ('bdfgmnprt'.includes(last) && left.charAt(left.length - 2) === last) return left.slice(0, -1)
  return r1 >= left.length && endsShort(left) ? `${left}e` : left
}

function softenFinalY(word: string): string {
  const last = word.charCodeAt(word.length - 1)
  if ((last !== 121 && last !== 89) || word.length < 3 || isVowel(word.charCodeAt(word.length - 2))) return word
  return `${word.slice(0, -1)}i`
}

/** Tells whether the word ends in a short syllable, such as `rap`, `at` or `bed`. */
function endsShort(word: string): boolean {
  const end = word.length - 1
  const last = word.charCodeAt(end)
  if (isVowel(last) || !isVowel(word.charCodeAt(end - 1))) return false
  if (end === 1) return true
  return !isVowel(word.charCodeAt(end - 2)) && last !== 119 && last !== 120 && last !== 89
}

function replaceSuffix(word: string, table: readonly SuffixRules[], region: number): string {
  for (const [suffix, replacement, after] of table[word.charCodeAt(word.length - 1) - 97] ?? []) {
    if (!word.endsWith(suffix)) continue
    const start = word.length - suffix.length
    if (start < region || (after !== undefined && !after.includes(word.charAt(start - 1)))) return word
    return word.slice(0, start) + replacement
  }
  return word
}

function dropFinal(word: string, r1: number, r2: number): string {
  const end = word.length - 1
  if (word.endsWith('e')) {
    const isDropped = end >= r2 || (end >= r1 && !endsShort(word.slice(0, -1)))
    return isDropped ? word.slice(0, -1) : word
  }
  return end >= r2 && word.endsWith('ll') ? word.slice(0, -1) : word
}
