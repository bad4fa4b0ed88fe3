import { type FoundSecret, valuesOf } from './found.ts'
import { isPlaceholder } from './placeholder.ts'

// The last @ before the path ends the password: some write theirs as it is.
const inUrl = /:\/\/[^\s:/?#@"'`<>]{0,100}:([^\s/"'`<>]{1,200})(?=@[\w.[-])/g
const authorization =
  /authorization\\{0,3}["'`]?[ \t]{0,2}[:=,][ \t"'`\\]{0,5}(?:bearer|basic|token)[ \t]{1,3}([\w.~+/-]{6,}={0,2})/gi
const userFlag = /\s(?:-u|--user)[ =]?["']?[^\s:"']{1,64}:([^\s"']{1,200})/g
const cookies = /cookie\\?["'`]?[ \t]{0,2}[:,=][^\n]+/gi
const cookie = /(?<![\w.-])(?!path|domain|expires|max-age|samesite)([\w.-]{1,60})=([^;\s"'`,\\]{6,})/gi
const opensSession = /sess|sid$|auth|token|jwt|login|[cx]srf/i

const signs = /:\/\/|authorization|cookie|\s-u|\s--user/i

/** Whether there may be any: if not, there are none. */
export const mayHoldRequests = (text: string): boolean => signs.test(text)

/** What a request proves itself with: passwords in addresses, `Authorization`, cookies, and curl's `-u`. */
export function requestSecretsIn(text: string): FoundSecret[] {
  const isOfCurl = (value: string, start: number): boolean =>
    /\D/.test(value) && !isPlaceholder(value) && text.slice(Math.max(0, start - 300), start).includes('curl')
  return [
    ...valuesOf(text, 'connection', inUrl, (value) => !isPlaceholder(value)),
    ...valuesOf(text, 'token', authorization, isMixed),
    ...valuesOf(text, 'password', userFlag, isOfCurl),
    ...cookiesIn(text),
  ]
}

const isMixed = (value: string): boolean => /\d|[a-z][A-Z]|=/.test(value) && !isPlaceholder(value)

function cookiesIn(text: string): FoundSecret[] {
  const found: FoundSecret[] = []
  for (const { 0: line, index } of text.matchAll(cookies)) {
    for (const { 0: pair, 1: name = '', 2: value = '', index: at } of line.matchAll(cookie)) {
      const end = index + at + pair.length
      if (isMixed(value) && (value.length > 15 || opensSession.test(name)))
        found.push({ kind: 'token', start: end - value.length, end })
    }
  }
  return found
}
