// The AI SDK with memory in the same process: contexts go to generateText, and its messages go back to memory.
// Run: npx threadkeep serve, which answers as the model, and in another terminal: node ai-sdk.ts
// Needs: npm install threadkeep ai @ai-sdk/openai-compatible. In a checkout: npm run build, npm start, then this file.
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { generateText } from 'ai'
import { openMemory } from 'threadkeep'

const server = process.env.THREADKEEP_URL ?? 'http://127.0.0.1:4848'
// Any model of the AI SDK works here. Without a session in its URL, the server is a model and stores nothing.
const provider = createOpenAICompatible({ name: 'local', baseURL: `${server}/v1`, apiKey: 'any' })

await using memory = await openMemory()
await memory.append('demo:ai-sdk', [{ role: 'system', content: 'Answer in one sentence.' }])
for (const question of ['My cat is called Miso.', 'I live in Bergen.', 'What is my cat called?']) {
  await memory.append('demo:ai-sdk', [{ role: 'user', content: question }])
  const { instructions, messages, ledger } = await memory.context('demo:ai-sdk', { provider: 'ai-sdk', budget: 2_000 })
  const result = await generateText({ model: provider('any'), instructions, messages })
  await memory.append('demo:ai-sdk', result.responseMessages, { answers: ledger })
  console.log(`> ${question}\n${result.text}\n`)
}
