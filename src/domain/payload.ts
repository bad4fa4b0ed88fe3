import { isObject } from './error.ts'
import { exceedsDepth, isJsonValue, TextPieces } from './stringify.ts'
import { runSync, type Work } from './work.ts'

/** A message in the form in which a client or a model sent it. */
export type Payload = {
  /** Name of the wire protocol it belongs to; no other protocol may use it. */
  readonly protocol: string
  /** Elements of the protocol's message list that make up the message, mostly one. */
  readonly items: readonly unknown[]
  /** Number of consecutive messages that the items stand for; default 1. Only the first of them has the payload. */
  readonly count?: number
}

/** Shorter strings take less room in full than as a reference. */
const minReferenceCharacters = 32
/** Levels of nesting that a payload may have: every function here visits it recursively. */
const maxPayloadDepth = 100
/** Key of an object that stands for a part of the content: `{"$content":[offset,length]}`. */
const referenceKey = '$content'
/** Keys of a payload that could be taken for the reference key get one `$` more. */
const escapedKeyPattern = /^\$+content$/

/**
 * Packs a payload as JSON text. Strings that occur in the content of the same message become references to it, so that
 * the text is stored once.
 *
 * @example
 * const packed = packPayload({ protocol: 'messages', items: [{ role: 'user', content }] }, content)
 */
export const packPayload = (payload: Payload, content: string): string => runSync(packPayloadInSteps(payload, content))

/** Does the same as `packPayload` in steps. */
export function* packPayloadInSteps({ protocol, count, items }: Payload, content: string): Work<string> {
  const pieces = new TextPieces()
  yield* pack(items, { find: createFinder(content), pieces, visited: 0 })
  const start = JSON.stringify({ protocol, count })
  return `${start.slice(0, -1)},"items":${pieces.join()}}`
}

/** Restores the payload that `packPayload` was given; undefined if the packed text is damaged. */
export function unpackPayload(packed: string, content: string): Payload | undefined {
  try {
    const { protocol, count, items } = JSON.parse(packed) as Record<string, unknown>
    const unpacked: unknown = { protocol, ...(count !== undefined && { count }), items: unpack(items, content) }
    return describePayloadFault(unpacked) === undefined ? (unpacked as Payload) : undefined
  } catch {
    return undefined
  }
}

/** Describes the first fault of a value that should be a payload; undefined if it is one. */
export function describePayloadFault(value: unknown): { readonly field: string; readonly problem: string } | undefined {
  if (!isObject(value)) return { field: '', problem: 'must be an object such as { protocol: "chat", items: [] }' }
  const { protocol, items, count } = value
  if (typeof protocol !== 'string' || protocol === '')
    return { field: '.protocol', problem: 'must be text that is not empty' }
  if (!Array.isArray(items)) return { field: '.items', problem: 'must be a list' }
  if (exceedsDepth(items, maxPayloadDepth))
    return { field: '.items', problem: `must not be nested deeper than ${maxPayloadDepth} levels` }
  if (count !== undefined && !(Number.isSafeInteger(count) && (count as number) > 0))
    return { field: '.count', problem: 'must be a whole number, 1 or more' }
  return undefined
}

/**
 * Returns the strings of a payload that a model reads and that `content` does not contain, one per line. Identifiers,
 * types, links, signatures and encoded data are left out.
 */
export const payloadText = (payload: Payload, content: string): string => runSync(payloadTextInSteps(payload, content))

/** Does the same as `payloadText` in steps. */
export function* payloadTextInSteps({ items }: Payload, content: string): Work<string> {
  const texts: string[] = []
  const find = createFinder(content)
  let visited = 0
  for (const text of stringsIn(items, unreadFieldPattern)) {
    if (!isFound(find, text)) texts.push(text)
    if (++visited % valuesPerStep === 0) yield valuesPerStep * workPerValue
  }
  return texts.join('\n')
}

/** Lists the strings of a payload that clients and models chose, which excludes the vocabulary of the protocol. */
export const payloadStrings = ({ items }: Payload): Iterable<string> => stringsIn(items, vocabularyFieldPattern)

/** Fields whose strings a protocol prescribes. */
const vocabularyFieldPattern = /^(?:type|role|status|object|phase|format|detail|media_type|mime_type)$/
/** Fields whose strings a model does not read as text. */
const unreadFieldPattern = new RegExp(
  `${vocabularyFieldPattern.source}|^(?:signature|encrypted_content|cache_control)$|(?:^|_)(?:id|ids|url|uri|data)$`,
)

function* stringsIn(value: unknown, skippedFields: RegExp): Iterable<string> {
  if (typeof value === 'string') {
    if (value !== '') yield value
  } else if (Array.isArray(value)) for (const item of value) yield* stringsIn(item, skippedFields)
  else if (isObject(value)) {
    for (const [name, inner] of Object.entries(value))
      if (!skippedFields.test(name)) yield* stringsIn(inner, skippedFields)
  }
}

/** True if the content has a string as it is, or escaped as in the JSON text of tool arguments. */
const isFound = (find: TextFinder, text: string): boolean =>
  find(text) >= 0 || find(JSON.stringify(text).slice(1, -1)) >= 0

/** Searches out of order or in vain that are made per payload: each one may read the whole content. */
const maxFullSearches = 64

/** Returns the offset of a string in a content; -1 if it is not there, or if too many searches were in vain. */
type TextFinder = (text: string) => number

/** Creates a finder for strings that mostly come in their order in the content; its time is linear in the content. */
function createFinder(content: string): TextFinder {
  let position = 0
  let fullSearches = 0
  return (text) => {
    if (fullSearches > maxFullSearches) return -1
    const next = content.indexOf(text, position)
    if (next >= 0) position = next + text.length
    else fullSearches++
    return next < 0 ? content.indexOf(text) : next
  }
}

type Packing = { readonly find: TextFinder; readonly pieces: TextPieces; visited: number }

/** Values packed in one step, and their work in units of other work on text. */
const [valuesPerStep, workPerValue] = [256, 8]

/** Writes a value as JSON. A wide object is never copied, which would take one long step. */
function* pack(value: unknown, packing: Packing): Work<void> {
  const { find, pieces } = packing
  if (++packing.visited % valuesPerStep === 0) yield valuesPerStep * workPerValue
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) {
      pieces.push(index === 0 ? '[' : ',')
      yield* pack(value[index], packing)
    }
    pieces.push(value.length === 0 ? '[]' : ']')
  } else if (isObject(value)) {
    let separator = '{'
    for (const name of Object.keys(value)) {
      const inner = value[name]
      if (!isJsonValue(inner)) continue
      pieces.push(`${separator}${JSON.stringify(escapedKeyPattern.test(name) ? `$${name}` : name)}:`)
      separator = ','
      yield* pack(inner, packing)
    }
    pieces.push(separator === '{' ? '{}' : '}')
  } else if (typeof value === 'string' && value.length >= minReferenceCharacters) {
    const offset = find(value)
    pieces.push(offset < 0 ? JSON.stringify(value) : `{"${referenceKey}":[${offset},${value.length}]}`)
  } else pieces.push(isJsonValue(value) ? JSON.stringify(value) : 'null')
}

function unpack(value: unknown, content: string): unknown {
  if (Array.isArray(value)) return value.map((item) => unpack(item, content))
  if (!isObject(value)) return value
  if (Object.hasOwn(value, referenceKey)) return resolveReference(value[referenceKey], content)
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [
      escapedKeyPattern.test(name) ? name.slice(1) : name,
      unpack(inner, content),
    ]),
  )
}

function resolveReference(reference: unknown, content: string): string {
  const [offset, length] = reference as [number, number]
  const text = content.slice(offset, offset + length)
  if (!(offset >= 0) || text.length !== length) throw new RangeError('The reference is outside the content.')
  return text
}
