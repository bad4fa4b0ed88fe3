// Memory in a SQLite file: it survives restarts, can be searched, and can be deleted permanently.
// Run it twice: node durable.ts
// Needs: npm install threadkeep. In a checkout: npm run build, then node examples/durable.ts.
import { openMemory } from 'threadkeep'

await using memory = await openMemory({ store: `sqlite:${process.argv[2] ?? 'example.db'}` })

const earlier = await memory.transcript('acme:ann')
console.log(`Messages from earlier runs: ${earlier.length}`)

// An operationId makes an append idempotent, also across restarts: a retry stores the message once.
await memory.append('acme:ann', [{ role: 'user', content: 'My cat is called Miso.' }], { operationId: 'first' })
await memory.append('acme:bob', [{ role: 'user', content: 'The safe opens with 4711.' }], { operationId: 'second' })

// Knowledge is shared by all sessions of the scope "acme".
await memory.remember('acme', { category: 'user_preference', key: 'language', value: 'English' })

// Search covers all sessions of a scope.
const [result] = await memory.search('acme', 'what is the cat called?', { limit: 1 })
console.log(`Found in ${result?.key}: ${result?.entry.kind === 'message' ? result.entry.content : ''}`)

// Forgetting deletes matching messages and everything derived from them, also from the free pages of the file.
const { sessions } = await memory.forget({ scope: 'acme', text: '4711' })
const deleted = sessions.map(({ key, entries }) => `${entries.join(', ')} of ${key}`)
console.log(`Deleted: ${deleted.join('; ') || 'nothing'}`)
