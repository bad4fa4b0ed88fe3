/** The value at a path of parsed JSON, or undefined where the path leads nowhere: an upstream may send anything. */
export function at(value: unknown, ...path: readonly (string | number)[]): unknown {
  let here = value
  for (const step of path) {
    if (typeof here !== 'object' || here === null || !Object.hasOwn(here, step)) return undefined
    here = (here as Record<string | number, unknown>)[step]
  }
  return here
}

/** The text at a path of parsed JSON; anything but text is no text. */
export function textAt(value: unknown, ...path: readonly (string | number)[]): string {
  const found = at(value, ...path)
  return typeof found === 'string' ? found : ''
}

/** The list at a path of parsed JSON; anything but a list is an empty one. */
export function listAt(value: unknown, ...path: readonly (string | number)[]): readonly unknown[] {
  const found = at(value, ...path)
  return Array.isArray(found) ? found : []
}

/** Parsed JSON, or undefined for text that is none. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
