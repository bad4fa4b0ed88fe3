import { describe, expect } from 'vitest'
import type { Store } from '../../../src/domain/ports.ts'
import { ramStore } from '../../../src/stores/ram.ts'
import { verifies } from '../../requirements/verifies.ts'
import { startServer, user } from '../start.ts'

/** Messages that an export reads at a time. */
const pageSize = 500

/** A store that erases a message of a session between two reads of its export, as another request would. */
function erasingStore(pageToErase: number) {
  const store = ramStore()
  const readMessages: Store['readMessages'] = store.readMessages.bind(store)
  let pages = 0
  return Object.assign(store, {
    readMessages: async (...[key, range]: Parameters<Store['readMessages']>) => {
      if (range.limit === pageSize && ++pages === pageToErase) await store.erase(key, { entries: ['m600'] })
      return readMessages(key, range)
    },
  })
}

async function exportDuringErasure(pageToErase: number, characters: number) {
  await using server = await startServer({ memory: { store: erasingStore(pageToErase) } })
  const messages = Array.from({ length: 600 }, (_, at) => user(`${at} `.padEnd(characters, 'x')))
  await server.memory.append('acme:ann', messages)
  const response = await fetch(`${server.url}/api/sessions/acme:ann/export`)
  const { status, headers } = response
  const text = await response.text().catch(() => 'broken transfer')
  return { status, length: headers.get('content-length'), text }
}

describe('GET /api/sessions/{key}/export', () => {
  verifies('X-12', 'of a bundle up to 1 MB › while a message is erased › answers 409', async () => {
    const { status, text } = await exportDuringErasure(2, 10)
    expect([status, JSON.parse(text)]).toEqual([
      409,
      { error: expect.objectContaining({ code: 'conflict', message: expect.stringContaining('export again') }) },
    ])
  })

  verifies('X-12', 'of a larger bundle › while a message is erased › breaks the transfer', async () => {
    expect(await exportDuringErasure(2, 4_000)).toMatchObject({ status: 200, text: 'broken transfer' })
  })

  verifies('X-12', 'without a fault › sends the whole bundle, with its length if it is small', async () => {
    for (const characters of [10, 4_000]) {
      const { status, length, text } = await exportDuringErasure(0, characters)
      expect([status, text.split('\n').at(-2)]).toEqual([200, expect.stringContaining('"messages":600,"sessions":1')])
      expect(length).toBe(characters === 10 ? String(text.length) : null)
    }
  })
})
