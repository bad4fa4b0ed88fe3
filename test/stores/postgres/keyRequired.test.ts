import { beforeAll, describe, expect } from 'vitest'
import { openGraph } from '../../../src/graph/graph.ts'
import { openMemory } from '../../../src/index.ts'
import { openStore } from '../../../src/stores/open.ts'
import { runInProcess } from '../../cli/inProcess.ts'
import { verifies } from '../../requirements/verifies.ts'
import { getPostgres } from '../../support/postgres.ts'
import { hex } from '../encrypted/fixtures.ts'
import { createTempPaths } from '../tempPaths.ts'

const server = await getPostgres()
const newPath = createTempPaths()
const keys = { TEST_OLD_KEY: hex.old, TEST_NEW_KEY: hex.new }
const [oldKey, newKey] = ['env:TEST_OLD_KEY', 'env:TEST_NEW_KEY']
const otherFile = newPath()

beforeAll(async () => {
  Object.assign(process.env, keys)
  await using memory = await openMemory({ store: `sqlite:${otherFile}` })
  await memory.append('acme:eve', [{ role: 'user', content: 'Hello.' }])
})

async function createDatabase(storeKey?: string): Promise<string> {
  const url = await server.createDatabase()
  await using memory = await openMemory({ store: url, ...(storeKey !== undefined && { storeKey }) })
  await memory.append('acme:ann', [{ role: 'user', content: 'My walrus is called Miso.' }])
  return url
}

/** All rows of all tables of a store. */
async function readRows(url: string): Promise<string> {
  const database = new URL(url).pathname.slice(1)
  const tables = await server.administer(
    "SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'threadkeep'",
    database,
  )
  const rows = tables.map(({ name }) => `SELECT '${name}' AS name, t::text AS row FROM threadkeep.${name} t`)
  return JSON.stringify(await server.administer(`${rows.join(' UNION ALL ')} ORDER BY 1, 2`, database))
}

const openers: Readonly<Record<string, (url: string, storeKey?: string) => Promise<unknown>>> = {
  openStore,
  openMemory: (url, storeKey) => openMemory({ store: url, ...(storeKey !== undefined && { storeKey }) }),
  openGraph: (url, storeKey) => openGraph(url, storeKey === undefined ? {} : { storeKey }),
}

/** Commands that read, write, examine, and copy from and to a database. */
const commands: Readonly<Record<string, (url: string, key?: string) => readonly string[]>> = {
  'sessions list': (url, key) => ['sessions', 'list', '--store', url, ...withKey('--store-key', key)],
  forget: (url, key) => ['forget', 'acme:ann', '--yes', '--store', url, ...withKey('--store-key', key)],
  doctor: (url, key) => ['doctor', '--store', url, ...withKey('--store-key', key)],
  'doctor --rotate-key': (url, key) => ['doctor', '--rotate-key', '--store', url, ...withKey('--store-key', key)],
  migrate: (url, key) => ['migrate', url, `sqlite:${newPath()}`, ...withKey('--from-key', key)],
  'migrate to it': (url, key) => ['migrate', `sqlite:${otherFile}`, url, ...withKey('--to-key', key)],
}
const withKey = (flag: string, key: string | undefined): readonly string[] => (key === undefined ? [] : [flag, key])

/** Lists the openers and commands that do not refuse a database with this code and message. */
async function listOpened(url: string, key: string | undefined, code: string, message: RegExp): Promise<unknown> {
  const problems: unknown[] = []
  for (const [name, open] of Object.entries(openers)) {
    const outcome = await open(url, key).catch((error: unknown) => error)
    if ((outcome as { code?: unknown }).code !== code || !message.test(String(outcome))) problems.push([name, outcome])
  }
  for (const [name, create] of Object.entries(commands)) {
    const { code, stdout, stderr } = await runInProcess(create(url, key), keys)
    if (code === 0 || stdout !== '' || !message.test(stderr)) problems.push([name, code, stdout, stderr])
  }
  return problems
}

describe('a PostgreSQL database', () => {
  verifies(
    'R-01',
    'with encrypted content › without its key or with another one › is refused, and no row changes',
    async () => {
      const url = await createDatabase(oldKey)
      const before = await readRows(url)
      expect(before).not.toContain('walrus')
      expect(await listOpened(url, undefined, 'bad-secret', /is encrypted\. Pass the source of its key/)).toEqual([])
      expect(await listOpened(url, newKey, 'bad-secret', /is encrypted under key \w+, but the keys given are/)).toEqual(
        [],
      )
      expect(await readRows(url)).toBe(before)
      await using memory = await openMemory({ store: url, storeKey: oldKey })
      expect(await memory.transcript('acme:ann')).toMatchObject([{ content: 'My walrus is called Miso.' }])
    },
  )

  verifies('R-01', 'without encryption › opened with a key › is refused, and no row changes', async () => {
    const url = await createDatabase()
    const before = await readRows(url)
    expect(before).toContain('walrus')
    expect(await listOpened(url, newKey, 'bad-option', /holds unencrypted sessions\. Omit the key/)).toEqual([])
    expect(await readRows(url)).toBe(before)
  })

  verifies('R-01', 'of an older format › opened without its key or with one it lacks › is not migrated', async () => {
    for (const [own, given, code] of [
      [oldKey, undefined, 'bad-secret'],
      [undefined, newKey, 'bad-option'],
    ] as const) {
      const url = await createDatabase(own)
      const database = new URL(url).pathname.slice(1)
      await server.administer('UPDATE threadkeep.migration SET version = version - 1 RETURNING 1', database)
      const before = await readRows(url)
      await expect(openStore(url, given)).rejects.toMatchObject({ code })
      expect(await readRows(url)).toBe(before)
    }
  })
})
