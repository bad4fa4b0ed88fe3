// A tool loop with thinking, with @anthropic-ai/sdk and memory.
import Anthropic from '@anthropic-ai/sdk'
import { openMemory } from 'threadkeep'

const client = new Anthropic({ baseURL: process.env.MODEL_URL ?? '', apiKey: 'any', maxRetries: 0 })
const tools: Anthropic.Tool[] = [{ name: 'weather', input_schema: { type: 'object' } }]

await using memory = await openMemory()
await memory.append('acme:ann', [
  { role: 'system', content: 'Be brief.' },
  { role: 'user', content: 'What is the weather in Bern?' },
])
for (;;) {
  const { system, messages } = await memory.context('acme:ann', { provider: 'anthropic' })
  const reply = await client.messages.create({
    model: 'any',
    max_tokens: 2_000,
    thinking: { type: 'enabled', budget_tokens: 1_024 },
    system,
    messages,
    tools,
  })
  await memory.append('acme:ann', [reply])
  const results = reply.content.flatMap((block): Anthropic.ToolResultBlockParam[] =>
    block.type === 'tool_use'
      ? [{ type: 'tool_result', tool_use_id: block.id, content: `sunny in ${JSON.stringify(block.input)}` }]
      : [],
  )
  if (results.length === 0) break
  await memory.append('acme:ann', [{ role: 'user', content: results }])
}
console.log(JSON.stringify((await memory.context('acme:ann')).messages))
