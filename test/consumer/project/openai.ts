// A tool loop with the openai package and memory.
import OpenAI from 'openai'
import { openMemory } from 'threadkeep'

const client = new OpenAI({ baseURL: process.env.MODEL_URL ?? '', apiKey: 'any', maxRetries: 0 })
const tools: OpenAI.Chat.ChatCompletionTool[] = [
  { type: 'function', function: { name: 'weather', parameters: { type: 'object', properties: {} } } },
]
const image: OpenAI.Chat.ChatCompletionContentPart[] = [
  { type: 'text', text: 'What is the weather where this was taken?' },
  { type: 'image_url', image_url: { url: 'https://example.com/bern.png' } },
]

await using memory = await openMemory()
await memory.append('acme:ann', [{ role: 'user', content: image }])
for (;;) {
  const { messages } = await memory.context('acme:ann', { provider: 'openai' })
  const completion = await client.chat.completions.create({ model: 'any', messages, tools })
  const [choice] = completion.choices
  if (choice === undefined) throw new Error('The model did not answer.')
  await memory.append('acme:ann', [choice.message])
  const calls = choice.message.tool_calls ?? []
  if (calls.length === 0) break
  const results = calls.map(
    (call): OpenAI.Chat.ChatCompletionToolMessageParam => ({
      role: 'tool',
      tool_call_id: call.id,
      content: `sunny in ${call.type === 'function' ? call.function.arguments : ''}`,
    }),
  )
  await memory.append('acme:ann', results)
}
const plain: OpenAI.Chat.ChatCompletionMessageParam[] = (await memory.context('acme:ann')).messages
console.log(JSON.stringify(plain))
