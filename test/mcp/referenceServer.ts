import { rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'

/** What a tool answers, as far as clients read it. */
export type Answer = { readonly content: unknown; readonly structuredContent: unknown; readonly isError: boolean }

/** A server behind a pipe, and how to ask it. */
export type Asked = {
  readonly client: Client
  call(name: string, input: Readonly<Record<string, unknown>>): Promise<Answer>
}

/** Asks whatever a client is connected to. */
export const asking = (client: Client): Asked => ({
  client,
  call: async (name, input) => {
    const { content, structuredContent, isError = false } = await client.callTool({ name, arguments: input })
    return { content, structuredContent, isError: isError === true }
  },
})

/** The reference memory server with its file. It reads the file again for every call: without it, it knows nothing. */
export async function referenceServer(file: string): Promise<Asked & AsyncDisposable & { forget(): void }> {
  const server = fileURLToPath(import.meta.resolve('@modelcontextprotocol/server-memory/dist/index.js'))
  const client = new Client({ name: 'comparison', version: '1.0.0' })
  const env = { PATH: process.env.PATH ?? '', MEMORY_FILE_PATH: file }
  await client.connect(new StdioClientTransport({ command: process.execPath, args: [server], env, stderr: 'ignore' }))
  return { ...asking(client), forget: () => rmSync(file, { force: true }), [Symbol.asyncDispose]: () => client.close() }
}
