import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { openMemory } from '../../../src/index.ts'
import { redisStore } from '../../../src/stores/redis.ts'
import { verifies } from '../../requirements/verifies.ts'
import type { RedisServer } from '../../support/redisServer.ts'
import { findTraces } from '../traces.ts'
import { startRedis } from './redisServer.ts'

const filesOf = ({ folder }: RedisServer): readonly string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))

describe('redisStore › ephemeral', () => {
  verifies(
    'T-17',
    'sessions › written, read, erased and ended with the server › leave nothing on its disk',
    async () => {
      const server = await startRedis({ settings: ['--loglevel', 'debug', '--slowlog-log-slower-than', '0'] })
      await using memory = await openMemory({ profile: 'support', sessions: await redisStore(server.url) })
      for (let turn = 0; turn < 20; turn++)
        await memory.append('acme:ann', [{ role: 'user', content: `My walrus is called Quizzaciously ${turn}.` }])
      await memory.context('acme:ann')
      await memory.forget({ key: 'acme:ann', messageId: 'm3' })
      await memory.append('acme:bob', [{ role: 'user', content: 'Quizzaciously again.' }])
      await memory.end('acme:bob')
      await server.stop()
      const files = filesOf(server)
      expect(files.map((file) => file.replace(/^.*\//, ''))).toContain('redis.log')
      expect(findTraces('Quizzaciously', files)).toEqual([])
    },
  )

  it('sessions › on a server that saves › would be on its disk', async () => {
    const server = await startRedis({ settings: ['--save', '3600', '1', '--rdbcompression', 'no'] })
    const store = await redisStore(server.url, { settings: 'confirmed' })
    await using memory = await openMemory({ profile: 'support', sessions: store })
    await memory.append('acme:ann', [{ role: 'user', content: 'My walrus is called Quizzaciously.' }])
    await server.stop()
    expect(filesOf(server).some((file) => readFileSync(file).includes('Quizzaciously'))).toBe(true)
  })

  const refusals = [
    { setting: ['--save', '60', '1'], message: 'saves its data to disk', remedy: 'save ""' },
    { setting: ['--appendonly', 'yes'], message: 'writes a log of all changes to disk', remedy: 'appendonly no' },
    { setting: ['--repl-diskless-sync', 'no'], message: 'for new replicas', remedy: 'repl-diskless-sync yes' },
    {
      setting: ['--maxmemory-policy', 'allkeys-lru'],
      message: 'drops sessions when its memory is full',
      remedy: 'maxmemory-policy noeviction',
    },
  ]
  for (const { setting, message, remedy } of refusals)
    verifies('T-17', `redisStore › on a server with ${setting.join(' ')} › is refused with the remedy`, async () => {
      const server = await startRedis({ settings: setting })
      await expect(redisStore(server.url)).rejects.toMatchObject({
        code: 'bad-store',
        message: expect.stringMatching(new RegExp(`${message}.*Set ${remedy}`)),
      })
    })

  it('redisStore › on a read-only replica › is refused, also with confirmed settings', async () => {
    const [primary, replica] = await Promise.all([startRedis(), startRedis()])
    replica.ask('REPLICAOF', '127.0.0.1', String(primary.port))
    await expect.poll(() => replica.ask('INFO', 'replication'), { timeout: 10_000 }).toContain('master_link_status:up')
    for (const query of ['', '?settings=confirmed'])
      await expect(redisStore(`${replica.url}${query}`)).rejects.toMatchObject({
        code: 'busy',
        message: expect.stringContaining('is a read-only replica; nothing was stored. Connect to the primary server'),
      })
  })

  it('redisStore › at maxmemory › opens', async () => {
    const server = await startRedis({ settings: ['--maxmemory', '1'] })
    const store = await redisStore(server.url)
    expect(await store.list({ limit: 1 })).toEqual([])
    await store.close()
  })

  it('redisStore › for a user that may not read the settings › asks for a confirmation', async () => {
    const server = await startRedis()
    server.ask('ACL', 'SETUSER', 'app', 'on', '>sesame', '~*', '&*', '+@all', '-config')
    const url = server.url.replace('//', '//app:sesame@')
    await expect(redisStore(url)).rejects.toMatchObject({
      code: 'bad-store',
      message: expect.stringMatching(/does not show its settings.*add \?settings=confirmed to the URL/),
    })
    const store = await redisStore(`${url}?settings=confirmed`)
    expect(await store.list({ limit: 1 })).toEqual([])
    await store.close()
  })

  it('redisStore › with settings that change while it is connected › refuses after the next connection', async () => {
    const server = await startRedis()
    const store = await redisStore(server.url)
    server.ask('CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru')
    server.ask('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
    await expect
      .poll(() => store.list({ limit: 1 }).catch((error: Error) => error.message), { timeout: 10_000 })
      .toMatch(/drops sessions when its memory is full/)
    server.ask('CONFIG', 'SET', 'maxmemory-policy', 'noeviction')
    await expect.poll(() => store.list({ limit: 1 }).catch(() => 'refused'), { timeout: 10_000 }).toEqual([])
    await store.close()
  })
})
