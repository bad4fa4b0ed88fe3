/**
 * Where the encodings end the pieces they make tokens of, as OpenAI publishes it. White space is Unicode's, as there:
 * JavaScript's \s has U+FEFF and lacks U+0085. On any text the time is linear, because each place is looked at by every
 * alternative and passed over again at most once.
 */
const white = String.raw`\p{White_Space}`
const mark = String.raw`[^\r\n\p{L}\p{N}]?`
const sign = String.raw`[^${white}\p{L}\p{N}]`
const digits = String.raw`\p{N}{1,3}`
const upper = String.raw`[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]`
const lower = String.raw`[\p{Ll}\p{Lm}\p{Lo}\p{M}]`
const contraction = `'(?:[sSſdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])`

const anyOf = (...alternatives: readonly string[]): RegExp => new RegExp(alternatives.join('|'), 'gu')

/** Matches the pieces of a text one after the other. */
export const pieces = {
  cl100k_base: anyOf(
    contraction,
    String.raw`${mark}\p{L}+`,
    digits,
    String.raw` ?${sign}+[\r\n]*`,
    `${white}+$`,
    String.raw`${white}*[\r\n]`,
    String.raw`${white}+(?!\P{White_Space})`,
    white,
  ),
  o200k_base: anyOf(
    `${mark}${upper}*${lower}+(?:${contraction})?`,
    `${mark}${upper}+${lower}*(?:${contraction})?`,
    digits,
    String.raw` ?${sign}+[\r\n/]*`,
    String.raw`${white}*[\r\n]+`,
    String.raw`${white}+(?!\P{White_Space})`,
    `${white}+`,
  ),
}
