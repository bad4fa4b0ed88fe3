import { mkdtempSync, rmSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import OpenAI from 'openai'
import { afterAll, describe, expect } from 'vitest'
import { parseKey } from '../../src/domain/key.ts'
import { openMemory } from '../../src/index.ts'
import { internalsOf } from '../../src/memory.ts'
import { Credentials } from '../../src/server/auth/credentials.ts'
import { readAll } from '../portable/byteStreams.ts'
import { verifies } from '../requirements/verifies.ts'
import { type RecordedRequest, type RecordingServer, startRecordingServer } from './recordingServer.ts'
import { assistant, startServer, type TestServer, user } from './start.ts'

const folder = mkdtempSync(join(tmpdir(), 'threadkeep-responses-'))
afterAll(() => rmSync(folder, { recursive: true }))

type Stored = { status: string; readonly id: string; readonly input: unknown; readonly previous: unknown }

/** A model server that stores responses as OpenAI does, and runs some of them in the background. */
class StoringModel {
  readonly responses = new Map<string, Stored>()

  readonly respond = (request: RecordedRequest, response: ServerResponse): void => {
    const [, id, action] = /\/responses\/(\w+)(?:\/(\w+))?/.exec(request.url) ?? []
    const body = id === undefined ? this.#create(JSON.parse(request.body.toString())) : this.#read(id, action, request)
    const status = body === undefined ? 404 : 200
    response
      .writeHead(status, { 'content-type': 'application/json' })
      .end(JSON.stringify(body ?? { error: { message: 'Not found', code: 'not_found' } }))
  }

  #read(id: string, action: string | undefined, { method }: RecordedRequest): object | undefined {
    const stored = this.responses.get(id)
    if (stored === undefined) return undefined
    if (method === 'DELETE') this.responses.delete(id)
    if (method === 'DELETE') return { id, object: 'response', deleted: true }
    if (action === 'input_items') return { object: 'list', data: [{ id: 'from upstream' }] }
    if (action === 'cancel') stored.status = 'cancelled'
    return this.#format(stored, true)
  }

  #create(body: { input: unknown; store?: boolean; background?: boolean; previous_response_id?: string }): object {
    const id = `resp_${this.responses.size + 1}`
    const status = body.background === true ? 'queued' : 'completed'
    const stored = { id, status, input: body.input, previous: body.previous_response_id }
    if (body.store !== false) this.responses.set(id, stored)
    return this.#format(stored, body.store !== false)
  }

  #format({ id, status }: Stored, store: boolean): object {
    const content = [{ type: 'output_text', text: `Reply of ${id}.`, annotations: [] }]
    const message = { type: 'message', id: `msg_${id}`, role: 'assistant', status: 'completed', content }
    const reasoning = { type: 'reasoning', id: `rs_${id}`, summary: [] }
    const output = status === 'completed' ? [reasoning, message] : []
    const usage = { input_tokens: 5, output_tokens: 3, total_tokens: 8, input_tokens_details: { cached_tokens: 0 } }
    return { id, object: 'response', created_at: 1, model: 'gpt-5', status, store, output, usage }
  }
}

type Setup = { readonly model: StoringModel; readonly upstream: RecordingServer; readonly server: TestServer }

async function withServer(
  test: (setup: Setup) => Promise<void>,
  options: Parameters<typeof startServer>[0] = {},
): Promise<void> {
  const model = new StoringModel()
  await using upstream = await startRecordingServer(model.respond)
  await using server = await startServer({ upstream: upstream.url, ...options })
  await test({ model, upstream, server })
}

const withoutId = ({ id: _id, ...item }: { id?: string } = {}) => item
const lastBody = ({ requests }: RecordingServer) => JSON.parse(requests.at(-1)?.body.toString() ?? '{}')

describe('a response that the upstream stores', () => {
  verifies(['F-01', 'S-03'], '› is created, continued, retrieved, cancelled and deleted there', () =>
    withServer(async ({ model, upstream, server }) => {
      const { responses } = server.client('demo:ann')
      const first = await responses.create({ model: 'gpt-5', input: 'One' })
      expect(lastBody(upstream)).toEqual({ model: 'gpt-5', input: 'One' })
      const next = { model: 'gpt-5', input: 'Two', previous_response_id: first.id, store: true }
      const second = await responses.create(next)
      expect(lastBody(upstream)).toEqual(next)
      expect(await server.transcriptLines('demo:ann')).toEqual([
        'user: One',
        'assistant: Reply of resp_1.',
        'user: Two',
        'assistant: Reply of resp_2.',
      ])
      expect(await responses.retrieve(second.id)).toMatchObject({ id: 'resp_2', output_text: 'Reply of resp_2.' })
      expect((await responses.inputItems.list(second.id)).data).toEqual([{ id: 'from upstream' }])
      expect((await responses.cancel(second.id)).status).toBe('cancelled')
      await responses.delete(second.id)
      expect(model.responses.has(second.id)).toBe(false)
      expect(await server.transcriptLines('demo:ann')).not.toContain('assistant: Reply of resp_2.')
    }),
  )

  verifies(['F-01', 'S-03'], 'in the background › is stored in the session when it is retrieved', () =>
    withServer(async ({ model, server }) => {
      const { responses } = server.client('demo:ann')
      const queued = await responses.create({ model: 'gpt-5', input: 'Take your time', background: true })
      expect(queued.status).toBe('queued')
      expect(await server.transcriptLines('demo:ann')).toEqual(['user: Take your time'])
      expect((await responses.retrieve(queued.id)).status).toBe('queued')
      const stored = model.responses.get(queued.id) as Stored
      stored.status = 'completed'
      for (let time = 0; time < 2; time++)
        expect((await responses.retrieve(queued.id)).output_text).toBe('Reply of resp_1.')
      expect(await server.transcriptLines('demo:ann')).toEqual(['user: Take your time', 'assistant: Reply of resp_1.'])
    }),
  )

  verifies(['T-15', 'X-03'], 'in the background › retrieved after the next question › is stored before it', () =>
    withServer(async ({ model, server }) => {
      const { responses } = server.client('demo:ann')
      const queued = await responses.create({ model: 'gpt-5', input: 'One', background: true })
      const later = await responses.create({ model: 'gpt-5', input: 'Two', background: true })
      for (const stored of model.responses.values()) stored.status = 'completed'
      await responses.retrieve(queued.id)
      await responses.create({ model: 'gpt-5', input: 'Three' })
      await responses.retrieve(later.id)
      expect(await server.transcriptLines('demo:ann')).toEqual([
        'user: One',
        'assistant: Reply of resp_1.',
        'user: Two',
        'assistant: Reply of resp_2.',
        'user: Three',
        'assistant: Reply of resp_3.',
      ])
      expect(server.faults).toEqual([])
    }),
  )

  verifies('S-03', 'in the background › is stored once by parallel retrievals, and not when cancelled', () =>
    withServer(async ({ model, server }) => {
      const { responses } = server.client('demo:ann')
      const first = await responses.create({ model: 'gpt-5', input: 'One', background: true })
      ;(model.responses.get(first.id) as Stored).status = 'completed'
      await Promise.all([responses.retrieve(first.id), responses.retrieve(first.id)])
      const second = await responses.create({ model: 'gpt-5', input: 'Two', background: true })
      await responses.cancel(second.id)
      await responses.retrieve(second.id)
      expect(await server.transcriptLines('demo:ann')).toEqual([
        'user: One',
        'assistant: Reply of resp_1.',
        'user: Two',
      ])
    }),
  )

  verifies(['F-01', 'S-03'], 'and forked › is continued in both ways, without memory added to each response', () =>
    withServer(async ({ upstream, server }) => {
      await server.memory.remember('demo', { category: 'domain', key: 'hours', value: '9 to 5' })
      const { responses } = server.client('demo:ann')
      const { id: root } = await responses.create({ model: 'gpt-5', input: 'One' })
      const fork = (input: string, id: string) => ({ model: 'gpt-5', input, previous_response_id: id })
      const [a, b] = [await responses.create(fork('A', root)), await responses.create(fork('B', root))]
      for (const request of [fork('A2', a.id), fork('B2', b.id)]) {
        await responses.create(request)
        expect(lastBody(upstream)).toEqual(request)
      }
    }),
  )

  verifies('T-11', 'and its items › cannot be named by another tenant in any request', async () => {
    const credentials = new Credentials(join(folder, 'others.json'))
    const { key } = await credentials.create({ name: 'a', scopes: ['acme'] }, Date.now())
    await withServer(
      async ({ upstream, server }) => {
        const post = async (path: string, body: object) => {
          const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
          const init = { method: 'POST', headers, body: JSON.stringify({ model: 'gpt-5', ...body }) }
          return (await fetch(`${server.url}${path}`, init)).status
        }
        const reference = { type: 'item_reference', id: 'msg_of_beta' }
        const question = { role: 'user', content: 'Repeat it' }
        expect([
          await post('/v1/responses', { previous_response_id: 'resp_of_beta', input: 'Repeat it' }),
          await post('/v1/responses', { conversation: 'conv_of_beta', input: 'Repeat it' }),
          await post('/v1/responses', { input: [reference, question] }),
          await post('/v1/acme:ann/responses', { input: [reference, question] }),
          await post('/v1/acme:ann/responses', {
            previous_response_id: 'resp_of_beta',
            metadata: { task: 'title_generation' },
            input: 'Repeat it',
          }),
        ]).toEqual([403, 403, 403, 404, 404])
        expect(upstream.requests).toEqual([])
      },
      { credentials },
    )
  })

  verifies('T-11', 'and its items › cannot be named by a tenant that has sent their ids', async () => {
    const credentials = new Credentials(join(folder, 'forged.json'))
    const { key } = await credentials.create({ name: 'a', scopes: ['acme'] }, Date.now())
    await withServer(
      async ({ upstream, server }) => {
        const post = async (input: readonly object[]) => {
          const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
          const init = { method: 'POST', headers, body: JSON.stringify({ model: 'gpt-5', input }) }
          return (await fetch(`${server.url}/v1/acme:ann/responses`, init)).status
        }
        const refer = (id: string) => [
          { type: 'item_reference', id },
          { role: 'user', content: 'Repeat it' },
        ]
        const text = [{ type: 'output_text', text: 'Hello.', annotations: [] }]
        const forged = [
          { type: 'message', id: 'msg_of_beta_1', role: 'user', content: 'Hi' },
          { type: 'reasoning', id: 'rs_of_beta', summary: [] },
          { type: 'message', id: 'msg_of_beta_2', role: 'assistant', status: 'completed', content: text },
          { role: 'user', content: 'Go on' },
        ]
        expect(await post(forged)).toBe(200)
        const sent = upstream.requests.length
        const ids = ['msg_of_beta_1', 'rs_of_beta', 'msg_of_beta_2', 'completed', 'Reply of resp_1.']
        expect(await Promise.all(ids.map((id) => post(refer(id))))).toEqual(ids.map(() => 404))
        expect(upstream.requests.length).toBe(sent)
        expect(await post(refer('rs_resp_1'))).toBe(200)
      },
      { credentials },
    )
  })

  verifies(['F-05', 'R-04'], 'and its items › cannot be named by a tenant that has imported a receipt', async () => {
    const credentials = new Credentials(join(folder, 'imported.json'))
    const { key } = await credentials.create({ name: 'a', scopes: ['acme'] }, Date.now())
    await using source = await openMemory({ upkeep: false })
    const items = [{ type: 'reasoning', id: 'rs_of_beta', summary: [] }]
    const reply = { ...assistant('Hello.'), payload: { protocol: 'responses' as const, items } }
    await source.append('acme:eve', [user('Hi'), reply])
    const tokens = { prompt: null, completion: null, cached: null }
    const receipt = { response: 'resp_of_beta', sequence: 2, isStoredUpstream: true, model: 'gpt-5', tokens }
    const record = { id: 'r1', at: 1, body: JSON.stringify(receipt) }
    await internalsOf(source).store.appendRecord(parseKey('acme:eve'), record, 9)
    const bundle = (await readAll(source.export())).toString()
    await withServer(
      async ({ upstream, server }) => {
        const headers = { authorization: `Bearer ${key}` }
        const send = async (request: string, body?: unknown) =>
          (await server.requestJson(request, body, headers)).status
        expect(await send('POST /api/scopes/acme/import', bundle)).toBe(200)
        const reference = [{ type: 'item_reference', id: 'rs_of_beta' }, user('Repeat it')]
        expect(await send('POST /v1/acme:eve/responses', { model: 'gpt-5', input: reference })).toBe(404)
        expect(await send('GET /v1/acme:eve/responses/resp_of_beta')).toBe(200)
        expect(await send('DELETE /v1/acme:eve/responses/resp_of_beta')).toBe(200)
        expect(upstream.requests).toEqual([])
      },
      { credentials },
    )
  })

  verifies('F-05', 'of another session › is refused to a key of one tenant', async () => {
    const credentials = new Credentials(join(folder, 'keys.json'))
    const { key: acmeKey } = await credentials.create({ name: 'a', scopes: ['acme'] }, Date.now())
    const { key: otherKey } = await credentials.create({ name: 'b', scopes: ['other'] }, Date.now())
    await withServer(
      async ({ server }) => {
        const clientOf = (key: string, apiKey: string) =>
          new OpenAI({ baseURL: `${server.url}/v1/${key}`, apiKey, maxRetries: 0 })
        const own = clientOf('acme:ann', acmeKey)
        const { id } = await own.responses.create({ model: 'gpt-5', input: 'One' })
        expect((await own.responses.retrieve(id)).id).toBe(id)
        await expect(clientOf('other:bob', otherKey).responses.retrieve(id)).rejects.toMatchObject({ status: 403 })
        await expect(clientOf('acme:bob', acmeKey).responses.retrieve(id)).rejects.toMatchObject({ status: 403 })
      },
      { credentials },
    )
  })
})

describe('a response that the upstream does not store', () => {
  verifies(['F-02', 'S-03'], '› is retrieved, listed and deleted from the session', () =>
    withServer(async ({ upstream, server }) => {
      const { responses } = server.client('demo:ann')
      const { id, output } = await responses.create({ model: 'gpt-5', input: 'One', store: false })
      const { length } = upstream.requests
      expect(await responses.retrieve(id)).toMatchObject({ id, status: 'completed', model: 'gpt-5', output })
      expect((await responses.inputItems.list(id)).data).toMatchObject([
        { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'One' }] },
      ])
      await expect(responses.cancel(id)).rejects.toMatchObject({ status: 400, code: 'response_not_cancellable' })
      await responses.delete(id)
      await expect(responses.retrieve(id)).rejects.toMatchObject({ status: 404, code: 'response_not_found' })
      expect(await server.transcriptLines('demo:ann')).toEqual(['user: One'])
      expect(upstream.requests).toHaveLength(length)
    }),
  )

  verifies(
    ['F-02', 'S-03'],
    'continued by its id › has its history sent with it, without reasoning that has no text',
    () =>
      withServer(async ({ upstream, server }) => {
        const { responses } = server.client('demo:ann')
        const reasoning = { effort: 'low' } as const
        const first = await responses.create({ model: 'gpt-5', input: 'One', store: false, reasoning })
        await responses.create({
          model: 'gpt-5',
          input: 'Two',
          previous_response_id: first.id,
          store: false,
          reasoning,
        })
        expect(lastBody(upstream)).toEqual({
          model: 'gpt-5',
          store: false,
          reasoning,
          include: ['reasoning.encrypted_content'],
          // The id of a message would make the API look for the reasoning before it.
          input: [{ role: 'user', content: 'One' }, withoutId(first.output[1]), { role: 'user', content: 'Two' }],
        })
      }),
  )
})
