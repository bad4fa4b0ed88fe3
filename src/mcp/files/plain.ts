import { clip } from '../../text/clip.ts'

/** What a terminal or an editor would obey, and what would look as if it had been spelt out. */
const unsafe = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]|\\(?=u\{)/gu

/**
 * Text of any origin on one line, with everything spelt out that is not there to be read.
 *
 * @example
 * plain('a\nb') // 'a\\u{a}b'
 */
export const plain = (text: string): string =>
  text.replaceAll(unsafe, (sign) => `\\u{${(sign.codePointAt(0) ?? 0).toString(16)}}`)

/** The same of no more than so many characters. */
export const plainStart = (text: string, most: number): string => plain(clip(text, most, '…'))
