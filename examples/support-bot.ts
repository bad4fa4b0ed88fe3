// A support bot for several tenants: knowledge belongs to the tenant, and conversations by phone, e-mail and web chat
// end after 24 hours. Run: node support-bot.ts
// Needs: npm install threadkeep. In a checkout: npm run build, then node examples/support-bot.ts.
import { offlineModel, openMemory } from 'threadkeep'

// The profile keeps sessions in RAM, with limits on their age, size and number.
await using memory = await openMemory({ profile: 'support' })
const model = offlineModel()

// Knowledge of a tenant is shown in all of its sessions, and to no other tenant.
const returns = 'You can return a lamp within 30 days for a full refund.'
await memory.remember('acme', { category: 'domain', key: 'returns', value: returns })
await memory.remember('globex', { category: 'domain', key: 'returns', value: 'Returns are not possible.' })

/** Answers a message that arrived by some channel. */
async function answer(tenant: string, channel: string, content: string): Promise<string> {
  const key = `${tenant}:${channel}`
  await memory.append(key, [{ role: 'user', content }])
  const { messages, ledger } = await memory.context(key)
  let reply = ''
  for await (const chunk of model.reply({ messages })) reply += chunk
  await memory.append(key, [{ role: 'assistant', content: reply }], { answers: ledger })
  console.log(`[${key}] ${content}\n  ${reply}`)
  return reply
}

// Phone: the number is the session.
await answer('acme', '+15551234567', 'Hello, my order number is 12345.')
await answer('acme', '+15551234567', 'What is my order number?')
// E-mail: the address is the session.
await answer('acme', 'customer@example.com', 'Can I return a lamp for a refund?')
await answer('globex', 'customer@example.com', 'Can I return a lamp for a refund?')
// Web chat: the chat's id is the session. The caller moves to the chat, with everything said so far.
await memory.transfer('acme:+15551234567', 'acme:web_session_abc123')
await answer('acme', 'web_session_abc123', 'What is my order number, please?')

await memory.setMetadata('acme:web_session_abc123', { metadata: { agent: 'Kim' } })
console.log(`Ended: ${await memory.end('acme:web_session_abc123')}`)
