// onSessionEnd extracts feedback from a conversation when it ends, before its messages are gone.
// Run: node session-end.ts
// Needs: npm install threadkeep. In a checkout: npm run build, then node examples/session-end.ts.
import { openMemory } from 'threadkeep'

const hourMs = 3_600_000
let now = Date.parse('2026-01-05T09:00:00Z')

await using memory = await openMemory({
  profile: 'support',
  clock: () => now,
  // Called exactly once per session; a call that throws is repeated.
  onSessionEnd: async (key, { messages }, { reason }) => {
    const [tenant] = key.split(':')
    const wishes = messages.filter(({ role, content }) => role === 'user' && /\b(?:love|wish|hate)\b/.test(content))
    for (const { content } of wishes) console.log(`${tenant} (${reason}): ${content}`)
  },
})

await memory.append('acme:+15551234567', [
  { role: 'user', content: 'My lamp arrived. I wish it had a dimmer.' },
  { role: 'assistant', content: 'Thank you, I pass that on.' },
])
await memory.append('acme:customer@example.com', [{ role: 'user', content: 'I love the new shade.' }])

// One conversation is ended by the bot, the other one expires after 24 hours without a message.
await memory.end('acme:+15551234567')
now += 25 * hourMs
// Starts the calls; closing the memory waits for them.
await memory.sweep()
