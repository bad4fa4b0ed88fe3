import { describe, expect, it } from 'vitest'
import { formatKey, parseKey } from '../../../src/domain/key.ts'
import { internalsOf } from '../../../src/memory.ts'
import { profiles } from '../../../src/profiles/index.ts'
import { SessionModels } from '../../../src/server/upstreams/sessionModels.ts'
import { verifies } from '../../requirements/verifies.ts'
import { createTestStores } from '../api/testStores.ts'
import { assistant, user } from '../start.ts'
import { ann, openTestSession, storeDisabledHeader, type TestSession } from './testSession.ts'

const testStores = createTestStores()

/** Every stored session with its number of messages. */
const storedSessions = async ({ server }: TestSession): Promise<readonly string[]> =>
  (await internalsOf(server.memory).sessions.list({ limit: 1_000 })).map(
    ({ key, messages }) => `${formatKey(key)} ${messages}`,
  )

const firstTurn = [user('My cat is called Miso.'), assistant('Re: My cat is called Miso.')]
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

describe.each(testStores)('a turn with storage disabled, store %s', (_, store) => {
  verifies('S-08', 'uses memory and stores no message, receipt or usage', async () => {
    await using session = await openTestSession({ memory: { store: store() } })
    await session.chat(firstTurn.slice(0, 1))
    const before = await storedSessions(session)
    const receiptsBefore = await session.server.requestJson(`GET /api/sessions/${ann}/receipts`)
    const usageBefore = await session.server.requestJson(`GET /api/sessions/${ann}/metrics`)
    for (const value of ['false', 'False', ' FALSE ']) {
      const { status, headers } = await session.chat([user('What is my cat called?')], { 'x-threadkeep-store': value })
      expect([status, headers.get('x-threadkeep-memory'), headers.get('x-threadkeep-receipt')]).toEqual([
        200,
        'read-only',
        null,
      ])
      expect(session.prompt()).toEqual([
        'My cat is called Miso.',
        'Re: My cat is called Miso.',
        'What is my cat called?',
      ])
    }
    expect(await session.transcript()).toEqual([
      'user: My cat is called Miso.',
      'assistant: Re: My cat is called Miso.',
    ])
    expect(await storedSessions(session)).toEqual(before)
    expect(before).toEqual(['demo:ann 2'])
    expect(await session.server.requestJson(`GET /api/sessions/${ann}/receipts`)).toEqual(receiptsBefore)
    expect(receiptsBefore.body).toMatchObject({ items: [{ key: ann }] })
    expect(await session.server.requestJson(`GET /api/sessions/${ann}/metrics`)).toEqual(usageBefore)
    expect(usageBefore.body).toMatchObject({ turns: 1 })
  })

  verifies('S-08', 'with a template › creates no session', async () => {
    const kiosk = { profile: { ...profiles.thread, name: 'kiosk' }, preamble: 'You are a kiosk.' }
    await using session = await openTestSession({
      memory: { store: store() },
      profiles: { scope: profiles.thread, session: profiles.thread, templates: { kiosk } },
    })
    expect(
      (await session.chat([user('Hello')], { ...storeDisabledHeader, 'x-threadkeep-template': 'kiosk' })).status,
    ).toBe(200)
    expect(await storedSessions(session)).toEqual([])
    expect((await session.server.requestJson('GET /api/sessions')).body).toEqual({ items: [], next: null })
  })

  verifies('S-08', 'with an edited history › cuts nothing', async () => {
    await using session = await openTestSession({ memory: { store: store() } })
    await session.chat(firstTurn.slice(0, 1))
    await session.chat([...firstTurn, user('Two')])
    const before = await storedSessions(session)
    expect((await session.chat([...firstTurn, user('Two, but edited')], storeDisabledHeader)).status).toBe(200)
    expect((await session.chat([...firstTurn, user('Two')], storeDisabledHeader)).status).toBe(200)
    expect((await session.chat([user('Two')], { ...storeDisabledHeader, 'x-stainless-retry-count': '1' })).status).toBe(
      200,
    )
    expect([await session.branches(), await storedSessions(session)]).toEqual([{}, before])
    expect((await session.transcript()).slice(2)).toEqual(['user: Two', 'assistant: Re: Two'])
  })

  verifies('S-08', 'inside a tool loop › stores nothing', async () => {
    const reply = (asked: string) =>
      asked === 'Is it warm?' ? { calls: [{ id: 'call_1', name: 'look', input: {} }] } : { text: `Re: ${asked}` }
    await using session = await openTestSession({ memory: { store: store() }, reply })
    await session.chat(firstTurn.slice(0, 1))
    await session.chat([...firstTurn, user('Is it warm?')])
    const before = [await session.transcript(), await storedSessions(session)]
    expect((await session.chat([...firstTurn, user('Is it warm?'), call, result], storeDisabledHeader)).status).toBe(
      200,
    )
    expect(session.prompt()).toEqual([
      'My cat is called Miso.',
      'Re: My cat is called Miso.',
      'Is it warm?',
      '',
      'It is 12 °C.',
    ])
    expect([await session.transcript(), await storedSessions(session)]).toEqual(before)
  })
})

describe('a turn with storage disabled', () => {
  verifies('S-08', 'with a file sent to a tenant › stores no file, unlike with storage enabled', async () => {
    await using session = await openTestSession()
    const ask = (headers: Readonly<Record<string, string>>) =>
      session.chat(
        [user([file('secret.txt', 'The code is zebra.'), { type: 'text', text: 'Read this.' }] as never)],
        headers,
        'demo',
      )
    expect((await ask(storeDisabledHeader)).status).toBe(200)
    expect((await session.server.requestJson('GET /api/scopes/demo/files')).body).toEqual({ items: [], next: null })
    expect((await ask({})).status).toBe(200)
    expect((await session.server.requestJson('GET /api/scopes/demo/files')).body).toMatchObject({
      items: [{ name: 'secret.txt' }],
    })
  })

  verifies('S-08', 'does not set the upkeep model of its session', async () => {
    const models = new SessionModels({ upstreams: 'http://127.0.0.1:9/v1' })
    await using session = await openTestSession({ upkeepModels: models })
    await session.chat([user('Hello')], storeDisabledHeader)
    expect(models.get(parseKey(ann))).toBe(undefined)
    await session.chat([user('Hello')])
    expect(models.get(parseKey(ann))?.name).toBe('test-model')
  })

  it.each(['0', 'no', 'off', 'never', 'false, true'])(
    'x-threadkeep-store: %s › is refused, and nothing is stored',
    async (value) => {
      await using session = await openTestSession()
      const { status, body } = await session.chat([user('Hello')], { 'x-threadkeep-store': value })
      expect([status, body.error.code]).toEqual([400, 'bad_header'])
      expect(body.error.message).toBe(`x-threadkeep-store is ${JSON.stringify(value)}; it must be true or false.`)
      expect([session.model.requests, await storedSessions(session)]).toEqual([[], []])
    },
  )

  verifies(['S-08', 'T-17'], 'on a transferred session › is redirected like any other turn', async () => {
    await using session = await openTestSession()
    await session.chat([user('Hello')])
    await session.send(`POST /api/sessions/${ann}/transfer`, { to: 'demo:bea' })
    for (const headers of [storeDisabledHeader, {}]) {
      const { status, body } = await session.chat([user('Are you there?')], headers)
      expect([status, body.error.code, body.error.message.includes('demo:bea')]).toEqual([410, 'moved', true])
    }
    expect(session.model.requests).toHaveLength(1)
    expect((await internalsOf(session.server.memory).sessions.readHead(parseKey('demo:bea'), 0)).messages).toBe(2)
  })
})
