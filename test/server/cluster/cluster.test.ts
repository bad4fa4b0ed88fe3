import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect } from 'vitest'
import { createTempFolder } from '../../fault/tempFolder.ts'
import { verifies } from '../../requirements/verifies.ts'
import { findDeviations, findOtherPrompts, runSessions } from './clusterRuns.ts'
import { type PromptRecorder, replyTo, startPromptRecorder } from './promptRecorder.ts'
import { createRoundRobinClient } from './roundRobin.ts'
import { type Cluster, startCluster } from './serverProcesses.ts'

const [servers, parallel] = [4, 100]

describe('four server processes on one store behind a round-robin client', () => {
  const folder = createTempFolder()
  let model: PromptRecorder
  let cluster: Cluster
  const start = (count: number, upstream: string): Promise<Cluster> =>
    startCluster({ store: `sqlite:${join(folder.path, `${count}.db`)}`, folder: folder.path, count, upstream })
  beforeAll(async () => {
    model = await startPromptRecorder()
    cluster = await start(servers, model.url)
  })
  afterAll(async () => {
    await cluster[Symbol.asyncDispose]()
    await model[Symbol.asyncDispose]()
    folder[Symbol.dispose]()
  })

  verifies(['X-07', 'T-15'], `${parallel} parallel requests on one session › are ordered turns`, async () => {
    await using client = createRoundRobinClient(cluster)
    const turns = Array.from({ length: parallel }, (_, index) => ({ key: 'acme:hot', question: `Question ${index}` }))
    const replies = await Promise.all(turns.map((turn) => client.ask(turn)))
    expect(replies).toEqual(turns.map(({ question }) => replyTo(question)))
    expect(await findDeviations(client, turns, { isOrdered: false })).toEqual([])
    expect(client.failures).toEqual(new Map())
  })

  verifies('X-07', 'sessions without stickiness › get the prompts of a single server', async () => {
    await using client = createRoundRobinClient(cluster)
    const options = { sessions: 12, turns: 4, concurrency: 12, name: 'plain' }
    const acknowledged = await runSessions(client, options)
    expect(await findDeviations(client, acknowledged, { isOrdered: true })).toEqual([])
    expect(client.failures).toEqual(new Map())
    await using alone = await startPromptRecorder()
    await using single = await start(1, alone.url)
    await using singleClient = createRoundRobinClient(single)
    await runSessions(singleClient, options)
    expect(findOtherPrompts(acknowledged, model, alone)).toEqual([])
  })

  verifies('X-07', 'servers restarted one after the other under load › lose and fail nothing', async () => {
    await using client = createRoundRobinClient(cluster)
    let isRestarted = false
    const load = Promise.all(
      Array.from({ length: 4 }, async (_, index) => {
        const all = []
        for (let round = 0; !isRestarted; round++)
          all.push(
            await runSessions(client, { sessions: 1, turns: 3, concurrency: 1, name: `restart${index}x${round}s` }),
          )
        return all.flat()
      }),
    )
    const codes = []
    for (let index = 0; index < 2; index++) codes.push(await cluster.restart(index))
    isRestarted = true
    const acknowledged = (await load).flat()
    expect(codes).toEqual([0, 0])
    expect(await findDeviations(client, acknowledged, { isOrdered: true })).toEqual([])
    expect([...client.failures.keys()].filter((cause) => cause !== 'ECONNREFUSED')).toEqual([])
  })

  for (const style of ['idempotency key', 'retry count'] as const)
    verifies('X-07', `servers killed under load, retries with ${style} › lose and repeat nothing`, async () => {
      await using client = createRoundRobinClient(cluster, { retryStyle: style })
      let isOver = false
      const load = Promise.all(
        Array.from({ length: 4 }, async (_, index) => {
          const all = []
          const name = `${style === 'retry count' ? 'count' : 'key'}${index}x`
          for (let round = 0; !isOver; round++)
            all.push(await runSessions(client, { sessions: 1, turns: 3, concurrency: 1, name: `${name}${round}s` }))
          return all.flat()
        }),
      )
      await cluster.kill(style === 'retry count' ? 0 : 1)
      isOver = true
      expect(await findDeviations(client, (await load).flat(), { isOrdered: true })).toEqual([])
    })
})
