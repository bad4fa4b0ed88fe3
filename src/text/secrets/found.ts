export type SecretKind = 'key' | 'token' | 'password' | 'connection' | 'card' | 'pem'
export type FoundSecret = { readonly kind: SecretKind; readonly start: number; readonly end: number }

/** What a pattern finds: its first group, or all of it. Either ends where the match ends. */
export function valuesOf(text: string, kind: SecretKind, pattern: RegExp, isOne: (value: string, start: number) => boolean): FoundSecret[] {
  const found: FoundSecret[] = []
  for (const match of text.matchAll(pattern)) {
    const value = match[1] ?? match[0]
    const end = match.index + match[0].length
    if (isOne(value, end - value.length)) found.push({ kind, start: end - value.length, end })
  }
  return found
}
