import { noMatches, type SecretMatch } from './rule.ts'

/** Prefixes and lengths of Visa; Mastercard; American Express; Diners; Mir; JCB, Discover, UnionPay, RuPay; Maestro. */
const issuerFormat =
  /^(?:4(?:\d{12}|\d{15}|\d{18})|(?:5[1-5]|2[2-7])\d{14}|3[47]\d{13}|3[0689]\d{12}|220[0-4]\d{12,15}|(?:35|6[0245]|8[12]|508)\d{13,17}|(?:50|5[6-9]|6[37])\d{10,17})$/
/** Sizes of the groups that digits are written in. */
const groupSizes = /^,(?:1[2-9]|4,4,4,4(?:,[123])?|4,6,[45]|4,4,4,[13]|4,3,3,3|6,13|8,8)$/
const firstGroup = /^(?:[468]|1[2-9])$/
const issuerDigit = /^(?:[456]|2[2-7]|3[04-9]|8[12])/
const isFrequentIssuer = /^(?:[45]|3[47]|6[025]|2[2-7])/
const unusualGap = /[\n_/,]|\\n/
/** Within a longer number, a word or a path. */
const precededByNumber = /[\w.+/#]$|\d[-‐‑–]$/
/** Separators within a number: up to two spaces of any width, line breaks, hyphens or dots. */
const separator =
  /^(?:[ \u00a0\u00ad\u2000-\u200b\u202f\u205f\u2060\u3000\ufeff\t]{1,3}|[-‐‑–—·•._/,]| ?\\?\r?\n[ \t>]{0,4}|\\n|&nbsp;| [-–] )$/
const maxSeparatorCharacters = 6
const maxDigits = 19
const minDigits = 12
/** IBAN before the digits: its groups are not a card number. */
const ibanBefore = /[A-Z]{2}\d\d(?: ?[A-Z0-9]{4}){0,7} ?$/
const cardWord =
  /card|visa|master|maestro|amex|american express|diners|discover|carte|karte|tarjeta|cart[aã]o|карт|卡|カード/i
const maxWordDistance = 120

const isDigit = (code: number): boolean => code >= 48 && code <= 57

function findRunEnd(text: string, from: number): number {
  let end = from
  while (end - from <= maxDigits && isDigit(text.charCodeAt(end))) end++
  return end
}

/** Returns the start of the next group of digits, or -1. */
function skipSeparator(text: string, end: number): number {
  const isSimple = text.charCodeAt(end) === 32 || text.charCodeAt(end) === 45
  if (isSimple && isDigit(text.charCodeAt(end + 1))) return end + 1
  let next = end
  while (next - end <= maxSeparatorCharacters && next < text.length && !isDigit(text.charCodeAt(next))) next++
  return next > end && isDigit(text.charCodeAt(next)) && separator.test(text.slice(end, next)) ? next : -1
}

function isCardNumber(digits: string): boolean {
  if (!issuerFormat.test(digits)) return false
  let sum = 0
  for (let index = digits.length - 1, factor = 1; index >= 0; index--, factor = 3 - factor) {
    const product = (digits.charCodeAt(index) - 48) * factor
    sum += product > 9 ? product - 9 : product
  }
  return sum % 10 === 0
}

const hasWordBefore = (text: string, start: number): boolean =>
  cardWord.test(text.slice(Math.max(0, start - maxWordDistance), start))

/** An ungrouped number of an unusual length is more often an id; numbers below each other are more often a column. */
function needsCardWord(written: string, digits: string): boolean {
  if (written.length === digits.length) return digits.length < 14 || digits.length > 16
  return unusualGap.test(written) || digits.length < 14 || !isFrequentIssuer.test(digits)
}

/** Finds a payment card number: a known prefix, a matching length and a valid Luhn checksum. */
export function findCard(text: string, start: number): readonly SecretMatch[] {
  const firstEnd = findRunEnd(text, start)
  if (!firstGroup.test(`${firstEnd - start}`) || !issuerDigit.test(text.slice(start, start + 2))) return noMatches
  if (precededByNumber.test(text.slice(Math.max(0, start - 2), start))) return noMatches
  let [digits, sizes, end, found] = ['', '', start, -1]
  for (let from = start; from >= 0; ) {
    end = findRunEnd(text, from)
    digits += text.slice(from, end)
    if (digits.length > maxDigits) break
    sizes += `,${end - from}`
    const next = skipSeparator(text, end)
    if (digits.length >= minDigits && groupSizes.test(sizes) && isCardNumber(digits)) {
      const isWhole = !/^(?:\w|[.-]\d)/.test(text.slice(end, end + 2)) || next > 0
      if (isWhole && (!needsCardWord(text.slice(start, end), digits) || hasWordBefore(text, start))) found = end
    }
    from = next
  }
  if (found < 0 || ibanBefore.test(text.slice(Math.max(0, start - 40), start))) return noMatches
  return [{ kind: 'card', start, end: found }]
}
