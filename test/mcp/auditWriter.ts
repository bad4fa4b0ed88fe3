import { AuditLog } from '../../src/mcp/files/audit.ts'

// Appends COUNT lines to an audit log concurrently and prints each one when it is durable: node auditWriter.ts FILE USER COUNT
const [file = '', user = '', count = '0'] = process.argv.slice(2)
const audit = new AuditLog(file)
const notes = Array.from({ length: Number(count) }, async (_, n) => {
  await audit.append({ at: n, user, operation: 'read', path: `/${user}/${n}`, outcome: 'allowed' })
  process.stdout.write(`/${user}/${n}\n`)
})
await Promise.all(notes)
