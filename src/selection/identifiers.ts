/** Name, path or number of a text: `text.slice(start, end)`. */
export type Identifier = { readonly name: string; readonly start: number; readonly end: number }

/** Longer runs are blobs. */
const maxIdentifierChars = 160
const minIdentifierChars = 3

const identifier = new RegExp(
  [
    String.raw`https?:\/\/[^\s"'\x60<>)\]]+`,
    // Paths, with or without a leading folder.
    String.raw`(?:[\w@~.-]*\/)+[\w@.-]+`,
    // Files and members: app.config.ts, user.name.
    String.raw`[\w$-]+(?:\.[\w$-]+)+`,
    // snake_case and kebab-case.
    '[A-Za-z0-9]+(?:[_-][A-Za-z0-9]+)+',
    // camelCase, PascalCase and constants.
    '[a-z]+(?:[A-Z][A-Za-z0-9]*)+',
    '(?:[A-Z][a-z0-9]+){2,}',
    '[A-Z][A-Z0-9]{3,}',
    // Hashes and numbers.
    '[0-9a-f]{7,40}',
    String.raw`\d{3,}`,
  ].join('|'),
  'g',
)
const trailingMarks = /(?<![.,:;/-])[.,:;/-]+$/

/**
 * Finds URLs, paths, identifiers of program text, hashes and numbers of at least three digits. Cheaper than
 * `findAnchors`, which also finds names of people and constraints.
 *
 * @example
 * findIdentifiers('Fix src/app.ts and userName.').map(({ name }) => name) // ['src/app.ts', 'userName']
 */
export function findIdentifiers(text: string): readonly Identifier[] {
  const found: Identifier[] = []
  for (const { 0: match, index } of text.matchAll(identifier)) {
    const name = match.replace(trailingMarks, '')
    if (name.length >= minIdentifierChars && name.length <= maxIdentifierChars)
      found.push({ name, start: index, end: index + name.length })
  }
  return found
}
