import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it } from 'vitest'
import { internalsOf } from '../../../src/memory.ts'
import { wholeReply } from '../../providers/protocols.ts'
import { startUpstream } from '../../providers/upstream.ts'
import { verifies } from '../../requirements/verifies.ts'
import { freshFiles } from '../../stores/tempPaths.ts'
import { stage } from './stage.ts'

const fresh = freshFiles()
const small = { small: { extends: 'thread', budget: 900 } }
const configured = (more: object): string => JSON.stringify({ listen: { port: 0 }, ...more })

/** A model server that answers when it is told to. */
async function waitingUpstream() {
  const [asked, told] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const server = createServer(async (request, response) => {
    request.resume()
    asked.resolve()
    await told.promise
    response.writeHead(200, { 'content-type': 'application/json' }).end(wholeReply('openai', ['Noted.']))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const close = async (): Promise<void> => {
    server.closeAllConnections()
    server.close()
  }
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/v1`,
    asked: asked.promise,
    reply: () => told.resolve(),
    [Symbol.asyncDispose]: close,
  }
}

describe('a configuration that changes', () => {
  verifies('T-17', 'counts from the next turn on, and what was said stays', async () => {
    await using staged = await stage(fresh('.json'), { store: `sqlite:${fresh()}` })
    const { store } = internalsOf(staged.server.memories.scopes)
    expect((await staged.ask('acme:ann', 'My cat is called Miso.')).headers.get('x-threadkeep-tokens')).toMatch(
      /\/16000$/,
    )
    const changed = { profile: 'small', profiles: small, templates: { sales: { preamble: 'You sell lamps.' } } }
    expect(await staged.reconfigure(configured({ ...changed, store: 'sqlite:kept.db' }))).toBe('taken')
    const { text, headers } = await staged.ask('acme:ann', 'What is my cat called?')
    expect([text, headers.get('x-threadkeep-profile')]).toEqual([
      'From what you told me: "My cat is called Miso."',
      'small',
    ])
    expect((await staged.ask('acme:bob', 'Hello', { 'x-threadkeep-template': 'sales' })).status).toBe(200)
    expect(internalsOf(staged.server.memories.scopes).store).toBe(store)
    expect(staged.faults).toEqual([expect.stringMatching(/^config \/.*\.json: store will count after a restart\.$/)])
  })

  it('is told once when it is wrong, and what held before still does', async () => {
    await using staged = await stage(fresh('.json'), { store: 'ram:', profile: 'small', profiles: small })
    const profileNow = async () => (await staged.ask('acme:ann', 'Hello')).headers.get('x-threadkeep-tokens')
    for (const [text, fault] of [
      ['{', 'it is not JSON'],
      [configured({ profil: 'x' }), 'profil is unknown; the configuration has only listen, '],
      [
        configured({ profiles: { small: { extends: 'thread', budget: -1 } } }),
        'profiles.small.budget is -1; it must be a whole number, 1 or more.',
      ],
    ] as const) {
      const before = staged.faults.length
      expect([await staged.reconfigure(text), await staged.reconfigure(text)]).toEqual(['refused', 'same'])
      expect(staged.faults.slice(before)).toEqual([expect.stringContaining(fault)])
      expect(await profileNow()).toMatch(/\/900$/)
    }
    expect(
      await staged.reconfigure(
        configured({ store: 'ram:', profile: 'small', profiles: { small: { ...small.small, budget: 800 } } }),
      ),
    ).toBe('taken')
    expect(await profileNow()).toMatch(/\/800$/)
  })

  it('is not taken again when nothing but its time is new', async () => {
    const file = fresh('.json')
    await using staged = await stage(file, { store: 'ram:' })
    const before = staged.server.memories.sessions
    expect(await staged.reconfigure(readFileSync(file, 'utf8'))).toBe('same')
    expect(staged.server.memories.sessions).toBe(before)
  })

  it('lets a turn that is under way finish as it began', async () => {
    await using slow = await waitingUpstream()
    await using staged = await stage(fresh('.json'), {
      store: `sqlite:${fresh()}`,
      upkeep: 'off',
      upstreams: [{ base: slow.url }],
    })
    const before = staged.server.memories.sessions
    const answer = staged.ask('acme:ann', 'Hello')
    await slow.asked
    expect(await staged.reconfigure(configured({ profile: 'small', profiles: small }))).toBe('taken')
    expect(staged.server.memories.sessions).not.toBe(before)
    slow.reply()
    expect(await answer).toMatchObject({ status: 200, text: 'Noted.' })
    expect((await staged.server.memories.sessions.transcript('acme:ann')).map(({ content }) => content)).toEqual([
      'Hello',
      'Noted.',
    ])
    await expect(before.transcript('acme:ann')).rejects.toMatchObject({ code: 'closed' })
  })

  verifies('X-08', 'leaves secrets of sessions at hand, which are in RAM alone', async () => {
    await using upstream = await startUpstream()
    await using staged = await stage(fresh('.json'), {
      store: `sqlite:${fresh()}`,
      upkeep: 'off',
      upstreams: [{ base: upstream.url }],
    })
    await staged.ask('acme:ann', 'My password is hunter2hunter2.')
    expect(await staged.reconfigure(configured({ profile: 'small', profiles: small }))).toBe('taken')
    await staged.ask('acme:ann', 'What did I say?')
    expect(upstream.requests.at(-1)?.text).toContain('My password is hunter2hunter2.')
    expect((await staged.server.memories.sessions.transcript('acme:ann'))[0]?.content).not.toContain('hunter2')
  })
})
