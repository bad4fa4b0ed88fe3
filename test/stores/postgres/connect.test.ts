import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { MemoryError } from '../../../src/domain/error.ts'
import { allScopes, Database } from '../../../src/stores/postgres/database.ts'
import { isTransient, toMemoryError } from '../../../src/stores/postgres/errors.ts'
import { createPartitionedTable, type MigrationStep } from '../../../src/stores/postgres/migrate.ts'
import { createPool } from '../../../src/stores/postgres/pool.ts'
import { escapeText, unescapeText } from '../../../src/stores/postgres/text.ts'
import { parsePostgresUrl } from '../../../src/stores/postgres/url.ts'
import { getPostgres } from '../../support/postgres.ts'

// The driver would take a password from there.
vi.stubEnv('PGPASSWORD', '')

const connect = (url: string): Database => {
  const settings = parsePostgresUrl(url)
  return new Database(createPool(settings), settings.schema)
}
const codeUnits = fc
  .array(fc.constantFrom('a', 'é', '猫', '🐘', '\u0000', '\uFFFE', '\uD800', '\uDFFF', '0041'))
  .map((parts) => parts.join(''))

describe('text › with U+0000 and lone surrogates', () => {
  it('comes back from PostgreSQL as it was', async () => {
    const database = connect(await (await getPostgres()).createDatabase())
    await fc.assert(
      fc.asyncProperty(codeUnits, async (text) => {
        const [row] = await database.query<[string]>('SELECT $1::text', [escapeText(text)])
        expect(unescapeText(row?.[0] ?? '')).toBe(text)
      }),
      { numRuns: 100 },
    )
    await database.close()
  })
})

describe('connection › that fails', () => {
  const failureOf = async (url: string): Promise<MemoryError> => {
    const database = connect(url)
    try {
      await database.query('SELECT 1')
    } catch (error) {
      return error as MemoryError
    } finally {
      await database.close()
    }
    throw new Error('The connection succeeded.')
  }

  it('names the problem and never the password', async () => {
    const url = new URL(await (await getPostgres()).createDatabase())
    const change = (fields: Partial<Record<'password' | 'pathname' | 'username', string>>): string =>
      Object.assign(new URL(url), fields).href
    const failures = await Promise.all([
      failureOf(change({ password: 'wr0ng-secret' })),
      failureOf(change({ pathname: '/nowhere' })),
      failureOf(change({ username: 'stranger' })),
    ])
    expect(failures.map(({ code, message }) => `${code}: ${message}`)).toEqual([
      expect.stringMatching(/^bad-store: .* refuses the user or password/),
      expect.stringMatching(/^bad-store: The database of .*\/nowhere does not exist/),
      expect.stringMatching(/^bad-store: .*stranger@.* refuses the user or password/),
    ])
    expect((await failureOf(change({ password: '' }))).message).toMatch(/ asks for a password\. .* PGPASSWORD\.$/)
    for (const failure of failures)
      expect(JSON.stringify([failure, failure.message, failure.cause])).not.toMatch(/wr0ng-secret|correct-horse/)
  })
})

describe('connection › without the password that the server asks for', () => {
  it('leaves no socket open', async () => {
    const countSockets = (): number =>
      process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length
    const url = new URL(await (await getPostgres()).createDatabase())
    // Tests that ran before in this process may have left some.
    const before = countSockets()
    const database = connect(Object.assign(url, { password: '' }).href)
    await expect(database.query('SELECT 1')).rejects.toMatchObject({ code: 'bad-store' })
    await database.close()
    await expect.poll(countSockets).toBeLessThanOrEqual(before)
  })
})

describe('connection › that PgBouncer refuses for a parameter', () => {
  it('names the setting of PgBouncer, and is not tried again', () => {
    const refusal = Object.assign(new Error('unsupported startup parameter: statement_timeout'), { code: '08P01' })
    expect(isTransient(refusal)).toBe(false)
    expect(toMemoryError(refusal, 'postgres://u@h/d', 'connect')).toMatchObject({
      code: 'bad-store',
      message: expect.stringMatching(/unsupported startup parameter: statement_timeout.*ignore_startup_parameters/),
    })
  })
})

describe('URL', () => {
  it('with settings › gives them to the pool and not to the server', () => {
    const settings = parsePostgresUrl(
      'postgres://u:p@h:1/d?schema=s1&max_connections=3&connect_timeout=2&sslmode=disable',
    )
    expect(settings).toMatchObject({
      url: 'postgres://u:p@h:1/d?sslmode=disable',
      name: 'postgres://u@h:1/d',
      schema: 's1',
      maxConnections: 3,
      connectTimeoutMs: 2_000,
    })
  })

  it.each([
    ['an unknown parameter', 'postgres://u:p4ss@h/d?shema=x', /Unknown parameter.*Did you mean schema/],
    ['a schema that needs quotes', 'postgres://u:p4ss@h/d?schema=a"b', /schema is/],
    ['no number', 'postgres://u:p4ss@h/d?max_connections=many', /max_connections is "many"/],
    ['no host to parse', 'postgres://u:p4ss@h:port/d', /not valid/],
  ])('with %s › is refused without its password', (_, url, message) => {
    const parse = (): unknown => parsePostgresUrl(url)
    expect(parse).toThrow(MemoryError)
    expect(parse).toThrow(message)
    expect(parse).not.toThrow(/p4ss/)
  })
})

describe('transaction', () => {
  const steps: readonly MigrationStep[] = [
    (schema) => createPartitionedTable(schema, 'note', 'body text, PRIMARY KEY (scope, body)'),
  ]
  const open = async (): Promise<Database> => {
    const database = connect(await (await getPostgres()).createDatabase())
    await database.migrate('notes', steps)
    return database
  }
  const countNotes = async (database: Database, scope?: string): Promise<number> => {
    const sql = `SELECT count(*) FROM ${database.schema}.note`
    const rows =
      scope === undefined ? await database.query(sql) : await database.transaction(scope, ({ query }) => query(sql))
    return rows[0]?.[0] as number
  }

  it('of a scope › sees no rows of another one, also without a predicate', async () => {
    const database = await open()
    for (const scope of ['acme', 'zeta', 'zeta2'])
      await database.transaction(scope, ({ query }) =>
        query(`INSERT INTO ${database.schema}.note VALUES ($1, 'x')`, [scope]),
      )
    expect(await countNotes(database, 'acme')).toBe(1)
    expect(await countNotes(database, allScopes)).toBe(3)
    expect(await countNotes(database)).toBe(0)
    await expect(
      database.transaction('acme', ({ query }) => query(`INSERT INTO ${database.schema}.note VALUES ('zeta', 'y')`)),
    ).rejects.toThrow(/row-level security/)
    const partitions = await database.transaction(allScopes, ({ query }) =>
      query(
        Array.from(
          { length: 16 },
          (_, n) => `SELECT * FROM ${database.schema}.note_${String(n).padStart(2, '0')}`,
        ).join(' UNION ALL '),
      ),
    )
    expect(partitions).toEqual([])
    await database.close()
  })

  it('that is rolled back › leaves nothing and its connection usable', async () => {
    const database = await open()
    await expect(
      database.transaction('acme', async ({ query }) => {
        await query(`INSERT INTO ${database.schema}.note VALUES ('acme', 'x')`)
        throw new MemoryError('conflict', 'changed my mind')
      }),
    ).rejects.toThrow('changed my mind')
    expect(await countNotes(database, 'acme')).toBe(0)
    await database.close()
  })

  it('with a schema of a newer release › is refused', async () => {
    const database = await open()
    await expect(database.migrate('notes', [])).rejects.toThrow(/newer Threadkeep/)
    await database.close()
  })

  it('with a write conflict › is repeated', async () => {
    const database = await open()
    let attempts = 0
    await database.transaction('acme', async ({ query }) => {
      if (++attempts < 3) await query('DO $$ BEGIN RAISE serialization_failure; END $$')
    })
    expect(attempts).toBe(3)
    await database.close()
  })
})
