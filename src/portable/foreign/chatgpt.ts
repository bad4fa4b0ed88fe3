import type { MessageInput } from '../../domain/chat.ts'
import type { Millis } from '../../domain/entry.ts'
import { isObject } from '../../domain/error.ts'
import {
  asString,
  asTimestamp,
  ConversationCollector,
  collectBranch,
  type ForeignData,
  parseJsonObjects,
} from './conversations.ts'

type JsonObject = Record<string, unknown>

/**
 * Parses `conversations.json` of a ChatGPT data export. Of each conversation's message tree, the branch of the current
 * node is imported. Text and code are kept, media become placeholders; tool calls, tool results, thoughts and hidden
 * messages are skipped.
 */
export function parseChatgpt(text: string): ForeignData {
  const collector = new ConversationCollector()
  for (const [index, conversation] of parseJsonObjects(text, 'the conversations.json of ChatGPT').entries()) {
    const { mapping, title } = conversation
    const id = asString(conversation.conversation_id) ?? asString(conversation.id)
    if (!isObject(mapping) || id === undefined) {
      collector.skip(`conversation ${index + 1}`, 'has no id or no messages')
      continue
    }
    const createdAt = secondsToMillis(conversation.create_time)
    collector.addConversation({ id, title }, parseMessages(mapping, asString(conversation.current_node), createdAt))
  }
  return collector.result()
}

function parseMessages(
  mapping: JsonObject,
  currentNode: string | undefined,
  createdAt: Millis | undefined,
): (MessageInput | string)[] {
  const nodes = new Map(Object.entries(mapping).filter((entry): entry is [string, JsonObject] => isObject(entry[1])))
  const leaf = (currentNode === undefined ? undefined : nodes.get(currentNode)) ?? findNewestLeaf([...nodes.values()])
  let at = createdAt
  const messages: (MessageInput | string)[] = []
  for (const node of collectBranch(leaf, ({ parent }) => nodes.get(asString(parent) ?? ''))) {
    if (!isObject(node.message)) continue
    // A message without a time gets that of the message before it.
    at = secondsToMillis(node.message.create_time) ?? at
    messages.push(parseChatgptMessage(node.message, at))
  }
  return messages
}

/** Finds the newest leaf, because old exports do not name the current node. */
function findNewestLeaf(nodes: readonly JsonObject[]): JsonObject | undefined {
  const timeOf = (node: JsonObject): number =>
    isObject(node.message) ? (secondsToMillis(node.message.create_time) ?? 0) : 0
  const leaves = nodes.filter(({ children }) => !Array.isArray(children) || children.length === 0)
  return leaves.reduce<JsonObject | undefined>(
    (newest, leaf) => (newest === undefined || timeOf(leaf) >= timeOf(newest) ? leaf : newest),
    undefined,
  )
}

/** Parses a message, or returns the reason why it is skipped. */
function parseChatgptMessage(message: JsonObject, at: Millis | undefined): MessageInput | string {
  const author = isObject(message.author) ? message.author : {}
  const content = isObject(message.content) ? message.content : {}
  const { role } = author
  const recipient = message.recipient ?? 'all'
  const isPythonCode = recipient === 'python' && content.content_type === 'code'
  if (isObject(message.metadata) && message.metadata.is_visually_hidden_from_conversation === true)
    return 'is hidden in the conversation'
  if (role === 'system') return 'is an instruction of ChatGPT itself'
  if (role === 'tool' || (recipient !== 'all' && !isPythonCode)) return 'is a tool call or a tool result'
  if (role !== 'user' && role !== 'assistant') return `has the unknown role ${JSON.stringify(role)}`
  const text = parseContent(content)
  return text === undefined
    ? `has content of the unsupported type ${JSON.stringify(content.content_type)}`
    : { role, content: text, ...(at === undefined ? {} : { at }) }
}

/** Returns the text of a message, or undefined for unsupported content types. */
function parseContent(content: JsonObject): string | undefined {
  const { content_type: type, parts, text, language } = content
  if (type === 'code')
    return `\`\`\`${language === 'unknown' ? '' : (asString(language) ?? '')}\n${asString(text) ?? ''}\n\`\`\``
  if (type !== 'text' && type !== 'multimodal_text') return undefined
  return (Array.isArray(parts) ? parts : [])
    .map(parsePart)
    .filter((part) => part !== '')
    .join('\n')
}

function parsePart(part: unknown): string {
  if (!isObject(part)) return asString(part) ?? ''
  if (typeof part.text === 'string') return part.text
  const type = asString(part.content_type) ?? ''
  if (type.startsWith('image')) return '[image]'
  if (type.includes('audio')) return '[audio]'
  return type.includes('video') ? '[video]' : '[file]'
}

const secondsToMillis = (value: unknown): Millis | undefined =>
  typeof value === 'number' ? asTimestamp(value * 1_000) : undefined
