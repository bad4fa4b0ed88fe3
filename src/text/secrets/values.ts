/** Values of more characters are judged by this many. */
const maxJudgedCharacters = 64

/** Syntax that stands for a value: `${NAME}`, `$(command)`, `{{ name }}`, `<token>`, `%NAME%`, `[token]`, `***`. */
const placeholderSyntax =
  /^\$\{[\w.:-]+\}?|^\$\(.*\)|^\$?\{\{|^\$[A-Za-z_][A-Za-z_.]*\d?$|^[#@]\{[\w .]+\}?$|^<[\w .:/|-]*>?$|^%[\w.]+%$|^[[{][\w .:-]*[\]}]?$|^\*{3}|\*{4}|\*{3}$|^[\w-]{0,12}\.{3,}[\w-]{0,6}$|\.{3}$|…|x{6}|^x{3,}$|^(.)\1*$|⟨/i
/** Words that stand for a value. */
const placeholderWord =
  /^(?:your|my[-_](?:api|secret|token)|insert[-_]|put[-_]your|replace|redacted|dummy|fake[-_]|here$)|(?<![A-Za-z0-9])(?:your|here|fake|dummy)(?![A-Za-z0-9])|placeholder|example|change[-_]?(?:me|this)/
const credentialName =
  /^(?:[a-z]{1,9}[-_ ])?(?:(?:my|test|new|wrong|secret|valid|access|api)[-_]?){0,3}(?:pass(?:word|wd)?|pwd|secret|token|key|string|value|user(?:name)?)$/i

/** Letters of a random value that spell a word have mixed case. */
function hasPlaceholderWord(value: string): boolean {
  const isCapital = !/[a-z]/.test(value)
  return placeholderWord.test(isCapital ? value.toLowerCase() : value.charAt(0).toLowerCase() + value.slice(1))
}

/** Tells whether a value is only a placeholder (`your-api-key`, `<token>`, `xxxx`) or already masked. */
export function isPlaceholder(value: string): boolean {
  const beginning = value.slice(0, maxJudgedCharacters)
  return placeholderSyntax.test(beginning) || hasPlaceholderWord(beginning) || credentialName.test(beginning)
}

/** Placeholders such as `xxxx` or `0000-0000` have fewer distinct characters, random values of 16 characters more. */
const minDistinctCharacters = 6

/** Tells whether the part of a key after its prefix is a placeholder. Its length and alphabet have been checked. */
export function isPlaceholderKey(body: string): boolean {
  const beginning = body.slice(0, maxJudgedCharacters)
  return new Set(beginning.toLowerCase()).size < minDistinctCharacters || hasPlaceholderWord(beginning)
}

export const isMixed = (value: string): boolean => /\d/.test(value) && /[a-z]/i.test(value)

const alphabetSize = 26
/** Number of a letter, whatever its case; outside 0 to 25 for other characters. */
const letterAt = (text: string, index: number): number => (text.charCodeAt(index) | 32) - 97
const isLetter = (number: number): boolean => number >= 0 && number < alphabetSize

/** The most frequent pairs of letters in English words; four of five pairs in random text are others. */
const frequentPairs = new Uint8Array(alphabetSize ** 2)
const pairText =
  'abacadagaialamanaparasatavaybeblbobubycacechcicoctdedidoeaecedeeeielemeneperesetevexfafefifofrgeghgr' +
  'hahehihoiaicidieifigiliminioirisitivkelaldlelilllolymamemimompnancndnengninonsntocodofolomonoooporos' +
  'otouovowpapeplpoprrardrerirmrorsrtrysaseshsisospssstsutatethtitotrtstttutyuculunurusutveviwawewhwiwo'
for (let index = 0; index < pairText.length; index += 2)
  frequentPairs[letterAt(pairText, index) * alphabetSize + letterAt(pairText, index + 1)] = 1
const minWordShare = 0.5

/** Share of capitals in random letters is a half; names in code have fewer. */
const maxNameCapitals = 0.3

const isCapitalAt = (text: string, index: number): boolean => (text.charCodeAt(index) & 32) === 0

/**
 * Tells words, such as a name in code, from random letters. A capital after a small letter begins another word, unless
 * the value has as few capitals as names in code.
 */
function isWordLike(value: string): boolean {
  const isName = countCharacters(value, /[A-Z]/g) <= maxNameCapitals * countCharacters(value, /[A-Za-z]/g)
  let [pairs, frequent, previous] = [0, 0, -1]
  for (let index = 0; index < value.length; index++) {
    const letter = letterAt(value, index)
    if (isLetter(letter) && isLetter(previous)) {
      pairs++
      const isWithinWord = isName || !isCapitalAt(value, index) || isCapitalAt(value, index - 1)
      if (isWithinWord) frequent += frequentPairs[previous * alphabetSize + letter] ?? 0
    }
    previous = letter
  }
  return frequent > pairs * minWordShare
}

const countCharacters = (text: string, pattern: RegExp): number => text.match(pattern)?.length ?? 0

/** Digits among letters, for a word with a number only ends with it; or only hexadecimal digits. */
const digitsAmongLetters = /[a-z]\d+[a-z]|\d[a-z]+\d|^[0-9a-f-]{32,}$/i
const minGeneratedCharacters = 16
const minRandomCharacters = 8

/** Tells whether a part of a password between dots cannot be the name of a member: `Qk3jdhw82` in `Qk3jdhw82.Xp1`. */
export const isRandomName = (name: string): boolean =>
  name.length >= minRandomCharacters &&
  /[a-z]/.test(name) &&
  /[A-Z]/.test(name) &&
  digitsAmongLetters.test(name) &&
  !isWordLike(name)

/** Tells whether a value looks like the output of a generator: digits among letters, or letters that form no words. */
export function isGenerated(value: string): boolean {
  if (value.length < minGeneratedCharacters) return false
  const beginning = value.slice(0, maxJudgedCharacters)
  return (
    digitsAmongLetters.test(beginning) || (/[a-z]/.test(beginning) && /[A-Z]/.test(beginning) && !isWordLike(beginning))
  )
}
