import { describe, expect } from 'vitest'
import { parseKey } from '../../../src/domain/key.ts'
import { openMemory } from '../../../src/index.ts'
import { redisStore } from '../../../src/stores/redis.ts'
import { verifies } from '../../requirements/verifies.ts'
import { openConfiguredServer } from '../../server/config/harness.ts'
import { createTempPaths } from '../tempPaths.ts'
import { startFaultProxy } from './faultProxy.ts'
import { newPrefix, startRedis } from './redisServer.ts'

const fresh = createTempPaths()
const server = await startRedis()
const proxy = await startFaultProxy(server.port)

/** Names of the scripts and commands that are sent during some work; pings of idle connections do not count. */
async function commandsDuring(work: () => Promise<unknown>): Promise<readonly string[]> {
  proxy.commands.length = 0
  await work()
  return proxy.commands.flatMap(([name, script = '', ...rest]) => {
    if (name === 'PING') return []
    if (name !== 'EVALSHA' && name !== 'EVAL') return [String(name)]
    const keys = Number(rest[0])
    return [keys === 5 ? 'read' : keys === 13 ? 'write' : keys === 2 ? 'record' : script]
  })
}

describe('redisStore › round trips', () => {
  verifies(
    'T-17',
    'context › of a session with 80 messages › takes one command, with and without a cache',
    async () => {
      const url = `${proxy.url}?prefix=${newPrefix()}`
      const profile = { profile: 'support', upkeep: false } as const
      await using memory = await openMemory({ ...profile, sessions: await redisStore(url) })
      for (let turn = 0; turn < 40; turn++)
        await memory.append('acme:ann', [
          { role: 'user', content: `Question ${turn}: what does the walrus eat on day ${turn}?` },
          { role: 'assistant', content: `On day ${turn} it eats ${turn} clams.` },
        ])
      await using other = await openMemory({ ...profile, sessions: await redisStore(url) })
      // The small budget makes it search and read older messages.
      const build = (from: typeof memory) => from.context('acme:ann', { query: 'clams on day 3?', budget: 400 })
      expect(await commandsDuring(() => build(memory))).toEqual(['read'])
      expect(await commandsDuring(() => build(other))).toEqual(['read'])
      expect(await commandsDuring(() => build(other))).toEqual(['read'])
      const append = () => memory.append('acme:ann', [{ role: 'user', content: 'And on day 39, clams or squids?' }])
      expect(await commandsDuring(append)).toEqual(['read', 'write'])
      expect(await commandsDuring(() => build(other))).toEqual(['read'])
      expect((await build(other)).text).toBe((await build(memory)).text)
    },
  )

  verifies('T-17', 'search › with many hits that are not cached › reads them with one command', async () => {
    const url = `${proxy.url}?prefix=${newPrefix()}`
    await using memory = await openMemory({ profile: 'support', upkeep: false, sessions: await redisStore(url) })
    const content = (turn: number) => `The walrus eats ${turn} clams.`
    for (let from = 0; from < 600; from += 100)
      await memory.append(
        'acme:ann',
        Array.from({ length: 100 }, (_, at) => ({ role: 'user' as const, content: content(from + at) })),
      )
    const store = await redisStore(url)
    const search = () => store.search(parseKey('acme:ann'), { text: 'walrus clams', limit: 600 })
    await search()
    const found = new Set<string>()
    const sent = await commandsDuring(async () => {
      for (const { entry } of await search()) if (entry.kind === 'message') found.add(entry.content)
    })
    expect(found.size).toBe(600)
    expect(sent).toHaveLength(2)
    await store.close()
  })

  verifies('T-17', 'turn › of a server › reads once and writes question, reply and receipt', async () => {
    await using opened = await openConfiguredServer(fresh('.json'), {
      profile: 'support',
      store: `sqlite:${fresh()}`,
      sessions: `${proxy.url}?prefix=${newPrefix()}`,
      upkeep: 'off',
    })
    const ask = async (turn: number) =>
      expect((await opened.ask('acme:ann', `My cat ${turn} is Miso.`)).status).toBe(200)
    for (let turn = 0; turn < 3; turn++) await ask(turn)
    const sent = await commandsDuring(async () => {
      await ask(4)
      await opened.server.close(1_000)
    })
    expect(sent).toEqual(['read', 'write', 'write', 'record'])
  })
})
