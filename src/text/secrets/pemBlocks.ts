import { noMatches, type SecretMatch, type SecretRule } from './rule.ts'

const pemBegin = /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----/y
const pemEnd = /-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----/y
/** Start of a line in a numbered listing, a diff or a comment, after the line break. */
const linePrefix = String.raw`[ \t]{0,20}(?:\d{1,6}(?:[:|.)→]|(?=[ \t]|\\t))|//|[#*;-]{1,3})`
// Separators of lines: line breaks, also escaped as `\n`, with quotation or string syntax around them. A run of
// backslashes is taken whole: every other way to divide it would be tried as well, which takes exponential time.
const pemGap = String.raw`(?:\n${linePrefix}|\\+(?!\\)(?:n${linePrefix}|[nrt])?|%0[AD]|<br ?/?>|[\s"'\`>|+,]){0,40}`
const pemHeader = String.raw`(?:${pemGap}[A-Z][\w-]{1,20}: [^\n\\]{1,120}(?=[\n\\])){0,6}`
/** Base64 lines of a key; the last one may be short if nothing follows it on the line. */
const pemLines = new RegExp(
  String.raw`${pemHeader}(?:${pemGap}[A-Za-z0-9+/=]{16,})+(?:${pemGap}[A-Za-z0-9+/=]{1,15}(?=[ \t"'\`|]{0,8}(?:[\n\r\\<%]|$)))?`,
  'y',
)
/** A key of 16,384 bits has about 13,000 characters. */
const maxPemCharacters = 20_000

/** Finds a private key between `BEGIN` and `END`; a truncated key ends with its last line. */
function findPemBlock(text: string, at: number): readonly SecretMatch[] {
  pemBegin.lastIndex = at
  if (!pemBegin.test(text)) return noMatches
  pemLines.lastIndex = pemBegin.lastIndex
  // Code that searches for PEM blocks contains the boundaries without key lines.
  if (!pemLines.test(text)) return noMatches
  const lastLineEnd = pemLines.lastIndex
  const boundary = text.slice(lastLineEnd, at + maxPemCharacters).indexOf('-----')
  pemEnd.lastIndex = lastLineEnd + boundary
  const isComplete = boundary >= 0 && pemEnd.test(text)
  return [{ kind: 'pem', start: at, end: isComplete ? pemEnd.lastIndex : lastLineEnd }]
}

const lineBreak = String.raw`(?:\r?\n|(?:\\r)?\\n)`
const puttyLines = new RegExp(
  String.raw`Private-Lines: \d{1,4}${lineBreak}((?:[A-Za-z0-9+/]{1,64}={0,2}(?:${lineBreak}|$)){1,200})`,
  'y',
)

/** Finds the private part of a PuTTY key file. */
function findPuttyKey(text: string, at: number): readonly SecretMatch[] {
  puttyLines.lastIndex = at
  const match = puttyLines.exec(text)
  return match === null
    ? noMatches
    : [{ kind: 'pem', start: puttyLines.lastIndex - (match[1]?.length ?? 0), end: puttyLines.lastIndex }]
}

export const pemRules: readonly SecretRule[] = [
  { name: 'PEM', triggers: ['-----BEGIN '], find: findPemBlock },
  { name: 'PuTTY', triggers: ['Private-Lines:'], find: findPuttyKey },
]
