import type { FoundSecret } from './found.ts'

// In front of every place where a number may begin: one that fails must not hide the next. Groups as they are printed, or none.
const digits =
  /(?<![\w.+/#]|\d-)(?=(\d{4}([ -])(?:\d{4}\2\d{4}\2\d{4}|\d{6}\2\d{4,5}))((?:\2\d{1,3})?)(?![\w]|\.\d)|(\d{13,19})(?![\w]|[.-]\d))/g
/** Visa; Mastercard; American Express; Diners Club; JCB, Discover and UnionPay, each with its lengths. */
const issued =
  /^(?:4(?:\d{12}|\d{15}|\d{18})|(?:5[1-5]|2[2-7])\d{14}|3[47]\d{13}|3[068]\d{12}|(?:35|6[0245])\d{14,17})$/
/** A bank account's number may be told: its groups of digits are no card. */
const account = /[A-Z]{2}\d\d(?: ?[A-Z0-9]{4}){0,7} ?$/
const spoken = /card|visa/i
const groups = /\d{4}[ -]\d{4}|\d{13}/

/** Whether there may be any: if not, there are none. */
export const mayHoldCards = (text: string): boolean => groups.test(text)

/** Numbers of payment cards: a known beginning, a length that goes with it, and the right last digit. */
export function cardsIn(text: string): FoundSecret[] {
  const found: FoundSecret[] = []
  let reached = 0
  for (const { index: start, 1: grouped, 3: rest = '', 4: plain } of text.matchAll(digits)) {
    if (start < reached) continue
    const written = [grouped ?? '', `${grouped ?? plain}${rest}`].find(isCard)
    if (written === undefined || account.test(text.slice(Math.max(0, start - 40), start))) continue
    // A bare number of another length than most cards have is more often an id.
    if (
      plain !== undefined &&
      (plain.length < 14 || plain.length > 16) &&
      !spoken.test(text.slice(Math.max(0, start - 80), start))
    )
      continue
    reached = start + written.length
    found.push({ kind: 'card', start, end: reached })
  }
  return found
}

function isCard(written: string): boolean {
  const number = written.replace(/\D/g, '')
  if (!issued.test(number)) return false
  let sum = 0
  for (let at = number.length - 1, times = 1; at >= 0; at--, times = 3 - times) {
    const product = Number(number.charAt(at)) * times
    sum += product > 9 ? product - 9 : product
  }
  return sum % 10 === 0
}
