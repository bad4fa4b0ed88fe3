/** A program that holds a conversation and keeps silent about it: what is said comes in on stdin, so that no argument tells it. */
import { readFileSync } from 'node:fs'
import { type MemoryOptions, openMemory } from '../../src/index.ts'

export type Conversation = MemoryOptions & { readonly key: string; readonly says: string }

const { key, says, ...options } = JSON.parse(readFileSync(0, 'utf8')) as Conversation
const memory = await openMemory(options)

if (options.store !== undefined)
  await memory.remember('tenant', { category: 'domain', key: 'opening hours', value: 'nine to five' })

await memory.append(key, [
  { role: 'user', content: `First of all: ${says}`, name: 'ann' },
  {
    role: 'assistant',
    content: null,
    tool_calls: [{ id: 'c1', function: { name: 'look', arguments: JSON.stringify({ for: says }) } }],
  },
  { role: 'tool', tool_call_id: 'c1', content: `${says} was found.` },
])
for (let turn = 0; turn < 60; turn++) {
  await memory.append(key, [
    { role: 'user', content: `${turn}: ${says}?` },
    { role: 'assistant', content: `${turn}: ${says}. ${'And more of it. '.repeat(turn)}` },
  ])
  if (turn % 10 === 0) await memory.context(key, { query: `What about ${says}?`, budget: 500 })
}
const { messages } = await memory.context(key)
await memory.forget({ key, messageId: 'm100' })
await memory.sweep()
process.stdout.write(`${JSON.stringify(messages).includes(says)}\n`)
await memory.close()
