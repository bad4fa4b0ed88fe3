import { parseKey } from '../../../src/domain/key.ts'
import { newChange, newMessage } from '../../../src/stores/conformance/fixtures.ts'
import { postgresStore } from '../../../src/stores/postgres.ts'

/** Opens the store of a URL and commits one message. */
const [url = '', key = ''] = process.argv.slice(2)
const store = await postgresStore(url)
await store.commit(newChange('1', { key: parseKey(key), append: [newMessage('hello')] }))
await store.close()
