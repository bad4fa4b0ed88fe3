import { describe } from 'vitest'
import type { SearchIndex, Store, StoreTable } from '../../../src/domain/ports.ts'
import { withRelativeEpochs } from '../../../src/stores/conformance/relativeEpochs.ts'
import { redisStore } from '../../../src/stores/redis.ts'
import { verifies } from '../../requirements/verifies.ts'
import { type ComparedStore, expectSameAsRam } from '../equivalence.ts'
import { newPrefix, startRedis } from './redisServer.ts'

const server = await startRedis()

/** Opens two stores on the same data, which take turns; another process is opened after a crash. */
async function openCompared(): Promise<ComparedStore> {
  const prefix = newPrefix()
  const open = () => redisStore(server.url, { prefix })
  let [current, other] = [await open(), await open()]
  const table = new Proxy({} as StoreTable, { get: (_, name) => Reflect.get(current.table, name).bind(current.table) })
  const store = withRelativeEpochs(
    new Proxy({} as Store & SearchIndex, {
      get: (_, name) => (name === 'table' ? table : Reflect.get(current, name)),
    }),
  )
  return {
    store,
    reopen: async (how) => {
      if (how === 'reopen') [current, other] = [other, current]
      else {
        await current.close()
        current = await open()
      }
    },
    close: async () => {
      await current.close()
      await other.close()
    },
  }
}

describe('ramStore and redisStore', () => {
  verifies(
    'X-07',
    'return the same bytes after any steps on one of two processes, including crashes, erasures and clock jumps',
    () => expectSameAsRam(openCompared, 15),
  )
})
