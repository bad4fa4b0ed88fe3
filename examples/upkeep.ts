// Upkeep: old messages become a summary, and facts are extracted from the user's messages.
// Run: node upkeep.ts
// Needs: npm install threadkeep. In a checkout: npm run build, then node examples/upkeep.ts.
import { openMemory } from 'threadkeep'

await using memory = await openMemory({ profile: 'summary' })
const userMessages = [
  'I prefer dark mode. My password is hunter22.',
  'The key finding is that bees sleep. See https://example.com/bees.',
  'Actually I prefer light mode now.',
  'Never deploy on Fridays.',
]
const longReply = `Noted. ${'Bees are a wide field, and there is much more to say about them. '.repeat(60)}`
for (const content of userMessages)
  await memory.append('acme:ann', [
    { role: 'user', content },
    { role: 'assistant', content: longReply },
  ])
await memory.append('acme:ann', [{ role: 'user', content: 'What shall we do next?' }])

const { ledger } = await memory.context('acme:ann')
const { important_data, summary_version, messages_summarized_count } = await memory.upkeep.record('acme:ann')
console.log(
  `Summary ${summary_version} covers ${messages_summarized_count} messages. Context: ${ledger.spent} of ${ledger.budget} tokens.`,
)
console.log(`Preferences: ${JSON.stringify(important_data.user_preferences)}`)
console.log(`Facts: ${important_data.important_facts.join('; ')}`)
console.log(`Sources: ${important_data.source_urls.join(', ')}`)

// Secrets are masked before they are stored.
const [first] = await memory.transcript('acme:ann', { limit: 1 })
console.log(`Stored: ${first?.content.replace(/\d+(?=⟩)/, '…')}`)
