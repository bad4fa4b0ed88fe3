export type SecretKind = 'key' | 'token' | 'password' | 'connection' | 'card' | 'pem'
export type FoundSecret = { readonly kind: SecretKind; readonly start: number; readonly end: number }

/** All that a pattern finds, which is never nothing; to ask the text for it would make a copy of the pattern each time. */
export function matchesOf(text: string, pattern: RegExp): RegExpExecArray[] {
  const found: RegExpExecArray[] = []
  pattern.lastIndex = 0
  for (let match = pattern.exec(text); match; match = pattern.exec(text)) found.push(match)
  return found
}

/** What a pattern finds: its first group, or all of it. Either ends where the match ends. */
export function valuesOf(text: string, kind: SecretKind, pattern: RegExp, isOne: (value: string, start: number) => boolean): FoundSecret[] {
  const found: FoundSecret[] = []
  for (const { 0: whole, 1: value = whole, index } of matchesOf(text, pattern)) {
    const end = index + whole.length
    const start = end - value.length
    if (isOne(value, start)) found.push({ kind, start, end })
  }
  return found
}

/** What stands in for a secret that was found before. */
export const marks = /⟨secret:\d{1,12}⟩/g
