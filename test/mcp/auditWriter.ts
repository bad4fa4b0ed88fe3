import { Audit } from '../../src/mcp/files/audit.ts'

/** Writes so many lines to an audit log, not waiting for one before the next, and says of each when it is written. */
const [file = '', user = '', count = '0'] = process.argv.slice(2)
const audit = new Audit(file)
const notes = Array.from({ length: Number(count) }, async (_, n) => {
  await audit.note({ at: n, user, operation: 'read', path: `/${user}/${n}`, outcome: 'allowed' })
  process.stdout.write(`/${user}/${n}\n`)
})
await Promise.all(notes)
