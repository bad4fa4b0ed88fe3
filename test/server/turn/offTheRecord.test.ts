import { describe, expect, it } from 'vitest'
import { formatKey, parseKey } from '../../../src/domain/key.ts'
import { internalsOf } from '../../../src/memory.ts'
import { profiles } from '../../../src/profiles/index.ts'
import { SessionModels } from '../../../src/server/upstreams/sessionModels.ts'
import { verifies } from '../../requirements/verifies.ts'
import { places } from '../api/places.ts'
import { assistant, user } from '../start.ts'
import { ann, off, openScene, type Scene } from './scene.ts'

/** Everything the store holds, by the name of its session. */
const kept = async ({ server }: Scene): Promise<readonly string[]> =>
  (await internalsOf(server.memory).sessions.list({ limit: 1_000 })).map(
    ({ key, messages }) => `${formatKey(key)} ${messages}`,
  )

const one = [user('My cat is called Miso.'), assistant('Re: My cat is called Miso.')]
const file = (name: string, text: string) => ({
  type: 'file',
  file: { filename: name, file_data: `data:text/plain;base64,${Buffer.from(text).toString('base64')}` },
})
const call = {
  role: 'assistant',
  content: null,
  tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'look', arguments: '{}' } }],
}
const result = { role: 'tool', tool_call_id: 'call_1', content: 'It is 12 °C.' }

describe.each(places)('a turn off the record, beside what is kept in %s', (_, store) => {
  verifies('S-08', 'is answered with memory and leaves no message, receipt or tally', async () => {
    await using scene = await openScene({ memory: { store: store() } })
    await scene.chat(one.slice(0, 1))
    const before = await kept(scene)
    const tallied = await scene.server.ask(`GET /api/sessions/${ann}/metrics`)
    for (const word of ['false', 'False', ' FALSE ']) {
      const { status, headers } = await scene.chat([user('What is my cat called?')], { 'x-threadkeep-store': word })
      expect([status, headers.get('x-threadkeep-memory'), headers.get('x-threadkeep-receipt')]).toEqual([
        200,
        'read-only',
        null,
      ])
      expect(scene.prompt()).toEqual(['My cat is called Miso.', 'Re: My cat is called Miso.', 'What is my cat called?'])
    }
    expect(await scene.said()).toEqual(['user: My cat is called Miso.', 'assistant: Re: My cat is called Miso.'])
    expect(await kept(scene)).toEqual(before)
    expect(before).toEqual(['demo:ann 2', 'demo:ann:receipts 1'])
    expect(await scene.server.ask(`GET /api/sessions/${ann}/metrics`)).toEqual(tallied)
    expect(tallied.body).toMatchObject({ turns: 1 })
  })

  verifies('S-08', 'begins no session, not even one of a template', async () => {
    const kiosk = { profile: { ...profiles.thread, name: 'kiosk' }, preamble: 'You are a kiosk.' }
    await using scene = await openScene({
      memory: { store: store() },
      ways: { scope: profiles.thread, session: profiles.thread, templates: { kiosk } },
    })
    expect((await scene.chat([user('Hello')], { ...off, 'x-threadkeep-template': 'kiosk' })).status).toBe(200)
    expect(await kept(scene)).toEqual([])
    expect((await scene.server.ask('GET /api/sessions')).body).toEqual({ items: [], next: null })
  })

  verifies('S-08', 'cuts nothing off, though it tells the conversation otherwise', async () => {
    await using scene = await openScene({ memory: { store: store() } })
    await scene.chat(one.slice(0, 1))
    await scene.chat([...one, user('Two')])
    const before = await kept(scene)
    expect((await scene.chat([...one, user('Two, but edited')], off)).status).toBe(200)
    expect((await scene.chat([...one, user('Two')], off)).status).toBe(200)
    expect((await scene.chat([user('Two')], { ...off, 'x-stainless-retry-count': '1' })).status).toBe(200)
    expect([await scene.branches(), await kept(scene)]).toEqual([{}, before])
    expect((await scene.said()).slice(2)).toEqual(['user: Two', 'assistant: Re: Two'])
  })

  verifies('S-08', 'leaves nothing in the middle of a tool loop either', async () => {
    const reply = (asked: string) =>
      asked === 'Is it warm?' ? { calls: [{ id: 'call_1', name: 'look', input: {} }] } : { text: `Re: ${asked}` }
    await using scene = await openScene({ memory: { store: store() }, reply })
    await scene.chat(one.slice(0, 1))
    await scene.chat([...one, user('Is it warm?')])
    const before = [await scene.said(), await kept(scene)]
    expect((await scene.chat([...one, user('Is it warm?'), call, result], off)).status).toBe(200)
    expect(scene.prompt()).toEqual([
      'My cat is called Miso.',
      'Re: My cat is called Miso.',
      'Is it warm?',
      '',
      'It is 12 °C.',
    ])
    expect([await scene.said(), await kept(scene)]).toEqual(before)
  })
})

describe('a turn off the record', () => {
  verifies('S-08', 'to a tenant leaves no file, and on the record the same does', async () => {
    await using scene = await openScene()
    const ask = (headers: Readonly<Record<string, string>>) =>
      scene.chat(
        [user([file('secret.txt', 'The code is zebra.'), { type: 'text', text: 'Read this.' }] as never)],
        headers,
        'demo',
      )
    expect((await ask(off)).status).toBe(200)
    expect((await scene.server.ask('GET /api/scopes/demo/files')).body).toEqual({ items: [], next: null })
    expect((await ask({})).status).toBe(200)
    expect((await scene.server.ask('GET /api/scopes/demo/files')).body).toMatchObject({
      items: [{ name: 'secret.txt' }],
    })
  })

  verifies('S-08', 'tells nobody whom to ask for the upkeep of its session', async () => {
    const models = new SessionModels({ upstream: 'http://127.0.0.1:9/v1' })
    await using scene = await openScene({ models })
    await scene.chat([user('Hello')], off)
    expect(models.for(parseKey(ann))).toBe(undefined)
    await scene.chat([user('Hello')])
    expect(models.for(parseKey(ann))?.name).toBe('test-model')
  })

  it.each(['0', 'no', 'off', 'never', 'false, true'])(
    'is not what x-threadkeep-store: %s says; that is refused, and nothing is stored',
    async (word) => {
      await using scene = await openScene()
      const { status, body } = await scene.chat([user('Hello')], { 'x-threadkeep-store': word })
      expect([status, body.error.code]).toEqual([400, 'bad_header'])
      expect(body.error.message).toBe(`x-threadkeep-store is ${JSON.stringify(word)}; it must be true or false.`)
      expect([scene.model.requests, await kept(scene)]).toEqual([[], []])
    },
  )

  verifies(['S-08', 'T-17'], 'is sent on from a session that has moved, like any other', async () => {
    await using scene = await openScene()
    await scene.chat([user('Hello')])
    await scene.send(`POST /api/sessions/${ann}/transfer`, { to: 'demo:bea' })
    for (const headers of [off, {}]) {
      const { status, body } = await scene.chat([user('Are you there?')], headers)
      expect([status, body.error.code, body.error.message.includes('demo:bea')]).toEqual([410, 'moved', true])
    }
    expect(scene.model.requests).toHaveLength(1)
    expect((await internalsOf(scene.server.memory).sessions.head(parseKey('demo:bea'), 0)).messages).toBe(2)
  })
})
