import { clip } from '../../text/clip.ts'

/** Control, format and separator characters, lone surrogates, and backslashes that would look like an escape of this module. */
const unsafeChars = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]|\\(?=u\{)/gu

/**
 * Escapes characters that a terminal or editor would interpret, so that untrusted text stays on one line.
 *
 * @example
 * escapeText('a\nb') // 'a\\u{a}b'
 */
export const escapeText = (text: string): string =>
  text.replaceAll(unsafeChars, (char) => `\\u{${(char.codePointAt(0) ?? 0).toString(16)}}`)

/** Clips a text to a number of characters and escapes it. */
export const escapeClipped = (text: string, maxChars: number): string => escapeText(clip(text, maxChars, '…'))
