export type SecretKind = 'key' | 'token' | 'password' | 'connection' | 'card' | 'pem'
/** Position of a secret: `text.slice(start, end)` must be replaced. */
export type SecretMatch = { readonly kind: SecretKind; readonly start: number; readonly end: number }

/** Reads a list of any length, such as the rows of a table, part by part. */
export type ListReader = {
  /** Position of the next row. */
  at: number
  /** Position of the last row, which is read again if the text goes on. */
  readonly resumeAt: number
  readonly isDone: boolean
  /** Finds the secrets of the rows that begin before a position. */
  readonly read: (text: string, to: number) => readonly SecretMatch[]
}

/** Secrets of a range, and the position up to which further triggers are not tried. */
export type RangeMatches = { readonly matches: readonly SecretMatch[]; readonly reached: number }

/** Recognises one form of secrets. It is tried only where one of its triggers occurs: most text costs little. */
export type SecretRule = {
  readonly name: string
  /** Strings of three or more characters; letters match in either case. */
  readonly triggers: readonly string[]
  /**
   * Finds the secrets that belong to the trigger at a position. Reads a bounded part of the text around it, or returns
   * the position up to which further triggers cannot succeed, or a list that begins here. A rule that reads far beyond
   * its trigger returns how far it has read: many triggers would otherwise read the same text.
   */
  readonly find: (text: string, at: number) => readonly SecretMatch[] | RangeMatches | number | ListReader
}

export const noMatches: readonly SecretMatch[] = []

/** Judges a value by itself and by its position in the text. */
export type Judge = (value: string, text: string, start: number) => boolean

/**
 * Creates a rule from a pattern that begins at the trigger. The secret is its first group or the whole match; both end
 * at the end of the match.
 */
export function createRule(
  name: string,
  kind: SecretKind,
  triggers: readonly string[],
  pattern: RegExp,
  isSecret: Judge = () => true,
): SecretRule {
  const sticky = new RegExp(pattern.source, `${pattern.flags}y`)
  const find = (text: string, at: number): readonly SecretMatch[] => {
    sticky.lastIndex = at
    const match = sticky.exec(text)
    if (match === null) return noMatches
    const end = sticky.lastIndex
    const start = end - (match[1] ?? match[0]).length
    return isSecret(text.slice(start, end), text, start) ? [{ kind, start, end }] : noMatches
  }
  return { name, triggers, find }
}
