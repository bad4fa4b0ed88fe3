import { sqliteStore } from '../../src/stores/sqlite.ts'
import { filesOn, longText } from './stage.ts'

/** Begins to index a file, and is killed once a part of it is stored. */
const store = sqliteStore(process.argv[2] as string)
await filesOn(store).add(
  'acme',
  { name: 'long.txt', bytes: Buffer.from(longText()) },
  { onProgress: () => process.kill(process.pid, 'SIGKILL') },
)
