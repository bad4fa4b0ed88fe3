import { createHarness } from './harness.ts'

// Process that saves a session repeatedly with a growing number of messages and prints the count after each save.
const [file = '', workspace = '', sessionId = '', who = '', times = '0'] = process.argv.slice(2)
await using harness = await createHarness({ file })
const opening = { role: 'user' as const, content: 'We begin together, and each of us adds what is to be said.' }
const ownMessages = (count: number) =>
  Array.from({ length: count }, (_, number) => ({ role: 'assistant' as const, content: `${who} says ${number}.` }))
for (let count = 1; count <= Number(times); count++) {
  await harness.handoff.save(workspace, { sessionId, messages: [opening, ...ownMessages(count)] })
  process.stdout.write(`${count}\n`)
}
