const isWordy = (sign: string): boolean => /[\p{L}\p{N}_]/u.test(sign)

/**
 * Where a name stands in a text by itself, and not inside a longer one; -1 if nowhere.
 *
 * @example
 * stands('Decision 13', 'Decision 133, then Decision 13.') // 19
 */
export function stands(name: string, text: string): number {
  const [first, last] = [isWordy(name.charAt(0)), isWordy(name.charAt(name.length - 1))]
  for (let at = text.indexOf(name); at >= 0 && name !== ''; at = text.indexOf(name, at + 1)) {
    const isInside = (first && isWordy(text.charAt(at - 1))) || (last && isWordy(text.charAt(at + name.length)))
    if (!isInside) return at
  }
  return -1
}
