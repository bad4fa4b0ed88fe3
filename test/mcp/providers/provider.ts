import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type NodeIncomingMessageLike, toNodeHandler } from '@modelcontextprotocol/node'
import { createMcpHandler, McpServer, ProtocolError, ResourceTemplate } from '@modelcontextprotocol/server'
import { serveStdio } from '@modelcontextprotocol/server/stdio'
import { z } from 'zod'

/**
 * Context provider for tests: `provider.ts stdio` or `provider.ts http`, optionally followed by a fault at startup. Its tools
 * have faults of their own.
 */
const [transport, fault] = process.argv.slice(2)
if (process.env.PID_FILE !== undefined) writeFileSync(process.env.PID_FILE, `${process.pid}`)

const textResult = (text: string) => ({ content: [{ type: 'text' as const, text }] })
const never = new Promise<never>(() => undefined)

function flood(): never {
  for (;;)
    process.stdout.write(
      `${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'x'.repeat(1_000) } })}\n`,
    )
}

function createProvider(): McpServer {
  const server = new McpServer({ name: 'provider', version: '1.0.0' })
  server.registerTool('echo', { inputSchema: z.looseObject({}) }, async (input) => textResult(JSON.stringify(input)))
  server.registerTool('environment', {}, async () => textResult(Object.keys(process.env).sort().join(' ')))
  server.registerTool('long', {}, async () => textResult('x'.repeat(30_000)))
  server.registerTool('huge', {}, async () => textResult('x'.repeat(5_000_000)))
  server.registerTool('escapes', {}, async () => textResult('red \u001b[31m\u0000text\ud83d'))
  server.registerTool('pictures', {}, async () => ({
    content: [{ type: 'image', data: 'AAAA', mimeType: 'image/png' }],
  }))
  server.registerTool('fails', {}, async () => ({ ...textResult('no such\nticket'), isError: true }))
  server.registerTool('tells', {}, async () => ({
    ...textResult(`the key ${process.env.TICKETS_KEY} is wrong`),
    isError: true,
  }))
  server.registerTool('hangs', {}, () => never)
  server.registerTool('dies', {}, () => process.exit(1))
  server.registerTool('floods', {}, () => flood())
  server.registerTool('nonsense', {}, () => {
    for (let n = 0; n < 1_000; n++) process.stdout.write('}{ nonsense \u0000\n[]\n{"jsonrpc":"2.0"}\n')
    return never
  })
  const notes = new ResourceTemplate('notes://{workspace}', { list: undefined })
  server.registerResource('notes', notes, {}, async (uri) => ({
    contents: [{ uri: uri.href, text: `notes at ${uri.href}` }],
  }))
  server.registerResource('leaks', 'leaks://all', {}, () => {
    throw new ProtocolError(-32_000, `the key ${process.env.TICKETS_KEY} \u001b[2J is wrong`)
  })
  return server
}

if (fault === 'stubborn') {
  process.on('SIGTERM', () => undefined)
  setInterval(() => undefined, 1_000)
} else if (fault === 'ends') process.exit(3)
else if (fault === 'floods') flood()
else if (transport === 'stdio') serveStdio(createProvider)
else {
  const handle = toNodeHandler(createMcpHandler(createProvider))
  const server = createServer((request, response) => void handle(request as NodeIncomingMessageLike, response))
  server.listen(0, '127.0.0.1', () =>
    process.stdout.write(`http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp\n`),
  )
}
