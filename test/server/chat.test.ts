import { describe, expect, it } from 'vitest'
import { type ProfileName, profiles } from '../../src/profiles/index.ts'
import { verifies } from '../requirements/verifies.ts'
import { assistant, collectAll, startServer, user } from './start.ts'

const quote = 'From what you told me: "My cat is called Miso."'
const noted = /^Noted\. No language model is configured, /

describe('the server without an upstream', () => {
  verifies('T-02', 'chat completion by an OpenAI client › is answered from memory', async () => {
    await using server = await startServer()
    const { chat } = server.client('demo:me')
    const first = await chat.completions.create({ model: 'any', messages: [user('My cat is called Miso.')] })
    expect(first.choices[0]?.message.content).toMatch(noted)
    const second = await chat.completions.create({ model: 'any', messages: [user('What is my cat called?')] })
    expect(second).toEqual({
      id: expect.stringMatching(/^chatcmpl-/),
      object: 'chat.completion',
      created: expect.any(Number),
      model: 'threadkeep-offline',
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: quote, refusal: null },
          logprobs: null,
          finish_reason: 'stop',
        },
      ],
      usage: { prompt_tokens: 64, completion_tokens: 14, total_tokens: 78 },
    })
  })

  verifies('T-02', 'streamed chat completion by an OpenAI client › is answered', async () => {
    await using server = await startServer()
    const { chat } = server.client('demo:me')
    await chat.completions.create({ model: 'any', messages: [user('My cat is called Miso.')] })
    const stream = await chat.completions.create({
      model: 'any',
      messages: [user('What is my cat called?')],
      stream: true,
      stream_options: { include_usage: true },
    })
    const chunks = await collectAll(stream)
    expect(chunks[0]?.choices[0]?.delta).toEqual({ role: 'assistant', content: '', refusal: null })
    expect(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('')).toBe(quote)
    expect(chunks.filter((chunk) => (chunk.choices[0]?.delta.content ?? '') !== '')).toHaveLength(10)
    expect(chunks.at(-2)?.choices).toEqual([{ index: 0, delta: {}, logprobs: null, finish_reason: 'stop' }])
    expect(chunks.at(-1)).toMatchObject({
      choices: [],
      usage: { prompt_tokens: 64, completion_tokens: 14, total_tokens: 78 },
    })
    expect(new Set(chunks.map((chunk) => chunk.id)).size).toBe(1)
    expect(await server.transcriptLines('demo:me')).toEqual([
      'user: My cat is called Miso.',
      expect.stringMatching(/^assistant: Noted\. No language model/),
      'user: What is my cat called?',
      `assistant: ${quote}`,
    ])
  })

  it('usage › is sent only on request', async () => {
    await using server = await startServer()
    const stream = await server
      .client('demo:me')
      .chat.completions.create({ model: 'any', messages: [user('Hello')], stream: true })
    const chunks = await collectAll(stream)
    expect(chunks.every((chunk) => !('usage' in chunk) && chunk.choices.length === 1)).toBe(true)
  })

  it("the OpenAI client's stream runner › works", async () => {
    await using server = await startServer()
    const runner = server
      .client('demo:me')
      .chat.completions.stream({ model: 'any', messages: [user('My cat is called Miso.')] })
    expect((await runner.finalChatCompletion()).choices[0]?.message.content).toMatch(noted)
  })

  verifies('T-01', 'tenants, sessions and the tenant itself › are isolated', async () => {
    await using server = await startServer()
    const colours = { 'acme:+15551234567': 'red', 'acme:2': 'green', acme: 'blue', 'other:2': 'white' }
    for (const [key, colour] of Object.entries(colours)) {
      await server
        .client(key)
        .chat.completions.create({ model: 'any', messages: [user(`My favourite colour is ${colour}.`)] })
    }
    for (const [key, colour] of Object.entries({ ...colours, 'acme%3A2': 'green' })) {
      const { choices } = await server
        .client(key)
        .chat.completions.create({ model: 'any', messages: [user('What is my favourite colour?')] })
      expect(choices[0]?.message.content).toBe(`From what you told me: "My favourite colour is ${colour}."`)
    }
    expect(await server.transcriptLines('acme:+15551234567')).toHaveLength(4)
    expect(await server.transcriptLines('acme:2')).toHaveLength(6)
    expect(await server.transcriptLines('acme')).toHaveLength(4)
  })

  it('a client that resends its whole history › stores nothing twice', async () => {
    await using server = await startServer()
    const { chat } = server.client('demo:me')
    const history: ReturnType<typeof user | typeof assistant>[] = []
    for (const question of ['My cat is called Miso.', 'My dog is called Rex.', 'What is my cat called?']) {
      history.push(user(question))
      const { choices } = await chat.completions.create({
        model: 'any',
        messages: [{ role: 'system', content: 'Be brief.' }, ...history],
      })
      history.push(assistant(choices[0]?.message.content ?? ''))
    }
    expect(history.at(-1)?.content).toBe(quote)
    expect(await server.transcriptLines('demo:me')).toEqual(history.map(({ role, content }) => `${role}: ${content}`))
  })

  it('an unknown history › is stored whole', async () => {
    await using server = await startServer()
    const messages = [user('My cat is called Miso.'), assistant('Nice.'), user('What is my cat called?')]
    const { choices } = await server.client('demo:me').chat.completions.create({ model: 'any', messages })
    expect(choices[0]?.message.content).toBe(quote)
    expect(await server.transcriptLines('demo:me')).toHaveLength(4)
  })

  it('a long history continued with the newest message only › is found', async () => {
    await using server = await startServer()
    const long = Array.from({ length: 500 }, (_, turn) => [
      user(`Question ${turn}`),
      assistant(`Answer ${turn}`),
    ]).flat()
    await server.memory.append('demo:me', [...long, user('Is this the end?')])
    await server.memory.forget({ key: 'demo:me', messageId: 'm7' })
    // Repeated, because it had no reply.
    await server.client('demo:me').chat.completions.create({ model: 'any', messages: [user('Is this the end?')] })
    await server.client('demo:me').chat.completions.create({ model: 'any', messages: [user('Is this the end?')] })
    expect((await server.transcriptLines('demo:me')).slice(999)).toEqual([
      'user: Is this the end?',
      expect.stringMatching(/^assistant/),
      'user: Is this the end?',
      expect.stringMatching(/^assistant/),
    ])
  })

  for (const name of Object.keys(profiles) as ProfileName[]) {
    it(`profile ${name} › is served`, async () => {
      await using server = await startServer({ memory: { profile: name } })
      const { chat } = server.client('demo:me')
      await chat.completions.create({ model: 'any', messages: [user('My cat is called Miso.')] })
      const { data, response } = await chat.completions
        .create({ model: 'any', messages: [user('What is my cat called?')] })
        .withResponse()
      expect(data.choices[0]?.message.content).toBe(quote)
      expect(response.headers.get('x-threadkeep-profile')).toBe(name)
      expect(response.headers.get('x-threadkeep-tokens')).toBe(`${data.usage?.prompt_tokens}/${profiles[name].budget}`)
      expect(response.headers.get('x-threadkeep-degraded')).toBeNull()
    })
  }
})

describe('other routes', () => {
  it('GET models › lists the model, with a key and without', async () => {
    await using server = await startServer()
    const models = await server.client('demo:me').models.list()
    expect(models.data).toEqual([{ id: 'threadkeep-offline', object: 'model', created: 0, owned_by: 'threadkeep' }])
    expect(await (await fetch(`${server.url}/v1/models`)).json()).toEqual({ object: 'list', data: models.data })
  })

  it('GET healthz › reports ok', async () => {
    await using server = await startServer()
    const response = await fetch(`${server.url}/healthz`)
    const upkeep = { by: 'builtin', running: 0, done: 0 }
    expect([response.status, await response.json()]).toEqual([
      200,
      { status: 'ok', degraded: [], upkeep, profile: 'thread', secrets: 'mask' },
    ])
  })

  it('x-request-id › a valid one is returned, otherwise a new one', async () => {
    await using server = await startServer()
    const idFor = async (id: string) =>
      (await fetch(`${server.url}/healthz`, { headers: { 'x-request-id': id } })).headers.get('x-request-id')
    expect(await idFor('trace-1:a.b_C')).toBe('trace-1:a.b_C')
    expect(await idFor('a b')).toMatch(/^req_[0-9a-f-]{36}$/)
    expect(await idFor('x'.repeat(129))).toMatch(/^req_/)
    expect((await fetch(`${server.url}/nothing`)).headers.get('x-request-id')).toMatch(/^req_/)
  })

  it("an unknown route › 404 in OpenAI's error format", async () => {
    await using server = await startServer()
    for (const [method, path] of [
      ['GET', '/nowhere'],
      ['POST', '/v1/demo:me/chat/completions/'],
      ['POST', '/learning/images'],
      ['GET', '/v1//models/x'],
    ] as const) {
      const response = await fetch(server.url + path, { method })
      const message = `Unknown URL: ${method} ${path}. GET /openapi.json lists all URLs.`
      expect([response.status, await response.json()]).toEqual([
        404,
        { error: { message, type: 'not_found_error', param: null, code: 'unknown_url' } },
      ])
    }
  })

  it('a wrong method › names the allowed one', async () => {
    await using server = await startServer()
    for (const [method, path, allowed] of [
      ['GET', '/v1/demo:me/chat/completions', 'POST'],
      ['DELETE', '/healthz', 'GET'],
    ] as const) {
      const response = await fetch(server.url + path, { method })
      const message = `${path} takes ${allowed}, not ${method}.`
      expect([response.status, response.headers.get('allow'), await response.json()]).toEqual([
        405,
        allowed,
        { error: { message, type: 'invalid_request_error', param: null, code: 'method_not_allowed' } },
      ])
    }
  })
})
