export type SecretKind = 'key' | 'token' | 'password' | 'connection' | 'card' | 'pem'
export type FoundSecret = { readonly kind: SecretKind; readonly start: number; readonly end: number }

/** What a pattern finds: its first group, or all of it. Either ends where the match ends. */
export function valuesOf(
  text: string,
  kind: SecretKind,
  pattern: RegExp,
  isOne: (value: string, start: number) => boolean,
): FoundSecret[] {
  const found: FoundSecret[] = []
  for (const { 0: whole, 1: value = whole, index } of text.matchAll(pattern)) {
    const end = index + whole.length
    const start = end - value.length
    if (isOne(value, start)) found.push({ kind, start, end })
  }
  return found
}

/** What stands in for a secret that was found before. */
export const marks = /⟨secret:\d{1,12}⟩/g
