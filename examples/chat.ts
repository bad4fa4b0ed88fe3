// Chat with memory in one process, without a server and without an API key.
// Run: node chat.ts
// Needs: npm install threadkeep. In a checkout: npm run build, then node examples/chat.ts.
import { offlineModel, openMemory } from 'threadkeep'

await using memory = await openMemory({ profile: 'thread' })
// Stands in for a language model: replies by quoting the messages it is shown.
const model = offlineModel()

for (const question of ['My cat is called Miso.', 'I live in Bergen.', 'What is my cat called?']) {
  // 1. Store the user's message.
  await memory.append('demo:me', [{ role: 'user', content: question }])
  // 2. Build the context: the messages to send to the model, and the ledger that explains the selection.
  const { messages, ledger } = await memory.context('demo:me', { budget: 2_000 })
  // 3. Call the model, and store its reply.
  let reply = ''
  for await (const chunk of model.reply({ messages })) reply += chunk
  await memory.append('demo:me', [{ role: 'assistant', content: reply }])
  console.log(`> ${question}\n${reply}\n(${ledger.spent} of ${ledger.budget} tokens)\n`)
}
