import { MemoryError } from '../domain/error.ts'
import type { GraphCipher } from './cipher.ts'
import type { GraphLink, GraphNode, NodeReadOptions } from './types.ts'

/** Columns of a node or an observation; `lower` is the search text, null in an encrypted workspace. */
type SearchableRow = { readonly ref: string; readonly body: string; readonly lower: string | null }

export const nodeDigest = (cipher: GraphCipher, name: string): string => cipher.digest('node', name)
export const linkDigest = (cipher: GraphCipher, { from, to, relationType }: GraphLink): string =>
  cipher.digest('link', from, to, relationType)
export const observationDigest = (cipher: GraphCipher, text: string): string => cipher.digest('observation', text)

export function serializeNode(
  cipher: GraphCipher,
  { name, entityType }: Omit<GraphNode, 'observations'>,
): SearchableRow {
  const ref = nodeDigest(cipher, name)
  return {
    ref,
    body: cipher.encrypt(JSON.stringify({ name, entityType }), ref),
    lower: searchTextOf(cipher, name, entityType),
  }
}

export const serializeObservation = (cipher: GraphCipher, nodeName: string, text: string): SearchableRow => ({
  ref: observationDigest(cipher, text),
  body: cipher.encrypt(JSON.stringify(text), nodeDigest(cipher, nodeName)),
  lower: searchTextOf(cipher, text),
})

export function serializeLink(
  cipher: GraphCipher,
  { from, to, relationType }: GraphLink,
): { readonly ref: string; readonly source: string; readonly target: string; readonly body: string } {
  const ref = linkDigest(cipher, { from, to, relationType })
  return {
    ref,
    source: nodeDigest(cipher, from),
    target: nodeDigest(cipher, to),
    body: cipher.encrypt(JSON.stringify({ from, to, relationType }), ref),
  }
}

/** Parses many JSON texts in one call, which takes half as long as one call each. */
export function parseAll<T>(texts: readonly string[]): readonly T[] {
  const values = JSON.parse(`[${texts.join(',')}]`) as readonly T[]
  if (values.length === texts.length) return values
  throw new SyntaxError('a row holds several values')
}

/** Builds the searched text of a row: lower-cased by JavaScript's rules, text by text, as the reference server does. */
function searchTextOf(cipher: GraphCipher, ...texts: readonly string[]): string | null {
  if (!cipher.isPlaintext) return null
  // SQLite's trigram index stops at a NUL, and PostgreSQL stores neither a NUL nor a lone surrogate.
  return texts
    .map((text) => text.toLowerCase())
    .join('\n')
    .toWellFormed()
    .replaceAll('\0', '\ufffd')
}

/** True if all rows that contain a lower-case text also have it in their search text. */
export const isInSearchText = (lowerCaseText: string): boolean =>
  lowerCaseText !== '' && lowerCaseText.isWellFormed() && !lowerCaseText.includes('\0')

/** True if the name, type or an observation of a node contains a lower-case text. */
export const nodeContains = ({ name, entityType, observations }: GraphNode, lowerCaseText: string): boolean =>
  [name, entityType, ...observations].some((text) => text.toLowerCase().includes(lowerCaseText))

/** Quotes and comma of a text in JSON. */
const charactersAroundText = 3

/** Counts the characters of a result and throws `bad-option` if there are too many. */
export class ResultLimit {
  private readonly maxCharacters: number
  private characters = 0

  constructor({ maxCharacters = Number.POSITIVE_INFINITY }: NodeReadOptions) {
    this.maxCharacters = maxCharacters
  }

  addNode({ name, entityType }: Pick<GraphNode, 'name' | 'entityType'>): void {
    this.add([name, entityType])
  }

  addLink({ from, to, relationType }: GraphLink): void {
    this.add([from, to, relationType])
  }

  add(texts: readonly string[]): void {
    for (const text of texts) this.characters += text.length + charactersAroundText
    if (this.characters > this.maxCharacters)
      throw new MemoryError(
        'bad-option',
        `The result has more than ${this.maxCharacters} characters. Use search_nodes with a longer query, or open_nodes with fewer names.`,
        { param: 'maxCharacters' },
      )
  }
}
