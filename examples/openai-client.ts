// OpenAI's own client with memory, by nothing but another base address.
// Start the server (npm start), then: node examples/openai-client.ts
import OpenAI from 'openai'

const server = process.env.THREADKEEP_URL ?? 'http://127.0.0.1:4848'
const client = new OpenAI({ baseURL: `${server}/v1/demo:me`, apiKey: process.env.OPENAI_API_KEY ?? 'none' })

await client.chat.completions.create({ model: 'any', messages: [{ role: 'user', content: 'My cat is called Miso.' }] })

// Only the new question is sent: Threadkeep adds what was said before.
const stream = await client.chat.completions.create({
  model: 'any',
  messages: [{ role: 'user', content: 'What is my cat called?' }],
  stream: true,
})
for await (const chunk of stream) process.stdout.write(chunk.choices[0]?.delta.content ?? '')
process.stdout.write('\n')
