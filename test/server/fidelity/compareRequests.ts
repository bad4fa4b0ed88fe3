import { isDeepStrictEqual } from 'node:util'
import type { Exchange, RecordedRequest } from './recorder.ts'

type Fields = Readonly<Record<string, unknown>>
type ParsedRequest = {
  readonly endpoint: string
  readonly query: string
  readonly body: Fields
  /** Name of the field with the conversation. */
  readonly listField: 'messages' | 'input'
}

const parseRequest = ({ path, text }: RecordedRequest): ParsedRequest => {
  const [pathname = '', query = ''] = path.split('?')
  const endpoint = /(chat\/completions|responses|messages)$/.exec(pathname)?.[1] ?? pathname
  return { endpoint, query, body: JSON.parse(text), listField: endpoint === 'responses' ? 'input' : 'messages' }
}

/**
 * Lists the differences between the request of a client and each request that reached the upstream for it. The one
 * declared addition, a memory message after the conversation, is no difference.
 */
export function findDifferences({ sent, forwarded }: Pick<Exchange, 'sent' | 'forwarded'>): readonly string[] {
  if (forwarded.length === 0) return ['the request did not reach the upstream']
  const client = parseRequest(sent)
  return forwarded.flatMap((request) => compare(client, parseRequest(request)))
}

function compare(sent: ParsedRequest, forwarded: ParsedRequest): readonly string[] {
  const { listField } = sent
  const allowsSystemAddition = sent.endpoint === 'messages' && endsWithPrefill(sent.body)
  const fields = new Set([...Object.keys(sent.body), ...Object.keys(forwarded.body)])
  const differences = [...fields]
    .filter((field) => field !== listField && !isDeepStrictEqual(sent.body[field], forwarded.body[field]))
    .filter((field) => !(field === 'system' && allowsSystemAddition && endsWithMemory(sent.body, forwarded.body)))
    .map((field) => describe(field, sent.body[field], forwarded.body[field]))
  if (sent.query !== forwarded.query) differences.unshift(describe('query', sent.query, forwarded.query))
  return [...differences, ...compareLists(sent, forwarded, allowsSystemAddition)]
}

function compareLists(sent: ParsedRequest, forwarded: ParsedRequest, allowsSystemAddition: boolean): readonly string[] {
  const { listField } = sent
  const [sentValue, forwardedValue] = [sent.body[listField], forwarded.body[listField]]
  if (isDeepStrictEqual(sentValue, forwardedValue)) return []
  if (!Array.isArray(forwardedValue)) return [describe(listField, sentValue, forwardedValue)]
  // A reply that the client has begun stays the last message; memory comes before it.
  const position = forwardedValue.length - (endsWithPrefill(sent.body) ? 2 : 1)
  const hasAddition = !allowsSystemAddition && isMemoryMessage(sent.endpoint, forwardedValue[position])
  const kept = hasAddition ? forwardedValue.toSpliced(position, 1) : forwardedValue
  // Only a list has a place for the addition.
  if (typeof sentValue === 'string' && hasAddition && isUserText(kept, sentValue)) return []
  const list = Array.isArray(sentValue) ? sentValue : [sentValue]
  return Array.from({ length: Math.max(list.length, kept.length) }, (_, index) => index)
    .filter((index) => !isDeepStrictEqual(list[index], kept[index]))
    .map((index) => describe(`${listField}[${index}]`, list[index], kept[index]))
}

const endsWithPrefill = ({ messages }: Fields): boolean =>
  Array.isArray(messages) && messages.at(-1)?.role === 'assistant'

const isMemory = (text: unknown): boolean => typeof text === 'string' && /^<memory\b[^>]*>[\s\S]*<\/memory>$/.test(text)

/** True for the exact form in which memory is added to the conversation of an endpoint. */
export function isMemoryMessage(endpoint: string, message: unknown): boolean {
  const { content } = (message ?? {}) as Fields
  const text = Array.isArray(content) ? content[0]?.text : content
  const forms: Readonly<Record<string, Fields>> = {
    'chat/completions': { role: 'system', content: text },
    messages: { role: 'user', content: [{ type: 'text', text }] },
    responses: { type: 'message', role: 'developer', content: [{ type: 'input_text', text }] },
  }
  return isMemory(text) && isDeepStrictEqual(message, forms[endpoint])
}

/** True if a system prompt is the client's with memory at its end. */
function endsWithMemory({ system: sent }: Fields, { system: forwarded }: Fields): boolean {
  const toBlocks = (system: unknown): readonly unknown[] =>
    Array.isArray(system) ? system : system === undefined ? [] : [{ type: 'text', text: system }]
  if (typeof forwarded === 'string') {
    const prefix = sent ?? ''
    return typeof prefix === 'string' && forwarded.startsWith(prefix) && isMemory(forwarded.slice(prefix.length).trim())
  }
  const blocks = toBlocks(forwarded)
  const { text } = (blocks.at(-1) ?? {}) as Fields
  return isMemory(text) && isDeepStrictEqual(blocks, [...toBlocks(sent), { type: 'text', text }])
}

/** True if the items are one user message with this text. */
const isUserText = (items: readonly unknown[], text: string): boolean =>
  [
    { role: 'user', content: text },
    { type: 'message', role: 'user', content: text },
    { role: 'user', content: [{ type: 'input_text', text }] },
    { type: 'message', role: 'user', content: [{ type: 'input_text', text }] },
  ].some((message) => isDeepStrictEqual(items, [message]))

const maxShownCharacters = 300
const describe = (name: string, sent: unknown, forwarded: unknown): string =>
  `${name}: sent ${show(sent)}, forwarded ${show(forwarded)}`
const show = (value: unknown): string => (JSON.stringify(value) ?? 'nothing').slice(0, maxShownCharacters)

/** Fields that providers put before the conversation when they look up a cached prefix. */
const cachedFields = ['tools', 'system', 'instructions'] as const

/**
 * Lists the pairs of consecutive requests whose common prefix differs at the upstream. The prefix is compared as text,
 * because the order of fields counts for a provider's cache.
 */
export function findPrefixChanges(exchanges: readonly Exchange[]): readonly string[] {
  return exchanges.slice(1).flatMap((exchange, index) => {
    const pair = [exchanges[index] as Exchange, exchange]
    const [before, after] = pair.map(({ sent }) => readItems(parseRequest(sent)))
    const shared = countSharedItems(before ?? [], after ?? [])
    return pair
      .flatMap(({ sent, forwarded }) => {
        const expected = renderPrefix(parseRequest(sent), shared)
        if (forwarded.length === 0) return ['the request did not reach the upstream']
        const changed = forwarded
          .map((request) => renderPrefix(parseRequest(request), shared))
          .find((text) => text !== expected)
        return changed === undefined ? [] : [describeChange(expected, changed)]
      })
      .map((change) => `${pair[0]?.step} → ${exchange.step}: ${change}`)
  })
}

const readItems = ({ body, listField }: ParsedRequest): readonly unknown[] => {
  const list = body[listField]
  return Array.isArray(list) ? list : []
}

function countSharedItems(before: readonly unknown[], after: readonly unknown[]): number {
  const difference = before.findIndex((item, index) => JSON.stringify(item) !== JSON.stringify(after[index]))
  return difference < 0 ? before.length : difference
}

const renderPrefix = (request: ParsedRequest, items: number): string =>
  JSON.stringify([cachedFields.map((field) => request.body[field]), readItems(request).slice(0, items)])

function describeChange(expected: string, changed: string): string {
  let position = 0
  while (expected[position] === changed[position]) position++
  const from = Math.max(0, position - 40)
  return describe(`character ${position}`, expected.slice(from), changed.slice(from))
}
