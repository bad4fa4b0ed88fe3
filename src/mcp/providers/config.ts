import type { Millis } from '../../domain/entry.ts'

/** When a provider is asked. */
export type Occasion = 'save' | 'restore'

/** What it is asked about: `{workspace}`, `{session}` and `{text}` in its arguments and in the address of its resource stand for these. */
export type About = { readonly workspace: string; readonly session: string; readonly text: string }

/** A program that is started and spoken to over its standard input and output, or an address. */
type Whereabouts =
  | { readonly command: string; readonly args?: readonly string[]; readonly env?: Readonly<Record<string, string>> }
  | { readonly url: string; readonly headers?: Readonly<Record<string, string>> }

/** Another MCP server, and which of its tools or resources is asked for context. */
export type ProviderConfig = Whereabouts & {
  readonly tool?: string
  readonly arguments?: Readonly<Record<string, unknown>>
  readonly resource?: string
  /** How long it may take, from start to answer; 5 seconds unless told. */
  readonly timeout?: Millis
  /** On saving and on restoring unless told. */
  readonly on?: readonly Occasion[]
}

/** Of what it is asked about and of what it answers, so many characters count; messages of more bytes are not read to their end. */
export const most = { asked: 4_000, answered: 20_000, bytes: 1_048_576 }
