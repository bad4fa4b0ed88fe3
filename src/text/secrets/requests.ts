import { findValues, isPlaceholder, type SecretMatch } from './match.ts'

// The last @ before the path ends the password, which may contain an unescaped @.
const urlPassword = /:\/\/[^\s:/?#@"'`<>]{0,100}:([^\s/"'`<>]{1,200})(?=@[\w.[-])/g
const authorization =
  /authorization\\{0,3}["'`]?[ \t]{0,2}[:=,][ \t"'`\\]{0,5}(?:bearer|basic|token)[ \t]{1,3}([\w.~+/-]{6,}={0,2})/gi
const userFlag = /\s(?:-u|--user)[ =]?["']?[^\s:"']{1,64}:([^\s"']{1,200})/g
const cookieLine = /cookie\\?["'`]?[ \t]{0,2}[:,=][^\n]+/gi
const cookiePair = /(?<![\w.-])(?!path|domain|expires|max-age|samesite)([\w.-]{1,60})=([^;\s"'`,\\]{6,})/gi
const sessionCookieName = /sess|sid$|auth|token|jwt|login|[cx]srf/i

const requestHint = /:\/\/|authorization|cookie|\s-u|\s--user/i

/** Cheap prefilter: if false, the text contains no request credentials. */
export const mayContainRequestSecrets = (text: string): boolean => requestHint.test(text)

/** Finds credentials of HTTP requests: passwords in URLs, `Authorization`, cookies and curl's `-u`. */
export function findRequestSecrets(text: string): SecretMatch[] {
  const isCurlPassword = (value: string, start: number): boolean =>
    /\D/.test(value) && !isPlaceholder(value) && text.slice(Math.max(0, start - 300), start).includes('curl')
  return [
    ...findValues(text, 'connection', urlPassword, (value) => !isPlaceholder(value)),
    ...findValues(text, 'token', authorization, looksRandom),
    ...findValues(text, 'password', userFlag, isCurlPassword),
    ...findCookies(text),
  ]
}

const looksRandom = (value: string): boolean => /\d|[a-z][A-Z]|=/.test(value) && !isPlaceholder(value)

function findCookies(text: string): SecretMatch[] {
  const found: SecretMatch[] = []
  for (const { 0: line, index } of text.matchAll(cookieLine)) {
    for (const { 0: pair, 1: name = '', 2: value = '', index: offset } of line.matchAll(cookiePair)) {
      const end = index + offset + pair.length
      if (looksRandom(value) && (value.length > 15 || sessionCookieName.test(name)))
        found.push({ kind: 'token', start: end - value.length, end })
    }
  }
  return found
}
