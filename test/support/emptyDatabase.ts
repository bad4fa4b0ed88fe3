import type { PostgresStore } from '../../src/stores/postgres.ts'

const tables = [
  'session',
  'message',
  'derived',
  'operation',
  'record',
  'vector',
  'table_row',
  'graph_row',
  'graph_origin',
  'tombstone',
  'removal',
  'snapshot',
  'token_bucket',
]

/** Deletes all rows of a store: it takes seconds to migrate another database. */
export const emptyDatabase = ({ database }: PostgresStore): Promise<void> =>
  database.transaction('*', ({ run }) =>
    run(tables.map((table) => `DELETE FROM ${database.schema}.${table};`).join(' ')),
  )
