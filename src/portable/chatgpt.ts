import type { Incoming } from '../domain/chat.ts'
import { isObject } from '../domain/checks.ts'
import type { Millis } from '../domain/entry.ts'
import { branchOf, type Foreign, parseList, Sieve, textIn, timeIn } from './foreign.ts'

/**
 * Reads `conversations.json` of a ChatGPT data export: of each conversation's tree, the branch that ends in its current
 * node. Text and code are kept, pictures and sound leave a mark; what tools were asked and answered, what the model
 * thought and what was hidden is left out.
 */
export function parseChatgpt(text: string): Foreign {
  const sieve = new Sieve()
  for (const [place, conversation] of parseList(text, 'the conversations.json of ChatGPT').entries()) {
    const { mapping, title } = conversation
    const id = textIn(conversation.conversation_id) ?? textIn(conversation.id)
    if (!isObject(mapping) || id === undefined) sieve.skip(`conversation ${place + 1}`, 'has no id or no messages')
    else
      sieve.keep(
        { id, title },
        messagesOf(mapping, textIn(conversation.current_node), seconds(conversation.create_time)),
      )
  }
  return sieve.result()
}

function messagesOf(
  mapping: Record<string, unknown>,
  current: string | undefined,
  begun: Millis | undefined,
): (Incoming | string)[] {
  const nodes = new Map(
    Object.entries(mapping).filter((entry): entry is [string, Record<string, unknown>] => isObject(entry[1])),
  )
  const leaf = (current === undefined ? undefined : nodes.get(current)) ?? newestLeaf([...nodes.values()])
  let at = begun
  const found: (Incoming | string)[] = []
  for (const node of branchOf(leaf, ({ parent }) => nodes.get(textIn(parent) ?? ''))) {
    if (!isObject(node.message)) continue
    // some messages have no time of their own: they were said when the one before them was
    at = seconds(node.message.create_time) ?? at
    found.push(messageOf(node.message, at))
  }
  return found
}

/** Old exports do not say which branch is current. */
function newestLeaf(nodes: readonly Record<string, unknown>[]): Record<string, unknown> | undefined {
  const time = (node: Record<string, unknown>): number =>
    isObject(node.message) ? (seconds(node.message.create_time) ?? 0) : 0
  const leaves = nodes.filter(({ children }) => !Array.isArray(children) || children.length === 0)
  return leaves.reduce<Record<string, unknown> | undefined>(
    (best, leaf) => (best === undefined || time(leaf) >= time(best) ? leaf : best),
    undefined,
  )
}

function messageOf(message: Record<string, unknown>, at: Millis | undefined): Incoming | string {
  const author = isObject(message.author) ? message.author : {}
  const content = isObject(message.content) ? message.content : {}
  const { role } = author
  const recipient = message.recipient ?? 'all'
  const forPython = recipient === 'python' && content.content_type === 'code'
  if (isObject(message.metadata) && message.metadata.is_visually_hidden_from_conversation === true)
    return 'is hidden in the conversation'
  if (role === 'system') return 'is an instruction of ChatGPT itself'
  if (role === 'tool' || (recipient !== 'all' && !forPython)) return 'is what a tool was asked or answered'
  if (role !== 'user' && role !== 'assistant') return `has the unknown role ${JSON.stringify(role)}`
  const text = textOf(content)
  return text === undefined
    ? `has content of the kind ${JSON.stringify(content.content_type)}`
    : { role, content: text, ...(at === undefined ? {} : { at }) }
}

/** What was said, or undefined for kinds of content that are not part of what was said. */
function textOf(content: Record<string, unknown>): string | undefined {
  const { content_type: kind, parts, text, language } = content
  if (kind === 'code')
    return `\`\`\`${language === 'unknown' ? '' : (textIn(language) ?? '')}\n${textIn(text) ?? ''}\n\`\`\``
  if (kind !== 'text' && kind !== 'multimodal_text') return undefined
  return (Array.isArray(parts) ? parts : [])
    .map(partOf)
    .filter((part) => part !== '')
    .join('\n')
}

function partOf(part: unknown): string {
  if (!isObject(part)) return textIn(part) ?? ''
  const kind = textIn(part.content_type) ?? ''
  if (typeof part.text === 'string') return part.text
  return kind.startsWith('image')
    ? '[image]'
    : kind.includes('audio')
      ? '[audio]'
      : kind.includes('video')
        ? '[video]'
        : '[file]'
}

const seconds = (value: unknown): Millis | undefined => (typeof value === 'number' ? timeIn(value * 1_000) : undefined)
