import { stage } from './stage.ts'

// A process that saves the same session again and again as its own part of the talk grows, and says how much of it was acknowledged.
const [file = '', workspace = '', sessionId = '', who = '', times = '0'] = process.argv.slice(2)
await using at = await stage({ file })
const opening = { role: 'user' as const, content: 'We begin together, and each of us adds what is to be said.' }
const own = (count: number) =>
  Array.from({ length: count }, (_, number) => ({ role: 'assistant' as const, content: `${who} says ${number}.` }))
for (let count = 1; count <= Number(times); count++) {
  await at.handoff.save(workspace, { sessionId, messages: [opening, ...own(count)] })
  process.stdout.write(`${count}\n`)
}
