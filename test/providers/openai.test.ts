import { describe, expect, it } from 'vitest'
import type { ChatMessage } from '../../src/domain/ledger.ts'
import { localModel, openaiModel, xaiModel } from '../../src/providers/openai.ts'
import { verifies } from '../requirements/verifies.ts'
import { collectFailure, collectReply, helloRequest } from './collectReply.ts'
import { replyWith, sendRaw, startUpstream } from './upstream.ts'

const chunk = (choice: unknown): string => `data: ${JSON.stringify({ choices: [choice] })}\n\n`
const piece = (content: string): string => chunk({ delta: { content } })

const messages: ChatMessage[] = [
  { role: 'system', content: 'Be brief.' },
  { role: 'user', content: 'Weather?', name: 'Ann' },
  {
    role: 'assistant',
    content: null,
    tool_calls: [{ id: 'c1', type: 'function', function: { name: 'weather', arguments: '{"in":"Oslo"}' } }],
  },
  { role: 'tool', content: 'Rain', tool_call_id: 'c1' },
  { role: 'user', content: 'And tomorrow?' },
]

async function replyTo(stream: string): Promise<string[]> {
  await using upstream = await startUpstream(sendRaw('text/event-stream', stream))
  return await collectReply(openaiModel({ baseUrl: upstream.url, model: 'test' }))
}

describe('openaiModel', () => {
  verifies('E-15', 'openai › reply › sends the messages unchanged, with the key', async () => {
    await using upstream = await startUpstream()
    const model = openaiModel({
      baseUrl: upstream.url,
      apiKey: ' sk-1\n',
      model: 'gpt-x',
      headers: { 'x-team': 'blue' },
    })
    expect(model.name).toBe('gpt-x')
    expect((await collectReply(model, { messages, maxTokens: 50, temperature: 0.2 })).join('')).toBe(
      'Hello from upstream.',
    )
    const [request] = upstream.requests
    expect(request?.path).toBe('/v1/chat/completions')
    expect(request?.headers).toMatchObject({
      authorization: 'Bearer sk-1',
      'content-type': 'application/json',
      'x-team': 'blue',
    })
    expect(request?.body).toEqual({ model: 'gpt-x', messages, stream: true, max_tokens: 50, temperature: 0.2 })
  })

  it('reply › without a key and limits › sends none, and uses the model of the request', async () => {
    await using upstream = await startUpstream()
    await collectReply(openaiModel({ baseUrl: `${upstream.url}/?team=a`, model: 'gpt-x' }), {
      ...helloRequest,
      model: 'gpt-y',
    })
    expect(upstream.requests[0]?.headers.authorization).toBeUndefined()
    expect(upstream.requests[0]?.path).toBe('/v1/chat/completions?team=a')
    expect(upstream.requests[0]?.body).toEqual({ model: 'gpt-y', messages: helloRequest.messages, stream: true })
  })

  it('reply › with chunks without text (usage, roles, reasoning, tool calls, keep-alives, unknown ones) › skips them', async () => {
    const others = [
      ': ping\n\n',
      'data: {}\n\n',
      'data: null\n\n',
      'data: 7\n\n',
      'data: {"choices":[]}\n\n',
      'data: {"choices":{},"error":null,"usage":{}}\n\n',
      'data:\n\n',
      chunk({ delta: { role: 'assistant' } }),
      chunk({ delta: { content: null, reasoning_content: 'hm' } }),
      chunk({ delta: { content: 7 } }),
      chunk({ delta: { tool_calls: [{ index: 0 }] } }),
      'event: ping\ndata: {"type":"ping"}\n\n',
    ]
    const stream = others.map((other, at) => other + piece(`${at} `)).join('')
    expect(await replyTo(`${stream}data: [DONE]\n\n`)).toEqual(others.map((_, at) => `${at} `))
  })

  it.each([
    ['[DONE] alone', `${piece('Yes')}data: [DONE]\n\n`],
    ['a finish reason alone', chunk({ delta: { content: 'Yes' }, finish_reason: 'stop' })],
    ['finish reason length', piece('Yes') + chunk({ delta: {}, finish_reason: 'length' })],
    ['[DONE] and data after it', `${piece('Yes')}data: [DONE]\n\n${piece('No')}data: rubbish\n\n`],
  ])('reply › with a stream that ends with %s › is complete', async (_, stream) => {
    expect(await replyTo(stream)).toEqual(['Yes'])
  })

  it('reply › with a finish reason in every chunk › continues to the end', async () => {
    const each = (content: string): string => chunk({ delta: { content }, finish_reason: 'stop' })
    expect(await replyTo(`${each('A')}${each('B')}data: [DONE]\n\n`)).toEqual(['A', 'B'])
  })

  it.each([
    ['stays open', { does: 'stall', pieces: ['Yes'], complete: true }],
    ['sends more comments', { does: 'babble', pieces: ['Yes'] }],
  ] as const)('reply › with a connection that %s after the end › closes the connection', async (_, behaviour) => {
    await using upstream = await startUpstream(behaviour)
    expect(await collectReply(openaiModel({ baseUrl: upstream.url, model: 'test' }))).toEqual(['Yes'])
    expect(await upstream.requests[0]?.outcome).toBe('hung up')
  })

  it('reply › with finish reason content_filter › throws an error', async () => {
    await using upstream = await startUpstream(
      sendRaw('text/event-stream', piece('Well') + chunk({ delta: {}, finish_reason: 'content_filter' })),
    )
    const { pieces, error } = await collectFailure(openaiModel({ baseUrl: upstream.url, model: 'test' }))
    expect(pieces).toEqual(['Well'])
    expect(error).toMatchObject({
      code: 'upstream',
      message: expect.stringContaining('withheld the reply (content_filter)'),
    })
  })

  it('reply › without any text › yields nothing', async () => {
    await using upstream = await startUpstream([replyWith(), { does: 'whole', pieces: [] }])
    const model = openaiModel({ baseUrl: upstream.url, model: 'test' })
    expect(await collectReply(model)).toEqual([])
    expect(await collectReply(model)).toEqual([])
  })
})

describe('xaiModel and localModel', () => {
  verifies('E-15', 'xai and local › reply › send chat completions, each with its own limit parameter', async () => {
    await using upstream = await startUpstream()
    await collectReply(xaiModel({ baseUrl: upstream.url, apiKey: 'xai-1', model: 'grok-x' }), {
      ...helloRequest,
      maxTokens: 9,
    })
    await collectReply(localModel({ baseUrl: upstream.url, model: 'llama-x' }), { ...helloRequest, maxTokens: 9 })
    expect(upstream.requests.map(({ path, headers, body }) => [path, headers.authorization, body])).toEqual([
      [
        '/v1/chat/completions',
        'Bearer xai-1',
        { model: 'grok-x', messages: helloRequest.messages, stream: true, max_completion_tokens: 9 },
      ],
      [
        '/v1/chat/completions',
        undefined,
        { model: 'llama-x', messages: helloRequest.messages, stream: true, max_tokens: 9 },
      ],
    ])
  })
})
