// The official OpenAI client with memory: only the base URL changes.
// Run: npx threadkeep serve, and in another terminal: node openai-client.ts
// Needs: npm install threadkeep openai. In a checkout: npm start, then node examples/openai-client.ts.
import OpenAI from 'openai'

const server = process.env.THREADKEEP_URL ?? 'http://127.0.0.1:4848'
// "demo:openai" is the session key: tenant "demo", session "openai". The server answers without a key of OpenAI.
const client = new OpenAI({ baseURL: `${server}/v1/demo:openai`, apiKey: 'any' })

await client.chat.completions.create({ model: 'any', messages: [{ role: 'user', content: 'My cat is called Miso.' }] })

// Send only the new question: Threadkeep adds the earlier messages.
const stream = await client.chat.completions.create({
  model: 'any',
  messages: [{ role: 'user', content: 'What is my cat called?' }],
  stream: true,
})
for await (const chunk of stream) process.stdout.write(chunk.choices[0]?.delta.content ?? '')
process.stdout.write('\n')
