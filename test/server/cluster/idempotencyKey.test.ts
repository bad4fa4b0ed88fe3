import { describe, expect } from 'vitest'
import { parseKey } from '../../../src/domain/key.ts'
import { listBranches } from '../../../src/server/turn/branches.ts'
import { verifies } from '../../requirements/verifies.ts'
import { createSharedStores, openSharedServers, pairs, session } from './sharedServers.ts'

const withKey = (key: string) => ({ 'idempotency-key': key })

describe.each(await createSharedStores())('a request with an idempotency key, store %s', (_, store) => {
  verifies('X-07', 'retried on another server after its own stopped › is answered in its place', async () => {
    await using shared = await openSharedServers(store(), 2)
    const hold = shared.model.hold('One')
    const lost = shared.ask(0, 'One', withKey('a')).catch(() => 'lost')
    await hold.arrived
    await shared.ask(1, 'Two')
    await shared.servers[0]?.close(0)
    hold.release()
    expect(await lost).toBe('lost')
    expect(await shared.ask(1, 'One', withKey('a'))).toEqual([200, 'Re: One'])
    expect(await shared.transcript(1)).toEqual(pairs('One', 'Two'))
    // The prompt has nothing that was said after the question.
    expect(JSON.stringify(shared.model.requests.at(-1)?.body.messages)).not.toContain('Two')
    expect(shared.faults()).toEqual([])
  })

  verifies('X-07', 'retried after it was answered › replaces the reply, which moves into a branch', async () => {
    await using shared = await openSharedServers(store(), 2)
    await shared.ask(0, 'One', withKey('a'))
    await shared.ask(0, 'Two', withKey('b'))
    expect(await shared.ask(1, 'One', withKey('a'))).toEqual([200, 'Re: One'])
    expect(await shared.transcript()).toEqual(pairs('One', 'Two'))
    const memory = shared.servers[0]?.memory
    expect(memory && (await listBranches(memory, parseKey(session)))).toMatchObject([{ branch: 2, messages: 1 }])
    expect(shared.faults()).toEqual([])
  })

  verifies('X-07', 'sent to both servers at once › stores the question once', async () => {
    await using shared = await openSharedServers(store(), 2)
    await Promise.all([shared.ask(0, 'One', withKey('a')), shared.ask(1, 'One', withKey('a'))])
    expect((await shared.transcript()).filter((line) => line === 'user: One')).toEqual(['user: One'])
  })

  verifies('X-07', 'the same words with another key › are another turn, also from a client that retries', async () => {
    await using shared = await openSharedServers(store(), 2)
    await shared.ask(0, 'Yes', withKey('a'))
    await shared.ask(1, 'Yes', { ...withKey('b'), 'x-stainless-retry-count': '1' })
    expect(await shared.transcript()).toEqual(pairs('Yes', 'Yes'))
  })

  verifies('X-07', 'of more than 255 characters › is refused', async () => {
    await using shared = await openSharedServers(store(), 1)
    expect((await shared.ask(0, 'One', withKey('x'.repeat(256))))[0]).toBe(400)
    expect((await shared.ask(0, 'One', withKey('x'.repeat(255))))[0]).toBe(200)
  })
})
