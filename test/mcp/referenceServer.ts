import { rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'

export type ToolAnswer = { readonly content: unknown; readonly structuredContent: unknown; readonly isError: boolean }

export type ToolCaller = {
  readonly client: Client
  call(name: string, input: Readonly<Record<string, unknown>>): Promise<ToolAnswer>
}

export const toolCaller = (client: Client): ToolCaller => ({
  client,
  call: async (name, input) => {
    const { content, structuredContent, isError = false } = await client.callTool({ name, arguments: input })
    return { content, structuredContent, isError: isError === true }
  },
})

/** Starts the reference memory server. It reads its file for every call, so `reset` empties it by deleting the file. */
export async function referenceServer(file: string): Promise<ToolCaller & AsyncDisposable & { reset(): void }> {
  const server = fileURLToPath(import.meta.resolve('@modelcontextprotocol/server-memory/dist/index.js'))
  const client = new Client({ name: 'comparison', version: '1.0.0' })
  const env = { PATH: process.env.PATH ?? '', MEMORY_FILE_PATH: file }
  await client.connect(new StdioClientTransport({ command: process.execPath, args: [server], env, stderr: 'ignore' }))
  return {
    ...toolCaller(client),
    reset: () => rmSync(file, { force: true }),
    [Symbol.asyncDispose]: () => client.close(),
  }
}
