/** Tenants of the server under test. Each has a key and text that only it may see; the operator may see all. */
export type Caller = 'acme' | 'globex' | 'operator' | 'nobody'

/** A request with a caller's key. Names in braces, such as `{file}`, stand for ids of resources of acme. */
export type HttpStep = {
  readonly surface: 'http'
  readonly route: string
  readonly caller: Caller
  readonly method: string
  readonly path: string
  readonly headers: { readonly [name: string]: string }
  readonly body?: string
  /** Sends each character of the body as one byte, for bodies that are not UTF-8. */
  readonly isBinary?: boolean
}
/** Bytes on a connection of their own, one per character. */
export type RawStep = { readonly surface: 'raw'; readonly bytes: string }
/** A call of an MCP tool with an MCP client. */
export type ToolStep = { readonly surface: 'tool'; readonly name: string; readonly arguments: string }
/** A run of the command. `{folder}` stands for a temporary folder. */
export type CliStep = { readonly surface: 'cli'; readonly args: readonly string[]; readonly isProcess?: boolean }

export type Step = HttpStep | RawStep | ToolStep | CliStep

/** Text that only this tenant may see. */
export const canaries: Readonly<Record<'acme' | 'globex', string>> = {
  acme: 'canaryacmeqzv',
  globex: 'canaryglobexwxj',
}
