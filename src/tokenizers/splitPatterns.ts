/**
 * Pre-tokenizer patterns of the encodings, as published by OpenAI. White space is `\p{White_Space}`, as in OpenAI's
 * implementation: JavaScript's \s includes U+FEFF and lacks U+0085. Matching is linear in the length of the text,
 * because each alternative visits a position at most twice.
 */
const white = String.raw`\p{White_Space}`
const prefix = String.raw`[^\r\n\p{L}\p{N}]?`
const punctuation = String.raw`[^${white}\p{L}\p{N}]`
const digits = String.raw`\p{N}{1,3}`
const upper = String.raw`[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]`
const lower = String.raw`[\p{Ll}\p{Lm}\p{Lo}\p{M}]`
const contraction = `'(?:[sSſdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])`

const anyOf = (...alternatives: readonly string[]): RegExp => new RegExp(alternatives.join('|'), 'gu')

/** Global patterns that match the consecutive pieces of a text. Byte pair encoding never merges across two pieces. */
export const splitPatterns = {
  cl100k_base: anyOf(
    contraction,
    String.raw`${prefix}\p{L}+`,
    digits,
    String.raw` ?${punctuation}+[\r\n]*`,
    `${white}+$`,
    String.raw`${white}*[\r\n]`,
    String.raw`${white}+(?!\P{White_Space})`,
    white,
  ),
  o200k_base: anyOf(
    `${prefix}${upper}*${lower}+(?:${contraction})?`,
    `${prefix}${upper}+${lower}*(?:${contraction})?`,
    digits,
    String.raw` ?${punctuation}+[\r\n/]*`,
    String.raw`${white}*[\r\n]+`,
    String.raw`${white}+(?!\P{White_Space})`,
    `${white}+`,
  ),
}
