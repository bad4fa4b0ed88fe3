import type { MessageInput } from '../../domain/chat.ts'
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
 * Parses `conversations.json` of a Claude data export: the newest branch if messages name their parents, otherwise all
 * messages in order. Text and the text of attachments are kept, files become placeholders; tool calls, tool results and
 * thoughts are skipped.
 */
export function parseClaude(text: string): ForeignData {
  const collector = new ConversationCollector()
  for (const [index, conversation] of parseJsonObjects(text, 'the conversations.json of Claude').entries()) {
    const { uuid, name, chat_messages: messages } = conversation
    if (typeof uuid !== 'string' || !Array.isArray(messages))
      collector.skip(`conversation ${index + 1}`, 'has no id or no messages')
    else
      collector.addConversation(
        { id: uuid, title: name },
        selectBranch(messages.filter(isObject)).map(parseClaudeMessage),
      )
  }
  return collector.result()
}

function selectBranch(messages: readonly JsonObject[]): readonly JsonObject[] {
  const byId = new Map(messages.map((message) => [message.uuid, message]))
  const parentOf = (message: JsonObject) => byId.get(message.parent_message_uuid ?? '')
  return messages.some((message) => parentOf(message) !== undefined)
    ? collectBranch(messages.at(-1), parentOf)
    : messages
}

/** Parses a message, or returns the reason why it is skipped. */
function parseClaudeMessage(message: JsonObject): MessageInput | string {
  const { sender, text, content, attachments, files, created_at: createdAt } = message
  const role = sender === 'human' ? 'user' : sender === 'assistant' ? 'assistant' : undefined
  if (role === undefined) return `has the unknown sender ${JSON.stringify(sender)}`
  const blocks = filterObjects(content)
  // `text` also mentions blocks that could not be shown, so it is used only without blocks.
  const texts =
    blocks.length === 0
      ? [asString(text) ?? '']
      : blocks.filter((block) => block.type === 'text').map((block) => asString(block.text) ?? '')
  const attachmentTexts = filterObjects(attachments).map((attachment) =>
    [`[attachment: ${fileNameOf(attachment)}]`, asString(attachment.extracted_content) ?? '']
      .filter(Boolean)
      .join('\n'),
  )
  const placeholders = filterObjects(files).map((file) => `[file: ${fileNameOf(file)}]`)
  const at = typeof createdAt === 'string' ? asTimestamp(Date.parse(createdAt)) : undefined
  return {
    role,
    content: [...texts, ...attachmentTexts, ...placeholders].filter((part) => part !== '').join('\n\n'),
    ...(at === undefined ? {} : { at }),
  }
}

const filterObjects = (value: unknown): readonly JsonObject[] => (Array.isArray(value) ? value.filter(isObject) : [])
const fileNameOf = (file: JsonObject): string => asString(file.file_name) || 'without a name'
