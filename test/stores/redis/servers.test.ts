import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { parseKey } from '../../../src/domain/key.ts'
import type { SearchIndex, Store } from '../../../src/domain/ports.ts'
import { type Memory, openMemory } from '../../../src/index.ts'
import { newChange, newMessage } from '../../../src/stores/conformance/fixtures.ts'
import { ramStore } from '../../../src/stores/ram.ts'
import { redisStore } from '../../../src/stores/redis.ts'
import { textAnalysis } from '../../../src/stores/textAnalysis.ts'
import { runCommand } from '../../cli/command.ts'
import { verifies } from '../../requirements/verifies.ts'
import { openConfiguredServer } from '../../server/config/harness.ts'
import { createTempPaths } from '../tempPaths.ts'
import { newPrefix, startRedis } from './redisServer.ts'

const fresh = createTempPaths()
const server = await startRedis()
const newUrl = (): string => `${server.url}?prefix=${newPrefix()}`

describe('servers with one Redis store', () => {
  verifies(
    'T-17',
    'two servers › asked in turns › continue each other’s sessions and store nothing on disk',
    async () => {
      const [sessions, file] = [newUrl(), fresh()]
      const open = () =>
        openConfiguredServer(fresh('.json'), { profile: 'support', store: `sqlite:${file}`, sessions, upkeep: 'off' })
      await using first = await open()
      await using second = await open()
      await first.ask('acme:ann', 'My cat is called Miso.')
      expect((await second.ask('acme:ann', 'What is my cat called?')).text).toContain('Miso')
      await second.ask('acme:ann', 'My dog is called Rex.')
      expect((await first.ask('acme:ann', 'What is my dog called?')).text).toContain('Rex')
      expect((await first.ask('zeta:ann', 'What is my cat called?')).text).not.toContain('Miso')
      expect(readFileSync(file).includes('Miso')).toBe(false)
      const health = await fetch(`${first.server.url}/healthz`)
      expect(health.status).toBe(200)
    },
  )

  it('configuration › with sessions in Redis that no profile uses, or another scheme › is refused', async () => {
    const open = (config: object) => openConfiguredServer(fresh('.json'), { store: 'ram:', ...config })
    await expect(open({ profile: 'thread', sessions: newUrl() })).rejects.toMatchObject({
      code: 'bad-option',
      message: expect.stringContaining('Profile thread keeps its sessions in the store'),
    })
    await expect(open({ profile: 'support', sessions: 'mysql://:hunter2@a' })).rejects.toMatchObject({
      code: 'bad-option',
      message: expect.stringMatching(/^sessions is (?!.*hunter2).*it must be ram:, redis:/),
    })
    await expect(open({ profile: 'support', sessions: 'redis://a?prefx=b' })).rejects.toMatchObject({
      code: 'bad-option',
    })
  })

  it('config print and doctor › with sessions in Redis › show the address and never the password', async () => {
    server.ask('ACL', 'SETUSER', 'app', 'on', '>hunter2', '~*', '&*', '+@all')
    const url = newUrl().replace('//', '//app:hunter2@')
    const env = { THREADKEEP_SESSIONS: url, THREADKEEP_PROFILE: 'support' }
    const printed = await runCommand(['config', 'print'], '', env)
    expect(printed.stdout).toMatch(/sessions +THREADKEEP_SESSIONS +"redis:\/\/\*\*\*@127/)
    const store = `sqlite:${fresh()}`
    await (await openMemory({ store })).close()
    const checked = await runCommand(['doctor', '--store', store], '', env)
    expect(checked.stdout).toContain(`Redis at 127.0.0.1:${server.port}: 0 sessions, its settings are right.`)
    const closed = await runCommand(['doctor', '--store', store, '--sessions', url.replace('hunter2', 'x')], '', env)
    expect([closed.code, closed.stdout]).toEqual([1, expect.stringContaining('refused the user, password or token')])
    for (const { stdout, stderr } of [printed, checked, closed]) expect(stdout + stderr).not.toContain('hunter2')
  })

  verifies('X-05', 'erasure › in one process › empties the caches and indexes of another one', async () => {
    const url = newUrl()
    const [first, second] = [await redisStore(url), await redisStore(url)]
    const key = parseKey('acme:ann')
    const { epoch } = await first.readHead(key, 0)
    await first.commit(newChange('a', { epoch, append: [newMessage('The walrus is called Bruno.')] }))
    const { revision } = await second.readHead(key, 9)
    expect(await second.search(key, { text: 'walrus', limit: 1, revision })).toHaveLength(1)
    const seen = async () => (await second.readHead(key, 9, revision)).recent.map(({ content }) => content)
    expect(await seen()).toEqual(['The walrus is called Bruno.'])
    await first.erase(key)
    // The revision allows an answer from the cache, which is empty by now.
    await expect.poll(seen).toEqual([])
    expect(await second.search(key, { text: 'walrus', limit: 1, revision })).toEqual([])
    await first.close()
    await second.close()
  })
})

/** A conversation that makes summaries, facts, evictions and searches happen. */
async function converse(memory: Memory, tick: () => void): Promise<readonly unknown[]> {
  const seen: unknown[] = []
  for (let turn = 0; turn < 70; turn++) {
    tick()
    const key = turn % 3 === 0 ? 'acme:bob' : 'acme:ann'
    const content = `Turn ${turn}: my walrus Bruno ate ${turn} clams near pier ${turn % 7} \ud800\u0000 in Oslo.`
    await memory.append(key, [
      { role: 'user', content },
      { role: 'assistant', content: `Noted: ${turn} clams.` },
    ])
    // Upkeep takes another number of turns on a store that answers later.
    await memory.upkeep.whenIdle()
    if (turn % 10 !== 9) continue
    const { text, ledger } = await memory.context(key, { query: 'How many clams at pier 3?', budget: 900 })
    seen.push(text, ledger, await memory.search('acme', 'clams near pier 4', { limit: 5 }))
    await memory.forget({ key: 'acme:ann', messageId: `m${turn}` })
  }
  return seen
}

describe('ramStore and redisStore', () => {
  verifies('X-07', 'return the same contexts, ledgers and search results', async () => {
    const began = Date.now()
    const run = async (sessions: Store & SearchIndex) => {
      let now = began
      await using memory = await openMemory({ profile: 'support', sessions, clock: () => now })
      return JSON.stringify(
        await converse(memory, () => {
          now += 60_000
        }),
      )
    }
    expect(await run(await redisStore(newUrl()))).toBe(await run(ramStore({ analysis: textAnalysis })))
  })
})
