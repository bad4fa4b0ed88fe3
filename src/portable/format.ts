import { MemoryError } from '../domain/error.ts'
import { parseChatgpt } from './foreign/chatgpt.ts'
import { parseClaude } from './foreign/claude.ts'
import type { ForeignData } from './foreign/conversations.ts'
import { parseOpenai } from './foreign/openai.ts'
import { parseServerMemory } from './foreign/serverMemory.ts'
import { bundleHeader } from './records.ts'

/** Formats that can be imported. */
export type Format = 'bundle' | ForeignFormat
export type ForeignFormat = 'chatgpt' | 'claude' | 'server-memory' | 'openai'

/** The number of leading bytes that `detectFormat` needs. */
export const formatDetectionBytes = 65_536

type ForeignParser = {
  readonly title: string
  readonly startPattern: RegExp
  readonly contentPattern: RegExp
  readonly parse: (text: string, name?: string) => ForeignData
}

/** Matches a field. The lookbehind excludes quotes inside strings, which are escaped. */
const field = (name: string, value: string): RegExp => new RegExp(`(?<!\\\\)"${name}"\\s*:\\s*${value}`)

/** Formats in the order in which they are tried. */
const foreignParsers: Readonly<Record<ForeignFormat, ForeignParser>> = {
  chatgpt: {
    title: "ChatGPT's conversations.json",
    startPattern: /^[[{]/,
    contentPattern: field('mapping', '\\{'),
    parse: parseChatgpt,
  },
  claude: {
    title: "Claude's conversations.json",
    startPattern: /^[[{]/,
    contentPattern: field('chat_messages', '\\['),
    parse: parseClaude,
  },
  'server-memory': {
    title: 'the JSON Lines of the MCP server-memory',
    startPattern: /^\{/,
    contentPattern: field('type', '"(entity|relation)"'),
    parse: parseServerMemory,
  },
  openai: {
    title: 'OpenAI-style JSON Lines of messages',
    startPattern: /^\{/,
    contentPattern: field('(messages|role)', '["[]'),
    parse: parseOpenai,
  },
}

/**
 * Detects the format of a file from its first `formatDetectionBytes` bytes.
 *
 * @throws MemoryError `bad-bundle` for an unknown format.
 *
 * @example
 * detectFormat('{"type":"entity","name":"Miso","entityType":"cat","observations":[]}') // 'server-memory'
 */
export function detectFormat(beginning: string | Uint8Array): Format {
  const text = (typeof beginning === 'string' ? beginning : new TextDecoder().decode(beginning))
    .replace(/^\ufeff/, '')
    .trimStart()
  if (text.startsWith(`{"bundle":"${bundleHeader.bundle}"`)) return 'bundle'
  for (const [format, { startPattern, contentPattern }] of Object.entries(foreignParsers))
    if (startPattern.test(text) && contentPattern.test(text)) return format as ForeignFormat
  const titles = Object.values(foreignParsers).map(({ title }) => title)
  throw new MemoryError(
    'bad-bundle',
    `Unknown file format. Use one of: a Threadkeep bundle, ${titles.join(', ')}. Give the file as it was downloaded, not an archive.`,
  )
}

/** Parses a file of another program; `name` names the session when the file does not. */
export const parseForeign = (format: ForeignFormat, text: string, name?: string): ForeignData =>
  foreignParsers[format].parse(text, name)
