import { describe, expect, vi } from 'vitest'
import { parseKey } from '../../../src/domain/key.ts'
import type { SearchIndex, Store } from '../../../src/domain/ports.ts'
import type { SessionChange } from '../../../src/domain/session.ts'
import { listBranches, readBranch } from '../../../src/server/turn/branches.ts'
import { interceptStore } from '../../memory/storeFixtures.ts'
import { verifies } from '../../requirements/verifies.ts'
import { assistant, type TestServer, toLines, user } from '../start.ts'
import { createSharedStores, openSharedServers, pairs, type SharedServers, session } from './sharedServers.ts'

/** Sends a question to a server and returns once the model has received it; the reply waits for `release()`. */
async function askAndHold(shared: SharedServers, server: number, question: string, headers = {}) {
  const hold = shared.model.hold(question)
  const answer = shared.ask(server, question, headers)
  await hold.arrived
  return {
    release: () => {
      hold.release()
      return answer
    },
  }
}

/** Contents of the prompt for a question, as the model received it. */
const promptFor = ({ model }: SharedServers, question: string): readonly string[] => {
  const request = model.requests.find(({ body }) => body.messages.at(-1)?.content === question)
  return request?.body.messages.map(({ content }: { readonly content: string }) => content) ?? []
}

/** Wraps the store of server 1: runs `interfere` once before it stores a message. */
function beforeCommitOn1(content: string, interfere: () => Promise<unknown>) {
  let isDone = false
  const commit = async ({ append }: SessionChange): Promise<void> => {
    if (isDone || append[0]?.content !== content) return
    isDone = true
    await interfere()
  }
  return (store: Store & SearchIndex, server: number) => (server === 1 ? interceptStore(store, { commit }) : store)
}

describe.each(await createSharedStores())('one session on two servers, store %s', (_, store) => {
  verifies('X-07', 'turns taken by turns › continue each other', async () => {
    await using shared = await openSharedServers(store(), 2)
    for (const [index, question] of ['A', 'B', 'C', 'D', 'E'].entries())
      expect(await shared.ask(index % 2, question)).toEqual([200, `Re: ${question}`])
    expect(await shared.transcript()).toEqual(pairs('A', 'B', 'C', 'D', 'E'))
    expect(promptFor(shared, 'E').join('\n')).toContain('Re: D')
    const stored = await shared.servers[0]?.memory.transcript(session)
    expect(stored?.map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
    expect(shared.faults()).toEqual([])
  })

  verifies('X-07', 'a client that sends only what is new › is known by the newest receipts', async () => {
    const limits: number[] = []
    const wrapStore = (opened: Store & SearchIndex) => {
      const read = opened.records.bind(opened)
      vi.spyOn(opened, 'records').mockImplementation((key, range) => {
        limits.push(range.limit)
        return read(key, range)
      })
      return opened
    }
    await using shared = await openSharedServers(store(), 3, { wrapStore })
    for (const [index, question] of ['A', 'B', 'C', 'D', 'E'].entries()) await shared.ask(index < 4 ? 0 : 1, question)
    await shared.ask(2, 'F')
    // Each server has to find out once.
    expect(limits).toEqual([2, 2, 2])
  })

  verifies('X-07', 'turns stored by the other server meanwhile › come first and are part of the prompt', async () => {
    await using shared = await openSharedServers(store(), 2, { wrapStore: beforeCommitOn1('Two', () => interfere()) })
    let other: Awaited<ReturnType<typeof askAndHold>> | undefined
    const interfere = async () => {
      await shared.ask(0, 'Zero')
      other = await askAndHold(shared, 0, 'One')
    }
    expect(await shared.ask(1, 'Two')).toEqual([200, 'Re: Two'])
    expect(promptFor(shared, 'Two').join('\n')).toContain('Re: Zero')
    await other?.release()
    expect(await shared.transcript()).toEqual(pairs('Zero', 'One', 'Two'))
    expect(shared.faults()).toEqual([])
  })

  verifies(
    'X-07',
    'an edit during which the other server stored a turn › moves that turn into a branch too',
    async () => {
      await using shared = await openSharedServers(store(), 2, {
        wrapStore: beforeCommitOn1('Two, edited', () => interfere()),
      })
      for (const question of ['One', 'Two']) await shared.ask(0, question)
      const interfere = () => shared.ask(0, 'Meanwhile')
      const edited = [user('One'), assistant('Re: One'), user('Two, edited')]
      expect(await shared.chat(1, edited)).toEqual([200, 'Re: Two, edited'])
      expect(await shared.transcript()).toEqual(pairs('One', 'Two, edited'))
      const memory = (shared.servers[0] as TestServer).memory
      const branches = await listBranches(memory, parseKey(session))
      const lines = await Promise.all(
        branches.map(async ({ branch }) => toLines(await readBranch(memory, parseKey(session), branch))),
      )
      expect(lines).toEqual([pairs('Two'), pairs('Meanwhile')])
      expect(shared.faults()).toEqual([])
    },
  )

  const orders = [
    ['A', 'B', 'C'],
    ['C', 'B', 'A'],
    ['B', 'C', 'A'],
  ] as const
  for (const order of orders)
    verifies('X-07', `open questions, replies in order ${order.join(', ')} › each follows its question`, async () => {
      await using shared = await openSharedServers(store(), 3)
      const held = {
        A: await askAndHold(shared, 0, 'A'),
        B: await askAndHold(shared, 1, 'B'),
        C: await askAndHold(shared, 2, 'C'),
      }
      for (const question of order) expect(await held[question].release()).toEqual([200, `Re: ${question}`])
      expect(await shared.transcript()).toEqual(pairs('A', 'B', 'C'))
      expect(shared.faults()).toEqual([])
    })

  verifies('X-07', 'a second reply to a question, after the next question › does not part another pair', async () => {
    await using shared = await openSharedServers(store(), 2)
    const late = await askAndHold(shared, 0, 'One')
    expect(await shared.ask(1, 'One', { 'x-stainless-retry-count': '1' })).toEqual([200, 'Re: One'])
    const next = await askAndHold(shared, 1, 'Two')
    await late.release()
    await next.release()
    expect(await shared.transcript()).toEqual([...pairs('One', 'Two'), 'assistant: Re: One'])
    expect(shared.faults()).toEqual([])
  })

  verifies('T-15', 'a question stored after another one but before its prompt is built › is not shown', async () => {
    let next: Awaited<ReturnType<typeof askAndHold>> | undefined
    const wrapStore = (inner: Store & SearchIndex, server: number): Store & SearchIndex =>
      server === 0
        ? inner
        : new Proxy(inner, {
            get: (target, name) => {
              if (name !== 'commit') return Reflect.get(target, name)
              return async (change: Parameters<Store['commit']>[0]) => {
                const committed = await target.commit(change)
                if (change.append[0]?.content === 'Two') next = await askAndHold(shared, 0, 'Three')
                return committed
              }
            },
          })
    await using shared = await openSharedServers(store(), 2, { wrapStore })
    await shared.ask(0, 'One')
    expect(await shared.ask(1, 'Two')).toEqual([200, 'Re: Two'])
    await next?.release()
    expect(promptFor(shared, 'Two').slice(-3)).toEqual(['One', 'Re: One', 'Two'])
    expect(promptFor(shared, 'Two').join('\n')).not.toContain('Three')
    expect(await shared.transcript()).toEqual(pairs('One', 'Two', 'Three'))
  })

  verifies('X-05', 'a session forgotten on the other server › is empty, also for a reply on its way', async () => {
    await using shared = await openSharedServers(store(), 2)
    await shared.ask(0, 'One')
    const late = await askAndHold(shared, 0, 'I am ill with X')
    const forget = { key: session }
    expect((await shared.servers[1]?.requestJson('POST /api/forget', forget))?.status).toBe(200)
    await late.release()
    expect(await shared.transcript()).toEqual([])
    expect(await shared.ask(0, 'New')).toEqual([200, 'Re: New'])
    expect(promptFor(shared, 'New').join('\n')).not.toContain('ill')
    expect(shared.faults()).toEqual([])
  })
})
