// The official OpenAI client with memory: only the base URL changes.
// Start the server with npm start, then run: node examples/openai-client.ts
import OpenAI from 'openai'

const server = process.env.THREADKEEP_URL ?? 'http://127.0.0.1:4848'
// "demo:me" is the session key: tenant "demo", session "me".
const client = new OpenAI({ baseURL: `${server}/v1/demo:me`, apiKey: process.env.OPENAI_API_KEY ?? 'none' })

await client.chat.completions.create({ model: 'any', messages: [{ role: 'user', content: 'My cat is called Miso.' }] })

// Send only the new question: Threadkeep adds the earlier messages.
const stream = await client.chat.completions.create({
  model: 'any',
  messages: [{ role: 'user', content: 'What is my cat called?' }],
  stream: true,
})
for await (const chunk of stream) process.stdout.write(chunk.choices[0]?.delta.content ?? '')
process.stdout.write('\n')
