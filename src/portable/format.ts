import { MemoryError } from '../domain/error.ts'
import { parseChatgpt } from './chatgpt.ts'
import { parseClaude } from './claude.ts'
import type { Foreign } from './foreign.ts'
import { parseOpenai } from './openai.ts'
import { marked } from './records.ts'
import { parseServerMemory } from './serverMemory.ts'

/** What `import` reads. */
export type Format = 'bundle' | ForeignFormat
export type ForeignFormat = 'chatgpt' | 'claude' | 'server-memory' | 'openai'

/** How many bytes of a file `detectFormat` needs to see. */
export const detectableWithin = 65_536

/** A quote that begins or ends a name or a text, never one inside a text: that is escaped. */
const field = (name: string, value: string): RegExp => new RegExp(`(?<!\\\\)"${name}"\\s*:\\s*${value}`)

/** In the order in which they are tried. */
const foreign: Readonly<
  Record<
    ForeignFormat,
    { readonly title: string; readonly begins: RegExp; readonly holds: RegExp; readonly parse: Parse }
  >
> = {
  chatgpt: {
    title: "ChatGPT's conversations.json",
    begins: /^[[{]/,
    holds: field('mapping', '\\{'),
    parse: parseChatgpt,
  },
  claude: {
    title: "Claude's conversations.json",
    begins: /^[[{]/,
    holds: field('chat_messages', '\\['),
    parse: parseClaude,
  },
  'server-memory': {
    title: 'the JSON Lines of the MCP server-memory',
    begins: /^\{/,
    holds: field('type', '"(entity|relation)"'),
    parse: parseServerMemory,
  },
  openai: {
    title: 'OpenAI-style JSON Lines of messages',
    begins: /^\{/,
    holds: field('(messages|role)', '["[]'),
    parse: parseOpenai,
  },
}
type Parse = (text: string, name?: string) => Foreign

/**
 * Recognises what a file is by its first `detectableWithin` bytes.
 *
 * @example
 * detectFormat('{"type":"entity","name":"Miso","entityType":"cat","observations":[]}') // 'server-memory'
 */
export function detectFormat(beginning: string | Uint8Array): Format {
  const text = (typeof beginning === 'string' ? beginning : new TextDecoder().decode(beginning))
    .replace(/^\ufeff/, '')
    .trimStart()
  if (text.startsWith(`{"bundle":"${marked.bundle}"`)) return 'bundle'
  for (const [format, { begins, holds }] of Object.entries(foreign))
    if (begins.test(text) && holds.test(text)) return format as ForeignFormat
  const known = Object.values(foreign).map(({ title }) => title)
  throw new MemoryError(
    'bad-bundle',
    `The file is none that can be imported: a Threadkeep bundle, ${known.join(', ')}. Give the file as it was downloaded, not an archive.`,
  )
}

/** Reads a file of another program; `name` names the session where the file does not. */
export const parseForeign = (format: ForeignFormat, text: string, name?: string): Foreign =>
  foreign[format].parse(text, name)
