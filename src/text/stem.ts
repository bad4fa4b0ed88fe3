/** Words the rules would spoil. */
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
const finished = new Set(['inning', 'outing', 'canning', 'herring', 'earring', 'proceed', 'exceed', 'succeed'])
const longPrefixes = ['gener', 'commun', 'arsen']

type Rules = readonly (readonly [suffix: string, becomes: string, after?: string])[]

// Longest first: the first suffix found decides, even if its condition then fails.
const derivations = byLastLetter([
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
const qualities = byLastLetter([
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
const endings = byLastLetter([
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

function byLastLetter(rules: Rules): readonly Rules[] {
  const table: (readonly [string, string, string?])[][] = Array.from({ length: 26 }, () => [])
  for (const rule of rules) table[rule[0].charCodeAt(rule[0].length - 1) - 97]?.push(rule)
  return table
}

/** The same few thousand words make up most of what is said: their stems stay at hand. Longer ones are rarer than they are worth. */
const remembered = { words: 8_192, letters: 12 }
const stems = new Map<string, string>()

/** The stem of a lower-case English word (the rules of Porter's second stemmer); any other word is left as it is. */
export function stem(word: string): string {
  if (word.length < 3) return word
  const known = stems.get(word)
  if (known !== undefined) return known
  if (!isPlain(word)) return word
  const found = exceptions.get(word) ?? stemmed(word)
  if (word.length > remembered.letters) return found
  if (stems.size >= remembered.words) stems.clear()
  stems.set(word, found)
  return found
}

function stemmed(word: string): string {
  let rest = markConsonants(word.charCodeAt(0) === 39 ? word.slice(1) : word)
  const first = firstRegion(rest)
  const second = regionAfter(rest, first)
  rest = dropPlural(dropPossessive(rest))
  if (finished.has(rest)) return rest
  rest = softenFinalY(dropTense(rest, first))
  rest = replaceSuffix(rest, derivations, first)
  // `ative` is the one suffix of its step that must lie in the second region.
  rest = rest.endsWith('ative') && rest.length - 5 < second ? rest : replaceSuffix(rest, qualities, first)
  rest = dropFinal(replaceSuffix(rest, endings, second), first, second)
  return rest.includes('Y') ? rest.toLowerCase() : rest
}

function isPlain(word: string): boolean {
  for (let at = 0; at < word.length; at++) {
    const code = word.charCodeAt(at)
    if ((code < 97 || code > 122) && code !== 39) return false
  }
  return true
}

/** a e i o u y; the `Y` written by `markConsonants` is none. */
function isVowel(code: number): boolean {
  return code === 97 || code === 101 || code === 105 || code === 111 || code === 117 || code === 121
}

function hasVowel(word: string, end: number): boolean {
  for (let at = 0; at < end; at++) if (isVowel(word.charCodeAt(at))) return true
  return false
}

/** Writes `Y` for a y that opens the word or follows a vowel. */
function markConsonants(word: string): string {
  if (!word.includes('y')) return word
  let marked = ''
  for (let at = 0; at < word.length; at++) {
    const afterVowel = at > 0 && isVowel(marked.charCodeAt(at - 1))
    marked += word[at] === 'y' && (at === 0 || afterVowel) ? 'Y' : word[at]
  }
  return marked
}

function firstRegion(word: string): number {
  for (const prefix of longPrefixes) if (word.startsWith(prefix)) return prefix.length
  return regionAfter(word, 0)
}

/** Where the word goes on after its first consonant that follows a vowel, looking from `from`. */
function regionAfter(word: string, from: number): number {
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

function dropTense(word: string, first: number): string {
  const bare = word.endsWith('ly') ? word.slice(0, -2) : word
  if (bare.endsWith('eed')) return bare.length - 3 >= first ? bare.slice(0, -1) : word
  const cut = bare.endsWith('ed') ? 2 : bare.endsWith('ing') ? 3 : 0
  if (cut === 0 || !hasVowel(bare, bare.length - cut)) return word
  const left = bare.slice(0, -cut)
  if (left.endsWith('at') || left.endsWith('bl') || left.endsWith('iz')) return `${left}e`
  const last = left.charAt(left.length - 1)
  if ('bdfgmnprt'.includes(last) && left.charAt(left.length - 2) === last) return left.slice(0, -1)
  return first >= left.length && endsShort(left) ? `${left}e` : left
}

function softenFinalY(word: string): string {
  const last = word.charCodeAt(word.length - 1)
  if ((last !== 121 && last !== 89) || word.length < 3 || isVowel(word.charCodeAt(word.length - 2))) return word
  return `${word.slice(0, -1)}i`
}

/** Whether the word ends in a short syllable, as `rap`, `at` or `bed` do. */
function endsShort(word: string): boolean {
  const end = word.length - 1
  const last = word.charCodeAt(end)
  if (isVowel(last) || !isVowel(word.charCodeAt(end - 1))) return false
  if (end === 1) return true
  return !isVowel(word.charCodeAt(end - 2)) && last !== 119 && last !== 120 && last !== 89
}

function replaceSuffix(word: string, table: readonly Rules[], region: number): string {
  for (const [suffix, becomes, after] of table[word.charCodeAt(word.length - 1) - 97] ?? []) {
    if (!word.endsWith(suffix)) continue
    const start = word.length - suffix.length
    if (start < region || (after !== undefined && !after.includes(word.charAt(start - 1)))) return word
    return word.slice(0, start) + becomes
  }
  return word
}

function dropFinal(word: string, first: number, second: number): string {
  const end = word.length - 1
  if (word.endsWith('e')) {
    const goes = end >= second || (end >= first && !endsShort(word.slice(0, -1)))
    return goes ? word.slice(0, -1) : word
  }
  return end >= second && word.endsWith('ll') ? word.slice(0, -1) : word
}
