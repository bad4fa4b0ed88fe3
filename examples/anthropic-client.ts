// The official Anthropic client with memory: only the base URL changes.
// Run: npx threadkeep serve, and in another terminal: node anthropic-client.ts
// Needs: npm install threadkeep @anthropic-ai/sdk. In a checkout: npm start, then node examples/anthropic-client.ts.
import Anthropic from '@anthropic-ai/sdk'

const server = process.env.THREADKEEP_URL ?? 'http://127.0.0.1:4848'
// "demo:anthropic" is the session key: tenant "demo", session "anthropic". The server answers without a key of Anthropic.
const client = new Anthropic({ baseURL: `${server}/v1/demo:anthropic`, apiKey: 'any' })

const ask = (content: string): Promise<Anthropic.Message> =>
  client.messages.create({ model: 'any', max_tokens: 200, messages: [{ role: 'user', content }] })

await ask('My cat is called Miso.')
// Send only the new question: Threadkeep adds the earlier messages.
const reply = await ask('What is my cat called?')
for (const block of reply.content) if (block.type === 'text') console.log(block.text)
