import type OpenAI from 'openai'
import { describe, expect, it } from 'vitest'
import { parseKey } from '../../../src/domain/key.ts'
import { agent } from '../../../src/profiles/agent.ts'
import { wordedReply } from '../../providers/protocols.ts'
import { replies, sends, startUpstream } from '../../providers/upstream.ts'
import { verifies } from '../../requirements/verifies.ts'
import { all, assistant, slowStore, startServer, user } from '../start.ts'

const system = (content: string) => ({ role: 'system' as const, content })
const weather: OpenAI.ChatCompletionFunctionTool = {
  type: 'function',
  function: {
    name: 'weather',
    description: 'Weather of a city',
    parameters: { type: 'object', properties: { city: { type: 'string' } } },
  },
}
const called = [
  { id: 'call_1', type: 'function' as const, function: { name: 'weather', arguments: '{"city":"Oslo"}' } },
]
const completion = (message: unknown, reason = 'stop'): string =>
  JSON.stringify({
    id: 'c',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [{ index: 0, message, finish_reason: reason }],
  })
const chunk = (delta: unknown, reason: string | null = null): string =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: reason }] })}\n\n`

describe('the server, in front of a model server', () => {
  verifies('T-02', 'sends memory along, and passes the reply on and keeps it', async () => {
    await using upstream = await startUpstream(replies('Hello', ' from', ' upstream.'))
    await using server = await startServer({ upstream: upstream.url })
    const { chat } = server.client('demo:me')
    const first = await chat.completions.create({ model: 'gpt-test', messages: [user('My cat is called Miso.')] })
    expect(first.choices[0]?.message.content).toBe('Hello from upstream.')
    const second = await all(
      await chat.completions.create({ model: 'gpt-test', messages: [user('What is my cat called?')], stream: true }),
    )
    expect(second.map((event) => event.choices[0]?.delta.content ?? '').join('')).toBe('Hello from upstream.')
    const talk = [user('My cat is called Miso.'), assistant('Hello from upstream.'), user('What is my cat called?')]
    expect(upstream.requests[1]?.body).toEqual({ model: 'gpt-test', messages: talk, stream: true })
    expect(await server.said('demo:me')).toEqual(
      [...talk, assistant('Hello from upstream.')].map(({ role, content }) => `${role}: ${content}`),
    )
  })

  it('passes a stream on byte by byte as it comes, and holds nothing back', async () => {
    await using upstream = await startUpstream({ does: 'reply', pieces: ['Grüße', ' 🌍', ' 世界'], split: true })
    await using server = await startServer({ upstream: upstream.url })
    const response = await server.post('demo:me', { model: 'm', messages: [user('Hello')], stream: true })
    expect(response.headers.get('content-type')).toBe('text/event-stream')
    expect(await response.text()).toBe(wordedReply('openai', ['Grüße', ' 🌍', ' 世界'], true))
    expect(await server.said('demo:me')).toEqual(['user: Hello', 'assistant: Grüße 🌍 世界'])
  })

  it("passes instructions, unknown fields and the model's name on untouched", async () => {
    await using upstream = await startUpstream()
    await using server = await startServer({ upstream: upstream.url })
    const own = {
      model: 'vendor/some-model@2',
      temperature: 0.25,
      stop: ['\n'],
      'x-vendor': { deep: [1, null, 'ä'] },
      metadata: { __threadkeep: '1' },
    }
    const front = [
      { ...system('You are a pirate.'), name: 'boss', cache_control: { type: 'ephemeral' } },
      { role: 'developer', content: [{ type: 'text', text: 'Be brief.' }] },
    ]
    await server.post('demo:me', { ...own, messages: [...front, user('My cat is called Miso.')] })
    const last = { ...user('What is my cat called?'), name: 'ann', extra: true }
    await server.post('demo:me', { ...own, messages: [...front, last] })
    expect(upstream.requests[1]?.path).toBe('/v1/chat/completions')
    expect(upstream.requests[1]?.body).toEqual({
      ...own,
      messages: [...front, user('My cat is called Miso.'), assistant('Hello from upstream.'), last],
    })
    expect(await server.said('demo:me')).toEqual([
      'user: My cat is called Miso.',
      'assistant: Hello from upstream.',
      'user: What is my cat called?',
      'assistant: Hello from upstream.',
    ])
  })

  it('leaves instructions that follow the newest turn where they are', async () => {
    await using upstream = await startUpstream()
    await using server = await startServer({ upstream: upstream.url })
    await server.post('demo:me', { messages: [user('Hi')] })
    const messages = [system('A'), user('Hi'), assistant('Hello from upstream.'), system('B'), user('Bye'), system('C')]
    await server.post('demo:me', { messages })
    expect(upstream.requests[1]?.body.messages).toEqual([
      system('A'),
      system('B'),
      user('Hi'),
      assistant('Hello from upstream.'),
      user('Bye'),
      system('C'),
    ])
  })

  it('forwards the key of the client, else the one it has, and no other header of the client', async () => {
    await using upstream = await startUpstream()
    await using server = await startServer({ upstream: upstream.url, apiKey: 'sk-server' })
    const given = {
      'openai-organization': 'org',
      'openai-project': 'proj',
      cookie: 'secret=1',
      'x-secret': '1',
      'x-forwarded-for': '10.0.0.1',
    }
    await server.post('demo:me', { messages: [user('one')] }, { ...given, authorization: 'Bearer sk-client' })
    await server.post('demo:me', { messages: [user('two')] })
    const [first, second] = upstream.requests.map((request) => request.headers)
    expect(first).toMatchObject({
      authorization: 'Bearer sk-client',
      'openai-organization': 'org',
      'openai-project': 'proj',
      'content-type': 'application/json',
    })
    for (const name of ['cookie', 'x-secret', 'x-forwarded-for', 'x-threadkeep-key'])
      expect(first).not.toHaveProperty(name)
    expect(second).toMatchObject({ authorization: 'Bearer sk-server' })
  })

  it('sends no key where none is known', async () => {
    await using upstream = await startUpstream()
    await using server = await startServer({ upstream: upstream.url })
    await server.post('demo:me', { messages: [user('one')] })
    expect(upstream.requests[0]?.headers).not.toHaveProperty('authorization')
  })

  it('lists the models of the model server', async () => {
    const list = { object: 'list', data: [{ id: 'm-1', object: 'model', created: 1, owned_by: 'us' }] }
    await using upstream = await startUpstream(sends('application/json', JSON.stringify(list)))
    await using server = await startServer({ upstream: upstream.url })
    expect((await server.client('demo:me').models.list()).data).toEqual(list.data)
    expect(upstream.requests[0]).toMatchObject({
      method: 'GET',
      path: '/v1/models',
      headers: { authorization: 'Bearer sk-client' },
    })
  })

  it('tells of a single model what its list tells of it', async () => {
    const model = { id: 'vendor/m-1', object: 'model', created: 1, owned_by: 'us' }
    await using upstream = await startUpstream(
      sends('application/json', JSON.stringify({ object: 'list', data: [model] })),
    )
    await using server = await startServer({ upstream: upstream.url })
    expect(await server.client('demo:me').models.retrieve('vendor/m-1')).toEqual(model)
    for (const path of ['/v1/models', '/v1/demo:me/models', '/v1/demo:me/v1/models']) {
      expect(await server.ask(`GET ${path}/vendor%2Fm-1`)).toEqual({ status: 200, body: model })
      expect(await server.ask(`GET ${path}/..%2Fm-1`)).toMatchObject({
        status: 404,
        body: { error: { code: 'model_not_found', param: 'model' } },
      })
    }
    expect(new Set(upstream.requests.map(({ path }) => path))).toEqual(new Set(['/v1/models']))
  })

  it('answers a HEAD as it would a GET, without the body', async () => {
    await using server = await startServer()
    const [get, head] = [
      await fetch(`${server.url}/v1/models`),
      await fetch(`${server.url}/v1/models`, { method: 'HEAD' }),
    ]
    expect(['content-type', 'content-length'].map((name) => head.headers.get(name))).toEqual([
      'application/json',
      get.headers.get('content-length'),
    ])
    expect([head.status, await head.text()]).toEqual([200, ''])
    expect((await fetch(`${server.url}/v1/chat/completions`, { method: 'HEAD' })).status).toBe(405)
  })

  it('passes on whatever answers a request that memory takes no part in, untouched', async () => {
    for (const body of [
      '{"id":"x",  "choices":[],"prompt_filter_results":[]}',
      '{"job":"queued"}',
      '{"error":"none"}',
    ]) {
      await using upstream = await startUpstream(sends('application/json', body))
      await using server = await startServer({ upstream: upstream.url })
      const request = {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ messages: [user('Hi')] }),
      }
      const response = await fetch(`${server.url}/v1/chat/completions`, request)
      expect([response.status, response.headers.get('x-threadkeep-memory'), await response.text()]).toEqual([
        200,
        'none',
        body,
      ])
      expect((await server.post('demo:me', { messages: [user('Hi')] })).status).toBe(502)
    }
  })

  it('passes on a stream that nobody asked for once it is complete, and keeps what it says', async () => {
    const body = wordedReply('openai', ['Once', ' upon'], true)
    await using upstream = await startUpstream(sends('text/event-stream', body))
    await using server = await startServer({ upstream: upstream.url })
    const response = await server.post('demo:me', { messages: [user('Hello')] })
    expect([response.headers.get('content-length'), await response.text()]).toEqual([
      String(Buffer.byteLength(body)),
      body,
    ])
    expect(await server.said('demo:me')).toEqual(['user: Hello', 'assistant: Once upon'])
  })

  it('goes round with tools, when the client sends its whole history and when it sends only the result', async () => {
    await using upstream = await startUpstream(({ body }) =>
      body.messages.at(-1).role === 'tool'
        ? sends('application/json', completion({ role: 'assistant', content: 'It rains.' }))
        : sends('application/json', completion({ role: 'assistant', content: null, tool_calls: called }, 'tool_calls')),
    )
    await using server = await startServer({ upstream: upstream.url })
    const result = { role: 'tool' as const, tool_call_id: 'call_1', content: '{"sky":"rain"}' }
    for (const key of ['demo:whole', 'demo:newest']) {
      const { chat } = server.client(key)
      const asked = await chat.completions.create({
        model: 'm',
        messages: [user('Weather in Oslo?')],
        tools: [weather],
      })
      const call = asked.choices[0]?.message
      expect(call?.tool_calls).toEqual(called)
      const history = key === 'demo:whole' && call !== undefined ? [user('Weather in Oslo?'), call] : []
      const told = await chat.completions.create({ model: 'm', messages: [...history, result], tools: [weather] })
      expect(told.choices[0]?.message.content).toBe('It rains.')
      expect(upstream.requests.at(-1)?.body).toMatchObject({
        tools: [weather],
        messages: [user('Weather in Oslo?'), { role: 'assistant', content: null, tool_calls: called }, result],
      })
      expect(await server.said(key)).toEqual([
        'user: Weather in Oslo?',
        'assistant: ',
        'tool: {"sky":"rain"}',
        'assistant: It rains.',
      ])
      expect((await server.memory.transcript(key))[1]?.calls).toEqual([
        { id: 'call_1', name: 'weather', arguments: '{"city":"Oslo"}' },
      ])
    }
  })

  it('puts streamed tool calls together', async () => {
    const part = (index: number, given: object) => chunk({ tool_calls: [{ index, ...given }] })
    const body = [
      chunk({ role: 'assistant', content: 'Let me ', tool_calls: null }),
      chunk({ content: 'see.' }),
      part(0, { id: 'call_1', type: 'function', function: { name: 'weather', arguments: '' } }),
      part(0, { function: { arguments: '{"city":' } }),
      part(1, { id: 'call_2', type: 'function', function: { name: 'weather', arguments: '{"city":"Bergen"}' } }),
      part(0, { function: { arguments: '"Oslo"}' } }),
      chunk({}, 'tool_calls'),
      'data: [DONE]\n\n',
    ].join('')
    await using upstream = await startUpstream(sends('text/event-stream', body))
    await using server = await startServer({ upstream: upstream.url })
    const response = await server.post('demo:me', { messages: [user('Weather?')], stream: true })
    expect(await response.text()).toBe(body)
    expect((await server.memory.transcript('demo:me'))[1]).toMatchObject({
      content: 'Let me see.',
      calls: [
        { id: 'call_1', name: 'weather', arguments: '{"city":"Oslo"}' },
        { id: 'call_2', name: 'weather', arguments: '{"city":"Bergen"}' },
      ],
    })
  })

  it('shows the model the picture a client sends, and keeps a mark of it', async () => {
    await using upstream = await startUpstream()
    await using server = await startServer({ upstream: upstream.url })
    await server.post('demo:me', { messages: [user('Hi')] })
    const picture = {
      role: 'user',
      content: [
        { type: 'text', text: 'What is this?' },
        { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA', detail: 'low' } },
      ],
    }
    await server.post('demo:me', { messages: [picture] })
    expect(upstream.requests[1]?.body.messages).toEqual([user('Hi'), assistant('Hello from upstream.'), picture])
    expect((await server.said('demo:me'))[2]).toBe('user: What is this?\n[image, 3 bytes, sha256 709e80c88487a241]')
  })

  it('stores the same request once, even if it comes several times at the same time', async () => {
    await using upstream = await startUpstream({ does: 'stall', pieces: ['Hm'] })
    await using server = await startServer({ upstream: upstream.url, memory: { store: slowStore() } })
    const streams = await Promise.all(
      [1, 2, 3].map(() =>
        server.client('demo:me').chat.completions.create({ model: 'm', messages: [user('Hello?')], stream: true }),
      ),
    )
    expect(await server.said('demo:me')).toEqual(['user: Hello?'])
    for (const stream of streams) stream.controller.abort()
    expect(await Promise.all(upstream.requests.map((request) => request.over))).toEqual([
      'hung up',
      'hung up',
      'hung up',
    ])
  })

  it('has the reply in memory before the client knows that it is complete', async () => {
    const store = slowStore()
    await using upstream = await startUpstream(replies('Hello', ' there.'))
    await using server = await startServer({ upstream: upstream.url, memory: { store } })
    const isKept = async (key: string) => (await store.page(parseKey(key), { limit: 9 })).length === 2
    await server.post('demo:whole', { messages: [user('Hi')] })
    expect(await isKept('demo:whole')).toBe(true)
    const reader = (await server.post('demo:stream', { messages: [user('Hi')], stream: true })).body
      ?.pipeThrough(new TextDecoderStream())
      .getReader()
    for (let seen = ''; !seen.includes('[DONE]'); ) seen += (await reader?.read())?.value ?? ''
    expect(await isKept('demo:stream')).toBe(true)
  })

  it('does not let a late reply bring back a session that was forgotten meanwhile', async () => {
    const forgets: (() => Promise<unknown>)[] = []
    await using upstream = await startUpstream(() => {
      for (const forget of forgets) void forget()
      return replies('Too late')
    })
    await using server = await startServer({ upstream: upstream.url })
    forgets.push(() => server.memory.forget({ key: 'demo:me' }))
    for (const stream of [false, true]) {
      const response = await server.post('demo:me', { messages: [user('Hello')], stream })
      expect(await response.text()).toContain('Too late')
      expect(await server.said('demo:me')).toEqual([])
    }
    // the session that has come in its place has a message of its own
    forgets[0] = async () => {
      await server.memory.forget({ key: 'demo:me' })
      await server.memory.append('demo:me', [user('Something else')])
    }
    await server.post('demo:me', { messages: [user('Hello')] })
    expect(await server.said('demo:me')).toEqual(['user: Something else'])
    expect(server.faults).toEqual([])
  })
})

describe('the budget', () => {
  const long = (words: number): string => Array.from({ length: words }, (_, at) => `word${at}`).join(' ')
  const small = (budget: number) => ({ profile: { ...agent, budget } })

  it('is shared by the instructions and tools of the client, which come first, and memory', async () => {
    await using upstream = await startUpstream()
    await using server = await startServer({ upstream: upstream.url, memory: small(400) })
    for (let turn = 0; turn < 20; turn++)
      await server.memory.append('demo:me', [user(`Turn ${turn}: ${long(10)}`), assistant('Noted.')])
    const plain = await server.post('demo:me', { messages: [user('And now?')] })
    const burdened = await server.post('demo:me', { messages: [system(long(60)), user('And then?')], tools: [weather] })
    const spent = (response: Response) => Number(response.headers.get('x-threadkeep-tokens')?.split('/')[0])
    for (const response of [plain, burdened]) {
      expect(response.headers.get('x-threadkeep-tokens')).toMatch(/^\d+\/400$/)
      expect(spent(response)).toBeLessThanOrEqual(400)
      expect(response.headers.get('x-threadkeep-degraded')).toBeNull()
    }
    expect(upstream.requests[1]?.body.messages[0]).toEqual(system(long(60)))
    expect(upstream.requests[1]?.body.messages.length).toBeLessThan(upstream.requests[0]?.body.messages.length)
  })

  it("never costs the client's newest turn a word: then all it sent goes through as it is, and the answer says so", async () => {
    await using upstream = await startUpstream()
    await using server = await startServer({ upstream: upstream.url, memory: small(100) })
    const calls = { role: 'assistant', content: null, tool_calls: called }
    const result = (content: string) => ({ role: 'tool', tool_call_id: 'call_1', content })
    const cases = {
      'a question that is too long': [user('Hi'), assistant('Hello.'), user(long(200))],
      'instructions that are too long': [system(long(200)), user('Hi')],
      'a result that is too long': [user('Weather?'), calls, result(long(200))],
      'tools that leave no room at all': [system(long(20)), user('Hi')],
    }
    for (const [place, [name, messages]] of Object.entries(cases).entries()) {
      const tools = name.startsWith('tools') ? { tools: [weather, weather, weather, weather] } : {}
      const response = await server.post(`demo:${place}`, { messages, ...tools })
      expect([name, response.status, response.headers.get('x-threadkeep-degraded')]).toEqual([name, 200, 'budget'])
      expect(upstream.requests[place]?.body).toEqual({ messages, ...tools })
      const [spent, budget] = response.headers.get('x-threadkeep-tokens')?.split('/').map(Number) ?? []
      expect(spent).toBeGreaterThan(budget ?? 0)
    }
    // what was said is kept whole all the same
    expect((await server.said('demo:0'))[2]).toBe(`user: ${long(200)}`)
  })

  it('has nothing to do with messages that memory cannot show; they go through as they are', async () => {
    await using upstream = await startUpstream()
    await using server = await startServer({ upstream: upstream.url })
    for (const messages of [
      [user('Hi'), assistant('Hello.'), user('')],
      [system('Say something.')],
      [user('Hi'), assistant(' ')],
    ]) {
      const response = await server.post('demo:me', { messages })
      expect([response.status, response.headers.get('x-threadkeep-degraded')]).toEqual([200, 'messages'])
      expect(upstream.requests.at(-1)?.body.messages).toEqual(messages)
    }
  })

  it('does not count a request without a turn as one', async () => {
    await using upstream = await startUpstream()
    await using server = await startServer({ upstream: upstream.url })
    await server.post('demo:me', { messages: [system('Say something.')] })
    expect(await server.said('demo:me')).toEqual([])
  })
})
