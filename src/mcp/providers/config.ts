import type { Millis } from '../../domain/entry.ts'

/** Event on which a provider is queried. */
export type Occasion = 'save' | 'restore'

/** Values of the placeholders `{workspace}`, `{session}` and `{text}` in the arguments and the resource URI of a provider. */
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
