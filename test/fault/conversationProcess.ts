/** Program that holds a conversation about a secret without printing it. The input comes from stdin, because arguments are visible to others. */
import { readFileSync } from 'node:fs'
import { type MemoryOptions, openMemory } from '../../src/index.ts'

export type ConversationInput = MemoryOptions & { readonly key: string; readonly secret: string }

const { key, secret, ...options } = JSON.parse(readFileSync(0, 'utf8')) as ConversationInput
const memory = await openMemory(options)

if (options.store !== undefined)
  await memory.remember('tenant', { category: 'domain', key: 'opening hours', value: 'nine to five' })

await memory.append(key, [
  { role: 'user', content: `First of all: ${secret}`, name: 'ann' },
  {
    role: 'assistant',
    content: null,
    tool_calls: [{ id: 'c1', function: { name: 'look', arguments: JSON.stringify({ for: secret }) } }],
  },
  { role: 'tool', tool_call_id: 'c1', content: `${secret} was found.` },
])
for (let turn = 0; turn < 60; turn++) {
  await memory.append(key, [
    { role: 'user', content: `${turn}: ${secret}?` },
    { role: 'assistant', content: `${turn}: ${secret}. ${'And more of it. '.repeat(turn)}` },
  ])
  if (turn % 10 === 0) await memory.context(key, { query: `What about ${secret}?`, budget: 500 })
}
const { messages } = await memory.context(key)
await memory.forget({ key, messageId: 'm100' })
await memory.sweep()
process.stdout.write(`${JSON.stringify(messages).includes(secret)}\n`)
await memory.close()
