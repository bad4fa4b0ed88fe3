import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { parseKey } from '../../../src/domain/key.ts'
import { newChange, newMessage } from '../../../src/stores/conformance/fixtures.ts'
import { storeConformance } from '../../../src/stores/conformance.ts'
import { encryptedStore } from '../../../src/stores/encrypted.ts'
import { openStore } from '../../../src/stores/open.ts'
import { postgresStore } from '../../../src/stores/postgres.ts'
import { verifies } from '../../requirements/verifies.ts'
import { createEmptyStores, getPostgres } from '../../support/postgres.ts'
import { hex, testKeyring } from '../encrypted/fixtures.ts'

const server = await getPostgres()
const run = promisify(execFile)
const cli = fileURLToPath(new URL('../../../src/cli/main.ts', import.meta.url))
const opener = fileURLToPath(new URL('opener.ts', import.meta.url))

describe('encryptedStore over postgresStore', () => {
  const openEmpty = createEmptyStores()
  const open = async () => encryptedStore(await openEmpty(), testKeyring('new'))
  for (const { name, run: check } of storeConformance(open)) it(name, check)

  verifies('X-05', 'database › with encrypted content › is not opened without a key, and holds no text', async () => {
    const url = await server.createDatabase()
    process.env.TEST_STORE_KEY = hex.new
    const store = await openStore(url, 'env:TEST_STORE_KEY')
    await store.commit(newChange('1', { append: [newMessage('a secret walrus')] }))
    await store.close()
    await expect(openStore(url)).rejects.toMatchObject({ code: 'bad-secret' })
    const rows = await server.administer('SELECT content FROM threadkeep.message', new URL(url).pathname.slice(1))
    expect(rows).toHaveLength(1)
    expect(JSON.stringify(rows)).not.toContain('walrus')
  })
})

describe('postgresStore › opened', () => {
  verifies(
    'X-07',
    'by eight processes on an empty database › migrates it once and stores what each commits',
    async () => {
      const url = await server.createDatabase()
      await Promise.all(Array.from({ length: 8 }, (_, at) => run(process.execPath, [opener, url, `acme:p${at}`])))
      const store = await postgresStore(url)
      expect((await store.list({ limit: 20 })).map(({ messages }) => messages)).toEqual(
        Array.from({ length: 8 }, () => 1),
      )
      await store.close()
    },
  )

  it('with an unknown option or parameter › is refused', async () => {
    await expect(postgresStore('postgres://h/d', { shema: 'x' } as object)).rejects.toMatchObject({
      code: 'bad-option',
    })
    await expect(openStore('postgres://u:s3cret@h/d?shema=x')).rejects.toThrow(/Did you mean schema/)
  })

  it('on a server that cannot be reached › names it without the password', async () => {
    const failure = await openStore('postgres://u:s3cret@127.0.0.1:9/d?connect_timeout=1').catch(
      (error: unknown) => error,
    )
    expect(failure).toMatchObject({
      code: 'busy',
      message: expect.stringMatching(/u@127\.0\.0\.1:9\/d cannot be reached/),
    })
    expect(String(failure)).not.toContain('s3cret')
  })

  it('by a role without privileges › says so', async () => {
    const url = new URL(await server.createDatabase())
    await server.administer("DROP ROLE IF EXISTS guest; CREATE ROLE guest LOGIN PASSWORD 'correct-horse'")
    await expect(postgresStore(server.url(url.pathname.slice(1), 'guest'))).rejects.toMatchObject({
      code: 'bad-store',
      message: expect.stringMatching(/lacks a privilege/),
    })
  })

  it('with a server that is read-only › reads, and refuses to write', async () => {
    const url = await server.createDatabase()
    const store = await postgresStore(url)
    await store.commit(newChange('1', { append: [newMessage('a walrus')] }))
    await store.close()
    const name = new URL(url).pathname.slice(1)
    const replica = await postgresStore(`${url}?options=-c%20default_transaction_read_only%3Don`).catch(
      (error: unknown) => error,
    )
    expect(replica).toMatchObject({
      code: 'not-durable',
      message: expect.stringMatching(new RegExp(`${name} is read-only`)),
    })
  })

  it('after a restored dump with higher transaction ids › finds what is written then', async () => {
    const url = await server.createDatabase()
    const before = await postgresStore(url, { minSnapshotMessages: 1 })
    await before.commit(newChange('1', { append: [newMessage('the first walrus')] }))
    await before.search({ scope: 'acme' }, { text: 'walrus', limit: 5 })
    const { schema } = before.database
    await before.database.transaction('*', ({ run: execute }) =>
      execute(`UPDATE ${schema}.session SET stamp = 1000000000; UPDATE ${schema}.message SET stamp = 1000000000;
        UPDATE ${schema}.setting SET value = 'elsewhere' WHERE name = 'origin'`),
    )
    await before.close()
    const store = await postgresStore(url)
    const search = () => store.search({ scope: 'acme' }, { text: 'walrus', limit: 5 })
    expect(await search()).toHaveLength(1)
    await store.commit(newChange('2', { append: [newMessage('the second walrus')] }))
    expect(await search()).toHaveLength(2)
    const { sessions } = await store.changesSince(
      { scope: 'acme' },
      (await store.changesSince({ scope: 'acme' }, 0)).stamp,
    )
    expect(sessions).toEqual([])
    await store.close()
  })
})

describe('threadkeep › with a PostgreSQL store', () => {
  it('lists sessions, and doctor reports counts and settings without the password', async () => {
    const url = await server.createDatabase()
    const store = await postgresStore(url)
    await store.commit(newChange('1', { key: parseKey('acme:ann'), append: [newMessage('a walrus')] }))
    await store.close()
    const listed = await run(process.execPath, [cli, 'sessions', 'list', '--store', url, '--json'])
    expect(listed.stdout).toContain('acme:ann')
    const { stdout } = await run(process.execPath, [cli, 'doctor', '--store', url])
    expect(stdout).toMatch(/1 session, 1 message.*No damage found/s)
    expect(stdout + listed.stdout).not.toContain('correct-horse')
    const sessions = ['--sessions', 'redis://:hunter2@127.0.0.1:1']
    const unreachable = await run(process.execPath, [cli, 'doctor', '--store', url, ...sessions]).catch(
      (error: unknown) => error,
    )
    expect(unreachable).toMatchObject({
      code: 1,
      stdout: expect.stringContaining('Redis at 127.0.0.1:1 cannot be reached'),
    })
    const failure = await run(process.execPath, [cli, 'doctor', '--store', url, '--backup', '/tmp/x']).catch(
      (error: unknown) => error,
    )
    expect(String((failure as { stderr: string }).stderr)).toMatch(/pg_dump/)
  })
})
