// A conversation with memory, in one process and without a key: node examples/chat.ts
// (With the package installed, import from 'threadkeep'.)
import { openMemory } from '../src/index.ts'
import { offlineModel } from '../src/providers/offline.ts'

await using memory = await openMemory({ profile: 'thread' })
const model = offlineModel()

for (const question of ['My cat is called Miso.', 'I live in Bergen.', 'What is my cat called?']) {
  await memory.append('demo:me', [{ role: 'user', content: question }])
  const { messages, ledger } = await memory.context('demo:me', { budget: 2_000 })
  let reply = ''
  for await (const word of model.reply({ messages })) reply += word
  await memory.append('demo:me', [{ role: 'assistant', content: reply }])
  console.log(`> ${question}\n${reply}\n(${ledger.spent} of ${ledger.budget} tokens)\n`)
}
