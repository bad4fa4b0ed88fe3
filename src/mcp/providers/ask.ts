import type { CallToolResult, Client, ContentBlock, ReadResourceResult } from '@modelcontextprotocol/client'
import { isObject } from '../../domain/checks.ts'
import { MemoryError } from '../../domain/error.ts'
import { clip } from '../../text/clip.ts'
import { type About, most, type ProviderConfig } from './config.ts'

/** Asks a connected provider what it is configured to be asked, and takes of its answer what is text, within bounds. */
export async function ask(client: Client, config: ProviderConfig, about: About, signal: AbortSignal): Promise<string> {
  const known = { ...about, text: clip(about.text, most.asked, '…') }
  const { tool, resource, arguments: given = {} } = config
  if (tool === undefined) {
    const uri = filled(resource ?? '', known, encodeURIComponent)
    return bounded(resourceText(await client.readResource({ uri }, { signal })))
  }
  const answer = await client.callTool(
    { name: tool, arguments: filledIn(given, known) as Record<string, unknown> },
    { signal },
  )
  const text = bounded(toolText(answer))
  if (answer.isError === true) throw new MemoryError('upstream', `it answered with an error: ${text}`)
  return text
}

/**
 * A text with what is asked about in the places that stand for it; nothing in what is filled in is filled in again.
 *
 * @example
 * filled('about {workspace}: {text}', { workspace: 'shop', session: 's', text: '{session}' }) // 'about shop: {session}'
 */
export function filled(template: string, about: About, made: (text: string) => string = (text) => text): string {
  return template.replaceAll(/\{(workspace|session|text)\}/g, (_, name: keyof About) => made(about[name]))
}

function filledIn(value: unknown, about: About): unknown {
  if (typeof value === 'string') return filled(value, about)
  if (Array.isArray(value)) return value.map((item) => filledIn(item, about))
  return isObject(value)
    ? Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, filledIn(inner, about)]))
    : value
}

function toolText({ content = [], structuredContent }: CallToolResult): string {
  const text = content
    .map(blockText)
    .filter((part) => part !== '')
    .join('\n')
  return text === '' && structuredContent !== undefined ? JSON.stringify(structuredContent) : text
}

function blockText(block: ContentBlock): string {
  if (block.type === 'text') return block.text
  return block.type === 'resource' && 'text' in block.resource ? block.resource.text : ''
}

const resourceText = ({ contents }: ReadResourceResult): string =>
  contents.map((part) => ('text' in part ? part.text : '')).join('\n')

/** Text without what a terminal would obey, and not too much of it. */
const bounded = (text: string): string =>
  clip(
    text
      .slice(0, 2 * most.answered)
      .toWellFormed()
      .replaceAll(/[^\P{Cc}\n\t]/gu, ''),
    most.answered,
    '…',
  ).trim()
