// What is old becomes small: a long talk, its summary and what its user said that matters. Run: node examples/upkeep.ts
import { openMemory } from '../src/index.ts'

await using memory = await openMemory({ profile: 'summary' })
const said = [
  'I prefer dark mode. My password is hunter22.',
  'The key finding is that bees sleep. See https://example.com/bees.',
  'Never deploy on Fridays.',
  'Actually I prefer light mode now.',
]
for (const content of said) {
  await memory.append('acme:ann', [
    { role: 'user', content },
    {
      role: 'assistant',
      content: `Noted. ${'Bees are a wide field, and there is much more to say about them. '.repeat(60)}`,
    },
  ])
}
await memory.append('acme:ann', [{ role: 'user', content: 'What shall we do next?' }])
const { ledger } = await memory.context('acme:ann')
const { important_data, summary_version, messages_summarized_count } = await memory.upkeep.record('acme:ann')

console.log(
  `Summary ${summary_version} stands for ${messages_summarized_count} messages; ${ledger.spent} of ${ledger.budget} tokens are shown.`,
)
console.log(`Preferences: ${JSON.stringify(important_data.user_preferences)}`)
console.log(`Facts: ${important_data.important_facts.join('; ')}`)
console.log(`Sources: ${important_data.source_urls.join(', ')}`)
const [first] = await memory.transcript('acme:ann', { limit: 1 })
console.log(`Kept: ${first?.content.replace(/\d+(?=⟩)/, '…')}`)
