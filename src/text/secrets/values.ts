/** Values of more characters are judged by this many. */
const maxJudgedCharacters = 64

/** Syntax that stands for a value: `${NAME}`, `$(command)`, `{{ name }}`, `<token>`, `%NAME%`, `[token]`, `***`. */
const placeholderSyntax =
  /^\$\{[\w.:-]+\}?|^\$\(.*\)|^\{\{|^\$[A-Za-z_][A-Za-z_.]*\d?$|^[#@]\{[\w .]+\}?$|^<[\w .:/|-]*>?$|^%[\w.]+%$|^[[{][\w .:-]*[\]}]?$|^\*{3}|\*{4}|\*{3}$|^[\w-]{0,12}\.{3,}[\w-]{0,6}$|\.{3}$|…|x{6}|^x{3,}$|^(.)\1*$|⟨/i
/** Words that stand for a value. */
const placeholderWord =
  /^(?:your|my[-_](?:api|secret|token)|insert|put[-_]|replace|redacted|dummy|fake|here$)|(?<![A-Za-z0-9])(?:your|here|fake|dummy)(?![A-Za-z0-9])|placeholder|example|change[-_]?(?:me|this)/
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

/** The most frequent pairs of letters in English words; nine of ten pairs in a random text are others. */
const frequentPairs = new Set(
  'th he in er an re on at en nd ti es or te of ed is it al ar st to nt ng se ha as ou io le ve co me de hi ri ro ic ne ea ra ce li ch ll be ma si om ur ca el ta la ns di fo ho pe ec pr no ct us ac ot il tr ly nc et ut ss so rs un lo wa ge ie wh ee wi em ad ol rt po we na ul ni ts mo ow pa im mi ai sh ir su id os iv ia am fi ci vi pl ig tu ev ld ry mp fe bl ab gh ty op wo sa ay ex ke fr oo av ag if ap gr od bo sp rd do uc bu ei ov by rm ep tt oc fa'.split(
    ' ',
  ),
)
const minWordShare = 0.5

/** Tells words, such as a name in code, from random letters. */
function isWordLike(value: string): boolean {
  const pairs = [...value.toLowerCase().matchAll(/(?=([a-z]{2}))/g)]
  return pairs.filter(({ 1: pair = '' }) => frequentPairs.has(pair)).length > pairs.length * minWordShare
}

/** Digits among letters, for a word with a number only ends with it; or only hexadecimal digits. */
const digitsAmongLetters = /[a-z]\d+[a-z]|\d[a-z]+\d|^[0-9a-f-]{32,}$/i
const minGeneratedCharacters = 16

/** Tells whether a value looks like the output of a generator: digits among letters, or letters that form no words. */
export function isGenerated(value: string): boolean {
  if (value.length < minGeneratedCharacters) return false
  const beginning = value.slice(0, maxJudgedCharacters)
  return (
    digitsAmongLetters.test(beginning) || (/[a-z]/.test(beginning) && /[A-Z]/.test(beginning) && !isWordLike(beginning))
  )
}
