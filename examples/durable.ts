// Memory in a file: it outlives the process, is found again by its words, and is forgotten for good.
// Run it twice: node examples/durable.ts
import { openMemory } from '../src/index.ts'

await using memory = await openMemory({ store: `sqlite:${process.argv[2] ?? 'example.db'}` })

const before = await memory.transcript('acme:ann')
console.log(`Known from before: ${before.length} messages.`)

// The same operation twice is once, also across restarts: a retry never says a thing twice.
await memory.append('acme:ann', [{ role: 'user', content: 'My cat is called Miso.' }], { operationId: 'first' })
await memory.append('acme:bob', [{ role: 'user', content: 'The safe opens with 4711.' }], { operationId: 'second' })
await memory.remember('acme', { category: 'user_preference', key: 'language', value: 'English' })

const [found] = await memory.search('acme', 'what is the cat called?', { limit: 1 })
console.log(`Found in ${found?.key}: ${found?.entry.kind === 'message' ? found.entry.content : ''}`)

const { sessions } = await memory.forget({ scope: 'acme', text: '4711' })
console.log(
  `Forgotten for good: ${sessions.map(({ key, entries }) => `${entries.join(', ')} of ${key}`).join('; ') || 'nothing was left'}`,
)
