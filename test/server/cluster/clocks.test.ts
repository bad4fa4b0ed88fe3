import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { describe, expect } from 'vitest'
import { openMemory } from '../../../src/index.ts'
import { isCampaign } from '../../context/campaign.ts'
import { mapConcurrently } from '../../fault/mapConcurrently.ts'
import { createTempFolder } from '../../fault/tempFolder.ts'
import { verifies } from '../../requirements/verifies.ts'
import { createEmptyDatabases } from '../../support/postgres.ts'
import { startPromptRecorder } from './promptRecorder.ts'
import { type Cluster, startCluster } from './serverProcesses.ts'
import { createRedisUrls } from './sharedServers.ts'

const newRedisUrl = await createRedisUrls()
const newPostgresUrl = createEmptyDatabases()
const sessions = isCampaign ? 500 : 3
const hourMs = 3_600_000
const preload = new URL('shiftedClock.ts', import.meta.url).href

const stores = [
  ['Redis', async () => ({ profile: 'support' as const, store: 'ram:', sessions: newRedisUrl() })],
  ['PostgreSQL', async () => ({ profile: 'thread' as const, store: await newPostgresUrl() })],
] as const

/** Receives webhooks; `ended` has the key of each one. */
async function startReceiver() {
  const ended: string[] = []
  const server = createServer(async (request, response) => {
    ended.push(((await json(request)) as { readonly key: string }).key)
    response.writeHead(204).end()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  return { url, ended, [Symbol.asyncDispose]: async () => void server.close() }
}

async function request(url: string, body?: object): Promise<unknown> {
  const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
  const response = await fetch(url, body === undefined ? {} : init)
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${await response.text()}`)
  return response.json()
}

const ask = (server: string | undefined, key: string, content: string): Promise<unknown> =>
  request(`${server}/v1/${key}/chat/completions`, { model: 'm', messages: [{ role: 'user', content }] })

const questions = async (server: string | undefined, key: string): Promise<readonly string[]> => {
  const { items } = (await request(`${server}/api/sessions/${key}/messages`)) as {
    readonly items: readonly { readonly role: string; readonly content: string }[]
  }
  return items.filter(({ role }) => role === 'user').map(({ content }) => content)
}

const keysOf = (name: string): readonly string[] =>
  Array.from({ length: sessions }, (_, index) => `acme:${name}${index}`)

/** Begins each session on one of the servers, and continues it on the others. */
async function converse(cluster: Cluster, keys: readonly string[]): Promise<void> {
  const urls = cluster.urls()
  const converseIn = async ([index, key]: readonly [number, string]): Promise<void> => {
    for (const [turn, question] of ['One', 'Two', 'Three'].entries())
      await ask(urls[(index + turn) % urls.length], key, question)
  }
  await mapConcurrently([...keys.entries()], converseIn, 4)
}

/** By how much the clocks of the servers are wrong. */
const shiftsMs = [0, 24 * hourMs, -24 * hourMs]

describe.each(stores)('three server processes on %s', (_, open) => {
  verifies(['T-06', 'T-07'], 'with clocks 24 h apart › end no session early, and each expired one once', async () => {
    using folder = createTempFolder()
    await using model = await startPromptRecorder()
    await using receiver = await startReceiver()
    const memoryOptions = await open()
    const { profile, ...stores } = memoryOptions
    const config = {
      ...stores,
      profile: 'kept',
      profiles: { kept: { extends: profile, lifetime: { idle: hourMs, age: 30 * 24 * hourMs } } },
      sweepInterval: 250,
      shutdown: { delay: 1 },
      webhook: { url: receiver.url, secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw' },
    }
    await using cluster = await startCluster({
      store: stores.store,
      folder: folder.path,
      count: shiftsMs.length,
      upstream: model.url,
      config,
      environment: (index) => ({ NODE_OPTIONS: `--import ${preload}`, CLOCK_SHIFT_MS: String(shiftsMs[index]) }),
    })
    const [kept, expired] = [keysOf('kept'), keysOf('short')]
    await converse(cluster, [...kept, ...expired])
    await using memory = await openMemory(memoryOptions)
    for (const key of expired) await memory.setMetadata(key, { idle: 1 })
    await expect.poll(() => new Set(receiver.ended).size, { timeout: 20_000 + sessions * 100 }).toBe(expired.length)
    for (const server of cluster.urls())
      for (const key of kept) expect([key, await questions(server, key)]).toEqual([key, ['One', 'Two', 'Three']])
    // Servers have gone on sweeping, and finish their deliveries when they stop.
    expect(await Promise.all(shiftsMs.map((_shift, index) => cluster.stop(index)))).toEqual([0, 0, 0])
    expect(receiver.ended.toSorted()).toEqual(expired.toSorted())
  })
})
