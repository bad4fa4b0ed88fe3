import { openMemory } from '../../src/index.ts'
import { postgresStore } from '../../src/stores/postgres.ts'
import { mapConcurrently } from '../../test/fault/mapConcurrently.ts'
import type { PostgresServer } from '../../test/support/postgresServer.ts'
import { createSentences } from '../corpus.ts'

const writers = 16
const textVariants = 10_000

/** Fills a database with sessions through the library and reports the size of its tables. */
export async function measureSize(postgres: PostgresServer, sessions: number, messagesEach: number): Promise<void> {
  const url = await postgres.createDatabase()
  const database = new URL(url).pathname.slice(1)
  const store = await postgresStore(url, { maxConnections: writers })
  const memory = await openMemory({ store, upkeep: false })
  const texts = createSentences(textVariants)
  let [characters, written] = [0, 0]
  const startedAt = performance.now()
  const fillSession = async (session: number): Promise<void> => {
    const messages = Array.from({ length: messagesEach }, (_, at) => {
      const content = texts[(session * messagesEach + at) % textVariants] as string
      characters += content.length
      return { role: at % 2 === 0 ? ('user' as const) : ('assistant' as const), content }
    })
    await memory.append(`tenant${session % 1_000}:s${session}`, messages)
    if (++written % 10_000 === 0) console.log(`  ${written.toLocaleString('en')} sessions`)
  }
  console.log(`\nPostgreSQL: ${sessions.toLocaleString('en')} sessions of ${messagesEach} messages`)
  await mapConcurrently(
    Array.from({ length: sessions }, (_, session) => session),
    fillSession,
    writers,
  )
  const seconds = (performance.now() - startedAt) / 1_000
  const count = sessions * messagesEach
  const rows = await postgres.administer(
    `SELECT coalesce(p.relname, c.relname) AS name, sum(pg_relation_size(c.oid))::float8 AS table_bytes,
       sum(pg_indexes_size(c.oid))::float8 AS index_bytes, sum(pg_total_relation_size(c.oid))::float8 AS bytes
     FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
     LEFT JOIN pg_inherits i ON i.inhrelid = c.oid LEFT JOIN pg_class p ON p.oid = i.inhparent
     WHERE n.nspname = 'threadkeep' AND c.relkind = 'r' GROUP BY 1 HAVING sum(pg_total_relation_size(c.oid)) > 1000000
     ORDER BY 4 DESC`,
    database,
  )
  const total = rows.reduce((sum, { bytes }) => sum + (bytes as number), 0)
  for (const { name, table_bytes, index_bytes, bytes } of rows)
    console.log(
      `  ${String(name).padEnd(12)} ${formatMegabytes(bytes)} MB (rows ${formatMegabytes(table_bytes)}, indexes ${formatMegabytes(index_bytes)})`,
    )
  console.log(
    `  ${(total / count).toFixed(0)} bytes per message of ${(characters / count).toFixed(0)} characters, ${(total / sessions).toFixed(0)} per session; written at ${Math.round(count / seconds).toLocaleString('en')} messages/s`,
  )
  await memory.close()
  await store.close()
}

const formatMegabytes = (bytes: unknown): string => ((bytes as number) / 1e6).toFixed(1)
