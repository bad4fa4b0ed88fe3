import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it } from 'vitest'
import { internalsOf } from '../../../src/memory.ts'
import { encodeJsonReply } from '../../providers/protocols.ts'
import { startUpstream } from '../../providers/upstream.ts'
import { verifies } from '../../requirements/verifies.ts'
import { createTempPaths } from '../../stores/tempPaths.ts'
import { type ChatResult, openConfiguredServer } from './harness.ts'

const fresh = createTempPaths()
const small = { small: { extends: 'thread', budget: 900 } }
const configText = (fields: object): string => JSON.stringify({ listen: { port: 0 }, ...fields })

/** Starts an upstream that replies when `reply` is called. */
async function startPausedUpstream() {
  const [requested, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const server = createServer(async (request, response) => {
    request.resume()
    requested.resolve()
    await released.promise
    response.writeHead(200, { 'content-type': 'application/json' }).end(encodeJsonReply('openai', ['Noted.']))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const close = async (): Promise<void> => {
    server.closeAllConnections()
    server.close()
  }
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/v1`,
    requested: requested.promise,
    reply: () => released.resolve(),
    [Symbol.asyncDispose]: close,
  }
}

describe('ConfigWatcher', () => {
  verifies('T-17', 'applies changed profiles to the next turn and keeps stored messages', async () => {
    await using opened = await openConfiguredServer(fresh('.json'), { store: `sqlite:${fresh()}` })
    const { store } = internalsOf(opened.server.memories.scopes)
    const limitOf = ({ headers }: ChatResult) => headers.get('x-threadkeep-tokens')?.split('/')[1]
    // The window of an unknown model.
    expect(limitOf(await opened.ask('acme:ann', 'My cat is called Miso.'))).toBe('128000')
    const changed = { profile: 'small', profiles: small, templates: { sales: { preamble: 'You sell lamps.' } } }
    expect(await opened.reconfigure(configText({ ...changed, store: 'sqlite:kept.db' }))).toBe('applied')
    const answer = await opened.ask('acme:ann', 'What is my cat called?')
    expect([answer.text, answer.headers.get('x-threadkeep-profile'), limitOf(answer)]).toEqual([
      'From what you told me: "My cat is called Miso."',
      'small',
      '900',
    ])
    expect((await opened.ask('acme:bob', 'Hello', { 'x-threadkeep-template': 'sales' })).status).toBe(200)
    expect(internalsOf(opened.server.memories.scopes).store).toBe(store)
    expect(opened.faults).toEqual([expect.stringMatching(/^config \/.*\.json: restart the server to apply store\.$/)])
  })

  it('with an invalid file logs once and keeps the previous settings', async () => {
    await using opened = await openConfiguredServer(fresh('.json'), {
      store: 'ram:',
      profile: 'small',
      profiles: small,
    })
    const budgetNow = async () => (await opened.ask('acme:ann', 'Hello')).headers.get('x-threadkeep-tokens')
    for (const [text, fault] of [
      ['{', 'it is not valid JSON'],
      [configText({ profil: 'x' }), 'profil is not a field of the configuration. Use one of: listen, '],
      [
        configText({ profiles: { small: { extends: 'thread', budget: -1 } } }),
        'profiles.small.budget is -1; it must be a whole number, 1 or more.',
      ],
    ] as const) {
      const before = opened.faults.length
      expect([await opened.reconfigure(text), await opened.reconfigure(text)]).toEqual(['rejected', 'unchanged'])
      expect(opened.faults.slice(before)).toEqual([expect.stringContaining(fault)])
      expect(await budgetNow()).toMatch(/\/900$/)
    }
    expect(
      await opened.reconfigure(
        configText({ store: 'ram:', profile: 'small', profiles: { small: { ...small.small, budget: 800 } } }),
      ),
    ).toBe('applied')
    expect(await budgetNow()).toMatch(/\/800$/)
  })

  it('with unchanged text does nothing', async () => {
    const file = fresh('.json')
    await using opened = await openConfiguredServer(file, { store: 'ram:' })
    const before = opened.server.memories.sessions
    expect(await opened.reconfigure(readFileSync(file, 'utf8'))).toBe('unchanged')
    expect(opened.server.memories.sessions).toBe(before)
  })

  it('lets a running turn finish with its previous settings', async () => {
    await using slow = await startPausedUpstream()
    await using opened = await openConfiguredServer(fresh('.json'), {
      store: `sqlite:${fresh()}`,
      upkeep: 'off',
      upstreams: [{ base: slow.url }],
    })
    const before = opened.server.memories.sessions
    const answer = opened.ask('acme:ann', 'Hello')
    await slow.requested
    expect(await opened.reconfigure(configText({ profile: 'small', profiles: small }))).toBe('applied')
    expect(opened.server.memories.sessions).not.toBe(before)
    slow.reply()
    expect(await answer).toMatchObject({ status: 200, text: 'Noted.' })
    expect((await opened.server.memories.sessions.transcript('acme:ann')).map(({ content }) => content)).toEqual([
      'Hello',
      'Noted.',
    ])
    await expect(before.transcript('acme:ann')).rejects.toMatchObject({ code: 'closed' })
  })

  verifies('X-08', 'keeps the secrets of sessions, which are only in RAM', async () => {
    await using upstream = await startUpstream()
    await using opened = await openConfiguredServer(fresh('.json'), {
      store: `sqlite:${fresh()}`,
      upkeep: 'off',
      upstreams: [{ base: upstream.url }],
    })
    await opened.ask('acme:ann', 'My password is hunter2hunter2.')
    expect(await opened.reconfigure(configText({ profile: 'small', profiles: small }))).toBe('applied')
    await opened.ask('acme:ann', 'What did I say?')
    expect(upstream.requests.at(-1)?.text).toContain('My password is hunter2hunter2.')
    expect((await opened.server.memories.sessions.transcript('acme:ann'))[0]?.content).not.toContain('hunter2')
  })
})
