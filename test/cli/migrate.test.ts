import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { beforeAll, describe, expect, it } from 'vitest'
import { openGraph } from '../../src/graph/graph.ts'
import { openMemory } from '../../src/index.ts'
import { getPostgres } from '../support/postgres.ts'
import { createCliHarness, lines } from './cliHarness.ts'
import { startCommand } from './command.ts'

const { folder, run, output, json } = createCliHarness('migrate')

const failure = async (...args: readonly string[]) => {
  const { code, stderr } = await run(['migrate', ...args])
  return { code, stderr }
}

describe('migrate', () => {
  beforeAll(async () => {
    await using memory = await openMemory({ store: `sqlite:${join(folder, 'old.db')}` })
    await memory.append('acme:ann', [
      { role: 'user', content: 'My cat is called Miso.' },
      { role: 'assistant', content: 'Noted.' },
    ])
    await memory.append('acme:bob', [{ role: 'user', content: 'The order is 4711.' }])
    await memory.append('zeta:eve', [{ role: 'user', content: 'Hello.' }])
    await memory.remember('acme', { category: 'domain', key: 'opening hours', value: 'nine to five' })
    const graph = await openGraph(`sqlite:${join(folder, 'old.db')}`)
    await graph.write('acme', { entities: [{ type: 'cat', id: 'miso', properties: { color: 'black' } }] })
    await graph.close()
    writeFileSync(join(folder, 'key'), `${'ab'.repeat(32)}\n`, { mode: 0o600 })
  })

  it('copies everything, also to an encrypted file and back, and exports are byte-equal', async () => {
    expect(await output('migrate', 'sqlite:old.db', 'sqlite:encrypted.db', '--to-key', 'file:key')).toBe(
      lines('Copied 4 messages of 3 sessions.', 'The exports of 2 scopes are identical in both stores.'),
    )
    const back = await json<{ hashes: object }>(
      'migrate',
      'sqlite:encrypted.db',
      'sqlite:new.db',
      '--from-key',
      'file:key',
    )
    expect(back).toMatchObject({ sessions: 3, messages: 4, unchanged: 0 })
    expect(Object.keys(back.hashes)).toEqual(['acme', 'zeta'])
    const bundle = await output('export', '--store', 'sqlite:new.db')
    expect(bundle).toBe(await output('export', '--store', 'sqlite:old.db'))
    expect(bundle).toContain('"color":"black"')
  })

  it('copies nothing twice', async () => {
    await output('migrate', 'sqlite:old.db', 'sqlite:twice.db')
    expect(await output('migrate', 'sqlite:old.db', 'sqlite:twice.db')).toBe(
      lines(
        'Copied 0 messages of 0 sessions.',
        '3 sessions unchanged.',
        'The exports of 2 scopes are identical in both stores.',
      ),
    )
  })

  it('with --scope › copies only that scope', async () => {
    await output('migrate', 'sqlite:old.db', 'sqlite:zeta.db', '--scope', 'zeta')
    expect(await output('sessions', 'list', '--store', 'sqlite:zeta.db')).toMatch(/^zeta:eve .*\n$/)
  })

  it('with other contents in the target › stops and changes nothing', async () => {
    await using memory = await openMemory({ store: `sqlite:${join(folder, 'other.db')}` })
    await memory.append('acme:ann', [{ role: 'user', content: 'Another conversation.' }])
    expect(await failure('sqlite:old.db', 'sqlite:other.db')).toEqual({
      code: 1,
      stderr: expect.stringContaining(
        'The store has other contents for acme:ann. Nothing was copied. Name an empty target.',
      ),
    })
    expect((await memory.transcript('acme:bob')).length).toBe(0)
  })

  it('with more sessions in the target › says that the stores differ', async () => {
    await using memory = await openMemory({ store: `sqlite:${join(folder, 'more.db')}` })
    await memory.append('acme:zoe', [{ role: 'user', content: 'Only here.' }])
    expect(await failure('sqlite:old.db', 'sqlite:more.db')).toEqual({
      code: 1,
      stderr: expect.stringContaining('Scope acme differs between the stores after it was copied'),
    })
  })

  it('with a target that fails in between › says how many sessions are complete, and continues later', async () => {
    const server = await getPostgres()
    const target = await server.createDatabase()
    await output('migrate', 'sqlite:old.db', target, '--scope', 'zeta')
    const database = new URL(target).pathname.slice(1)
    await server.administer(
      `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN RAISE EXCEPTION 'locked' USING ERRCODE = 'lock_not_available'; END $$;
       CREATE TRIGGER refuse BEFORE INSERT ON threadkeep.session FOR EACH ROW
         WHEN (NEW.name = 'bob') EXECUTE FUNCTION refuse()`,
      database,
    )
    expect((await failure('sqlite:old.db', target)).stderr).toMatch(
      /is busy \(locked\); nothing was stored\. Try again\. 1 session was complete; run the same command again to continue\./,
    )
    await server.administer('DROP TRIGGER refuse ON threadkeep.session', database)
    expect(await output('migrate', 'sqlite:old.db', target)).toContain('The exports of 2 scopes are identical')
  })

  it('interrupted while the stores are compared › says how to continue', async () => {
    const url = await (await getPostgres()).createDatabase()
    await output('migrate', 'sqlite:old.db', url)
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    await client.query('BEGIN; LOCK threadkeep.message')
    const running = startCommand(['migrate', url, 'sqlite:interrupted.db'], {}, folder)
    const waiting = 'SELECT count(*)::int AS n FROM pg_locks JOIN pg_database d ON d.oid = database'
    const countWaiting = async () =>
      (await client.query<{ n: number }>(`${waiting} WHERE NOT granted AND datname = current_database()`)).rows[0]?.n
    await expect.poll(countWaiting, { timeout: 20_000 }).toBe(1)
    running.process.kill('SIGINT')
    await client.end()
    const { code, stderr } = await running.result
    expect([code, stderr]).toEqual([130, 'threadkeep: Interrupted. Run the same command again to continue.\n'])
  })

  it('with unusable stores › names the problem and creates no file', async () => {
    expect((await failure('sqlite:missing.db', 'sqlite:new2.db')).stderr).toContain(
      'No store at missing.db. Name an existing store to copy.',
    )
    expect((await failure('pglite:missing', 'sqlite:new2.db')).stderr).toContain('No store at missing')
    for (const name of ['missing.db', 'missing', 'new2.db']) expect(existsSync(join(folder, name))).toBe(false)
    expect((await failure('sqlite:old.db', 'sqlite:old.db')).stderr).toContain('are the same store')
    expect((await failure('old.db', 'sqlite:new2.db')).stderr).toContain(
      'from is "old.db"; this command needs sqlite:PATH',
    )
    expect((await failure('sqlite:old.db', 'ram:')).stderr).toContain('to is "ram:"; this command needs sqlite:PATH')
    expect((await failure('sqlite:encrypted.db', 'sqlite:new2.db')).stderr).toContain('encrypted')
    expect((await failure('sqlite:old.db')).code).toBe(2)
  })
})
