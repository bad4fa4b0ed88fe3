import type { Incoming, Part } from '../../domain/chat.ts'
import { isObject } from '../../domain/checks.ts'
import { isBlank } from '../../domain/entry.ts'
import { at, listAt, textAt } from '../../providers/json.ts'
import { bad, demandParts, demandText, objectIn, typeOf } from './checks.ts'
import type { FilePart } from './dialect.ts'
import { filePart, textPart, urlPart } from './media.ts'

/** A message as Anthropic's clients send it, and a block of its content. */
export type Raw = { readonly role: string; readonly content: unknown }
export type Block = Readonly<Record<string, unknown>>

const roles = ['user', 'assistant', 'system']
/** What a model keeps to itself. */
const inward = ['thinking', 'redacted_thinking', 'compaction']

/** The blocks of a content, which may be plain text. */
export const blocksOf = (content: unknown): readonly Block[] =>
  typeof content === 'string' ? [{ type: 'text', text: content }] : Array.isArray(content) ? content : []

const isCall = (block: unknown): boolean => typeOf(block) === 'tool_use'
export const isResult = (block: Block): boolean => typeOf(block) === 'tool_result'

/** Checks a message as far as memory reads it. */
export function checkRaw(value: unknown, place: number): Raw {
  if (isPlain(value)) return value
  const param = `messages[${place}]`
  const { role, content } = objectIn(value, param, '{ "role": "user", "content": "Hello" }')
  if (typeof role !== 'string' || !roles.includes(role)) {
    throw bad(`${param}.role`, `is ${JSON.stringify(role) ?? 'missing'}; it must be one of ${roles.join(', ')}`)
  }
  checkContent(content, `${param}.content`)
  return { role, content }
}

/** Whether a message is nothing but words, as most of a history are: those are read without any detour. */
const isPlain = (value: unknown): value is Raw =>
  isObject(value) && typeof value.content === 'string' && typeof value.role === 'string' && roles.includes(value.role)

function checkContent(content: unknown, param: string): void {
  demandParts(content, param, (type) => type === 'text')
  for (const [place, block] of blocksOf(content).entries()) {
    if (isCall(block)) {
      demandText(block.id, `${param}[${place}].id`, 'names the call')
      demandText(block.name, `${param}[${place}].name`, 'names the tool')
    }
    if (!isResult(block)) continue
    demandText(block.tool_use_id, `${param}[${place}].tool_use_id`, 'names the call a result answers')
    demandParts(block.content ?? '', `${param}[${place}].content`, (type) => type === 'text')
  }
}

/** What is said in a message: the results of tools one by one, then the words; nothing for a reply that was only thought. */
export function spokenIn({ role, content }: Raw, files: FilePart[]): Incoming[] {
  if (typeof content === 'string')
    return role === 'assistant' && isBlank(content) ? [] : [{ role: role as Incoming['role'], content }]
  const blocks = blocksOf(content)
  if (role === 'assistant') {
    const reply = replyIn(blocks)
    return isBlank(reply.content as string) && reply.tool_calls === undefined ? [] : [reply]
  }
  const words = blocks.filter((block) => !isResult(block))
  const results = blocks
    .filter(isResult)
    .map((block): Incoming => ({ role: 'tool', tool_call_id: textAt(block, 'tool_use_id'), content: resultOf(block) }))
  if (words.length === 0 && results.length > 0) return results
  return [...results, { role: role as 'user' | 'system', content: words.flatMap((block) => partsOf(block, files)) }]
}

/** The assistant's message that the blocks of a reply are. */
export function replyIn(blocks: readonly unknown[]): Incoming {
  // A call nobody can answer, because it has no id or names no tool, is not kept.
  const calls = blocks.filter((block) => isCall(block) && textAt(block, 'id') !== '' && textAt(block, 'name') !== '')
  const message: Incoming = { role: 'assistant', content: wordsOf(blocks) }
  return calls.length === 0 ? message : { ...message, tool_calls: calls.map(callOf) }
}

/** Where sources are cited, text is cut into blocks even inside a sentence; anything else between two texts ends a line. */
function wordsOf(blocks: readonly unknown[]): string {
  const lines: string[] = []
  let isOpen = false
  for (const block of blocks.filter((one) => !inward.includes(typeOf(one)))) {
    const isText = typeOf(block) === 'text'
    if (isText && isOpen) lines.push(`${lines.pop()}${textAt(block, 'text')}`)
    else if (!isCall(block)) lines.push(isText ? textAt(block, 'text') : markOf(block))
    isOpen = isText
  }
  return lines.filter((line) => line !== '').join('\n')
}

/** Input that is no JSON, because it was cut off, is text. */
function callOf(block: unknown): NonNullable<Incoming['tool_calls']>[number] {
  const input = at(block, 'input')
  const text = typeof input === 'string' ? input : (JSON.stringify(input) ?? '{}')
  return { id: textAt(block, 'id'), type: 'function', function: { name: textAt(block, 'name'), arguments: text } }
}

/** What stands for a tool that the provider itself has used, or for what came of it. */
const markOf = (block: unknown): string => `[${textAt(block, 'name') || typeOf(block)}]`

/** What a tool brings along was not sent by anybody: a file in it is told of, and no upload. */
function resultOf(block: Block): readonly Part[] {
  const parts = blocksOf(block.content).flatMap((one) => partsOf(one, []))
  return block.is_error === true ? [textPart('[error]'), ...parts] : parts
}

function partsOf(block: Block, files: FilePart[]): Part[] {
  const type = typeOf(block)
  if (type === 'text') return [textPart(textAt(block, 'text'))]
  if (type === 'image') return [urlPart('image', addressOf(block), files)]
  if (type === 'document') return [filePart({ name: textAt(block, 'title'), ...documentIn(block) }, files)]
  if (type === 'container_upload') return [filePart({ name: '', data: '', where: textAt(block, 'file_id') }, files)]
  if (type === 'search_result')
    return [
      textPart(`[search result ${textAt(block, 'source')}]`),
      ...listAt(block, 'content').map(textIn).map(textPart),
    ]
  return inward.includes(type) ? [] : [textPart(markOf(block))]
}

const textIn = (block: unknown): string => textAt(block, 'text')

/** Where the bytes of a picture or a document are, or the bytes themselves as a `data:` URL. */
function addressOf(block: Block): string {
  const { source } = block
  if (textAt(source, 'type') === 'base64')
    return `data:${textAt(source, 'media_type')};base64,${textAt(source, 'data')}`
  return textAt(source, 'url') || textAt(source, 'file_id')
}

/** A document is bytes, text, blocks of text, or only a reference. */
function documentIn(block: Block): { data: string; where: string } {
  const type = textAt(block, 'source', 'type')
  const address = addressOf(block)
  if (type !== 'text' && type !== 'content')
    return address.startsWith('data:') ? { data: address, where: '' } : { data: '', where: address }
  const text =
    type === 'text'
      ? textAt(block, 'source', 'data')
      : blocksOf(at(block, 'source', 'content'))
          .map(textIn)
          .join('\n')
  return { data: `data:text/plain;base64,${Buffer.from(text).toString('base64')}`, where: '' }
}
