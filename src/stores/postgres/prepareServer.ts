import { MemoryError } from '../../domain/error.ts'
import type { Database } from './database.ts'
import { storeMigrations } from './sql/migrations.ts'

type ServerState = readonly [
  versionNumber: number,
  encoding: string,
  fsync: string,
  fullPageWrites: string,
  isReplica: boolean,
  bypassesSecurity: boolean,
  user: string,
  identity: string,
]

const minVersion = 140_000

const readState = `SELECT current_setting('server_version_num')::int, current_setting('server_encoding'),
  current_setting('fsync'), current_setting('full_page_writes'), pg_is_in_recovery(),
  (SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user), current_user::text,
  (SELECT (pg_control_system()).system_identifier || '/' || oid FROM pg_database WHERE datname = current_database())`

/**
 * Checks the server, migrates the tables, and warns of settings that weaken isolation or durability.
 *
 * @throws MemoryError `bad-store` if the server is too old or its database does not use UTF-8, `bad-secret` if the
 * content is encrypted and the store is opened without a key.
 */
export async function prepareServer(
  database: Database,
  isEncrypted: boolean,
  onWarning: (warning: string) => void,
): Promise<void> {
  const { name, schema } = database
  const [state] = await database.query<ServerState>(readState, [], 'always')
  if (state === undefined) throw new MemoryError('bad-store', `${name} did not describe itself. Check the server.`)
  const [version, encoding, fsync, fullPageWrites, isReplica, bypassesSecurity, user, identity] = state
  if (version < minVersion)
    throw new MemoryError(
      'bad-store',
      `${name} runs PostgreSQL ${Math.floor(version / 10_000)}. Use version 14 or newer.`,
    )
  if (encoding !== 'UTF8')
    throw new MemoryError('bad-store', `${name} uses the encoding ${encoding}. Create the database with UTF8.`)
  if (bypassesSecurity) onWarning(describeRole(name, schema, user))
  // An embedded database is as safe as the files of its process: docs/postgres.md.
  if (!name.startsWith('pglite:') && (fsync === 'off' || fullPageWrites === 'off'))
    onWarning(
      `${name} runs with fsync or full_page_writes off: a power failure can lose or damage acknowledged data. Turn both on.`,
    )
  await checkEncryption(database, isEncrypted)
  await database.migrate('store', storeMigrations)
  if (isReplica) return
  await database.call('adopt_stamps', [identity], 'always')
  const isMarked = await database.call<boolean>('mark_encryption', [isEncrypted], 'always')
  if (isMarked !== isEncrypted) throw encryptionError(name, isMarked)
}

/** Refuses encrypted content without a key, and other content with one, before older tables are migrated. */
async function checkEncryption(database: Database, isEncrypted: boolean): Promise<void> {
  const { name, schema } = database
  const [tables] = await database.query(`SELECT to_regclass('${schema}.setting') IS NOT NULL`, [], 'always')
  if (tables?.[0] !== true) return
  // A database without sessions may become either.
  const readMark = `SELECT value = 'true' FROM ${schema}.setting
    WHERE name = 'encrypted' AND EXISTS (SELECT 1 FROM ${schema}.session)`
  const [mark] = await database.transaction('*', (session) => session.query(readMark, []), {
    repeat: 'always',
    readOnly: true,
  })
  if (mark !== undefined && mark[0] !== isEncrypted) throw encryptionError(name, mark[0] === true)
}

const encryptionError = (name: string, isMarked: boolean): MemoryError =>
  isMarked
    ? new MemoryError('bad-secret', `${name} is encrypted. Pass the source of its key (--store-key).`)
    : new MemoryError(
        'bad-option',
        `${name} holds unencrypted sessions. Omit the key, or export them and import them into an encrypted store.`,
        { param: 'storeKey' },
      )

const describeRole = (name: string, schema: string, user: string): string =>
  `The user ${user} of ${name} bypasses row-level security, the second wall between tenants. Connect as a role of its own: ` +
  `CREATE ROLE threadkeep LOGIN PASSWORD '…' NOSUPERUSER NOBYPASSRLS; ALTER SCHEMA ${schema} OWNER TO threadkeep; see docs/postgres.md.`
