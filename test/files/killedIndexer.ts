import { sqliteStore } from '../../src/stores/sqlite.ts'
import { createFiles, longText } from './fileServiceFixture.ts'

/** Starts to index a file and kills itself once a part of it is stored. */
const store = sqliteStore(process.argv[2] as string)
await createFiles(store).add(
  'acme',
  { name: 'long.txt', bytes: Buffer.from(longText()) },
  { onProgress: () => process.kill(process.pid, 'SIGKILL') },
)
