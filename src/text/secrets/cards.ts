import type { SecretMatch } from './match.ts'

// A lookahead at every possible start, so that a failed candidate does not hide the next. Grouped as on a card, or ungrouped.
const candidate =
  /(?<![\w.+/#]|\d-)(?=(\d{4}([ -])(?:\d{4}\2\d{4}\2\d{4}|\d{6}\2\d{4,5}))((?:\2\d{1,3})?)(?![\w]|\.\d)|(\d{13,19})(?![\w]|[.-]\d))/g
/** Prefixes and lengths of Visa; Mastercard; American Express; Diners Club; JCB, Discover and UnionPay. */
const issuerFormat =
  /^(?:4(?:\d{12}|\d{15}|\d{18})|(?:5[1-5]|2[2-7])\d{14}|3[47]\d{13}|3[068]\d{12}|(?:35|6[0245])\d{14,17})$/
/** IBAN before the digits: its groups are not a card number. */
const ibanBefore = /[A-Z]{2}\d\d(?: ?[A-Z0-9]{4}){0,7} ?$/
const cardWord = /card|visa/i
const digitGroups = /\d{4}[ -]\d{4}|\d{13}/

/** Cheap prefilter: if false, the text contains no card number. */
export const mayContainCards = (text: string): boolean => digitGroups.test(text)

/** Finds payment card numbers: a known prefix, a matching length and a valid Luhn checksum. */
export function findCards(text: string): SecretMatch[] {
  const found: SecretMatch[] = []
  let reached = 0
  for (const { index: start, 1: grouped, 3: rest = '', 4: plain } of text.matchAll(candidate)) {
    if (start < reached) continue
    const number = [grouped ?? '', `${grouped ?? plain}${rest}`].find(isCardNumber)
    if (number === undefined || ibanBefore.test(text.slice(Math.max(0, start - 40), start))) continue
    // An ungrouped number of an unusual length is more often an id.
    if (
      plain !== undefined &&
      (plain.length < 14 || plain.length > 16) &&
      !cardWord.test(text.slice(Math.max(0, start - 80), start))
    )
      continue
    reached = start + number.length
    found.push({ kind: 'card', start, end: reached })
  }
  return found
}

function isCardNumber(text: string): boolean {
  const number = text.replace(/\D/g, '')
  if (!issuerFormat.test(number)) return false
  let sum = 0
  for (let index = number.length - 1, factor = 1; index >= 0; index--, factor = 3 - factor) {
    const product = Number(number.charAt(index)) * factor
    sum += product > 9 ? product - 9 : product
  }
  return sum % 10 === 0
}
