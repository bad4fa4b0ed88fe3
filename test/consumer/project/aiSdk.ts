// A tool loop with the ai package and memory.
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { generateText, isStepCount, jsonSchema, tool } from 'ai'
import { openMemory } from 'threadkeep'

const provider = createOpenAICompatible({ name: 'local', baseURL: process.env.MODEL_URL ?? '', apiKey: 'any' })
const weather = tool({
  inputSchema: jsonSchema<{ city: string }>({ type: 'object', properties: { city: { type: 'string' } } }),
  execute: async ({ city }) => ({ sky: 'sunny', city }),
})

await using memory = await openMemory()
await memory.append('acme:ann', [
  { role: 'system', content: 'Be brief.' },
  { role: 'user', content: 'What is the weather in Bern?' },
])
for (const question of [undefined, 'And tomorrow?']) {
  if (question !== undefined) await memory.append('acme:ann', [{ role: 'user', content: question }])
  const { instructions, messages } = await memory.context('acme:ann', { provider: 'ai-sdk' })
  const result = await generateText({
    model: provider('any'),
    instructions,
    messages,
    tools: { weather },
    stopWhen: isStepCount(3),
  })
  await memory.append('acme:ann', result.responseMessages)
}
console.log(JSON.stringify((await memory.context('acme:ann')).messages))
