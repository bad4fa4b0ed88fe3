import type { CallToolResult, Client, ContentBlock, ReadResourceResult } from '@modelcontextprotocol/client'
import type { Millis } from '../../domain/entry.ts'
import { MemoryError } from '../../domain/error.ts'
import { clip } from '../../text/clip.ts'
import { mapJsonStrings } from '../../text/json.ts'

/** Event on which a provider is queried. */
export type Occasion = 'save' | 'restore'

/**
 * Values of the placeholders `{workspace}`, `{session}` and `{text}` in the arguments and the resource URI of a
 * provider.
 */
export type QueryVariables = { readonly workspace: string; readonly session: string; readonly text: string }

/** Program to start and speak to over stdio, or URL of a Streamable HTTP server. */
type Endpoint =
  | { readonly command: string; readonly args?: readonly string[]; readonly env?: Readonly<Record<string, string>> }
  | { readonly url: string; readonly headers?: Readonly<Record<string, string>> }

/** MCP server used as a context provider: exactly one of `tool` and `resource` is given. */
export type ProviderConfig = Endpoint & {
  readonly tool?: string
  readonly arguments?: Readonly<Record<string, unknown>>
  readonly resource?: string
  /** Time from start to answer; 5 seconds by default. */
  readonly timeout?: Millis
  /** Both by default. */
  readonly on?: readonly Occasion[]
}

export const providerLimits = { maxQueryChars: 4_000, maxAnswerChars: 20_000, maxMessageBytes: 1_048_576 }

/** Calls the configured tool, or reads the configured resource, and returns the text of the answer, clipped. */
export async function queryProvider(
  client: Client,
  config: ProviderConfig,
  variables: QueryVariables,
  signal: AbortSignal,
): Promise<string> {
  const clipped = { ...variables, text: clip(variables.text, providerLimits.maxQueryChars, '…') }
  const { tool, resource, arguments: args = {} } = config
  if (tool === undefined) {
    const uri = fillTemplate(resource ?? '', clipped, encodeURIComponent)
    return sanitize(resourceText(await client.readResource({ uri }, { signal })))
  }
  const answer = await client.callTool(
    { name: tool, arguments: mapJsonStrings(args, (text) => fillTemplate(text, clipped)) as Record<string, unknown> },
    { signal },
  )
  const text = sanitize(toolText(answer))
  if (answer.isError === true) throw new MemoryError('upstream', `it answered with an error: ${text}`)
  return text
}

/**
 * Replaces the placeholders of a template. Placeholders inside inserted values are not replaced.
 *
 * @example
 * fillTemplate('about {workspace}: {text}', { workspace: 'shop', session: 's', text: '{session}' }) // 'about shop: {session}'
 */
export function fillTemplate(
  template: string,
  variables: QueryVariables,
  encode: (text: string) => string = (text) => text,
): string {
  return template.replaceAll(/\{(workspace|session|text)\}/g, (_, name: keyof QueryVariables) =>
    encode(variables[name]),
  )
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

/** Removes control characters and clips the text. */
const sanitize = (text: string): string =>
  clip(
    text
      .slice(0, 2 * providerLimits.maxAnswerChars)
      .toWellFormed()
      .replaceAll(/[^\P{Cc}\n\t]/gu, ''),
    providerLimits.maxAnswerChars,
    '…',
  ).trim()

/** Rejects when the signal fires, even if the work ignores it. */
export function rejectOnAbort<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  const aborted = new Promise<never>((_, reject) => {
    if (signal.aborted) reject(signal.reason)
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
  return Promise.race([work, aborted])
}
