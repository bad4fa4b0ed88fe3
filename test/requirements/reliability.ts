import type { Row } from './row.ts'

const source = 'Threadkeep'

export const reliability: readonly Row[] = [
  {
    id: 'R-01',
    source,
    behaviour:
      'An encrypted store refuses to open without its key, in every command, before anything is read or written.',
    status: 'kept',
    in: [
      'src/stores/sqlite/encryption.ts',
      'src/stores/sqlite/connect.ts',
      'src/stores/sqlite/plaintextRows.ts',
      'src/stores/postgres/prepareServer.ts',
    ],
  },
  {
    id: 'R-02',
    source,
    behaviour:
      'Every write path of every surface masks secrets; a test enumerates the surfaces. At most 0.01 % of values of each known form are missed, with at most 0.1 % false positives.',
    status: 'kept',
    in: ['src/memory/secretMasker.ts', 'src/memory/secretScan.ts', 'src/text/secrets.ts', 'src/graph/maskedGraph.ts'],
  },
  {
    id: 'R-03',
    source,
    behaviour:
      'No request of up to 1 MB blocks the event loop for more than 50 ms, and none up to the body limit for more than 250 ms.',
    status: 'planned',
    in: ['src/domain/work.ts', 'src/stores/yieldToEventLoop.ts', 'src/graph/sqlite/database.ts'],
  },
  {
    id: 'R-04',
    source,
    behaviour: 'Imported derived numbers are recomputed. A bundle can damage only its own sessions.',
    status: 'kept',
    in: ['src/portable/records.ts', 'src/portable/measure.ts', 'src/portable/signature.ts'],
  },
  {
    id: 'R-05',
    source,
    behaviour:
      'A database file that is deleted or replaced under a running process is detected. No turn is acknowledged that would be missing after a restart.',
    status: 'kept',
    in: ['src/stores/sqlite/fileGuard.ts', 'src/stores/sqlite/recover.ts', 'src/stores/sqlite/batchWriter.ts'],
  },
  {
    id: 'R-06',
    source,
    behaviour: 'Unknown options are errors in every public method, route, tool and command.',
    status: 'kept',
    in: [
      'src/domain/checkOptions.ts',
      'src/domain/checkStoreOptions.ts',
      'src/server/api/input.ts',
      'src/cli/options.ts',
    ],
  },
]
