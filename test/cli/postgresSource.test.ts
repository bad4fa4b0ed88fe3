import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { verifies } from '../requirements/verifies.ts'
import { getPostgres } from '../support/postgres.ts'
import { createCliHarness } from './cliHarness.ts'

const { folder, run } = createCliHarness('postgres-source')

describe('commands that read a PostgreSQL store', () => {
  verifies('T-17', 'on a database or schema without a store › name it and create nothing', async () => {
    const server = await getPostgres()
    const url = await server.createDatabase()
    const commands = [
      ['migrate', url, 'sqlite:new.db'],
      ['migrate', `${url}?schema=other`, 'sqlite:new.db'],
      ['search', 'acme', 'cat', '--store', url],
      ['doctor', '--store', url],
    ]
    for (const command of commands) {
      const { code, stderr } = await run(command)
      expect([code, stderr]).toEqual([2, expect.stringMatching(/No store at postgres:\/\/.*(?:to copy|schema=NAME)/s)])
      expect(stderr).not.toContain('correct-horse')
    }
    expect(existsSync(join(folder, 'new.db'))).toBe(false)
    const schemas = await server.administer(
      "SELECT nspname FROM pg_namespace WHERE nspname IN ('threadkeep', 'other')",
      new URL(url).pathname.slice(1),
    )
    expect(schemas).toEqual([])
  })
})
