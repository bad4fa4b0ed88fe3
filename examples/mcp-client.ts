// An MCP client that starts Threadkeep as a server on standard input and output, and uses its tools.
// Run: node mcp-client.ts
// Needs: npm install threadkeep @modelcontextprotocol/client. In a checkout: npm run build, then this file.
import { fileURLToPath } from 'node:url'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'

// The same as the command npx threadkeep mcp.
const command = fileURLToPath(new URL('dist/cli/main.js', import.meta.resolve('threadkeep/package.json')))
const client = new Client({ name: 'example', version: '1.0.0' })
await client.connect(new StdioClientTransport({ command: process.execPath, args: [command, 'mcp', '--store', 'ram:'] }))

/** Calls a tool and returns its text. */
async function call(name: string, args: Record<string, unknown>): Promise<string> {
  const { content } = await client.callTool({ name, arguments: args })
  return content.map((block) => (block.type === 'text' ? block.text : '')).join('\n')
}

// One chat saves its conversation, and another chat continues it.
const messages = [
  { role: 'user', content: 'Rename the function parse in src/parse.ts to parseDate.' },
  { role: 'assistant', content: 'Done. The tests in test/parse.test.ts still use the old name.' },
]
await call('save_session', { workspace: 'my-project', messages })
console.log(await call('restore_session', { workspace: 'my-project', tokenBudget: 1_000 }))
await client.close()
