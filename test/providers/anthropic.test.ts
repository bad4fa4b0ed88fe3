import { describe, expect, it } from 'vitest'
import { anthropicModel } from '../../src/providers/anthropic.ts'
import { verifies } from '../requirements/verifies.ts'
import { collectFailure, collectReply, helloRequest } from './collectReply.ts'
import { sendRaw, startUpstream } from './upstream.ts'

const event = (value: { type: string; [field: string]: unknown }): string =>
  `event: ${value.type}\ndata: ${JSON.stringify(value)}\n\n`
const delta = (delta: unknown): string => event({ type: 'content_block_delta', index: 0, delta })

describe('anthropicModel', () => {
  verifies(
    'E-15',
    'anthropic › reply › sends the system text separately, alternating roles, the key and the API version',
    async () => {
      await using upstream = await startUpstream()
      const model = anthropicModel({ baseUrl: upstream.origin, apiKey: 'sk-ant-1', model: 'claude-x' })
      const pieces = await collectReply(model, {
        messages: [
          { role: 'system', content: 'Be brief.' },
          { role: 'system', content: 'Be kind.' },
          { role: 'user', content: 'Hello' },
          { role: 'assistant', content: 'Hi' },
          { role: 'system', content: 'It is late.' },
          { role: 'user', content: 'And now?' },
        ],
        temperature: 0.5,
      })
      expect(pieces).toEqual(['Hello', ' from upstream.'])
      const [request] = upstream.requests
      expect(request?.path).toBe('/v1/messages')
      expect(request?.headers).toMatchObject({ 'x-api-key': 'sk-ant-1', 'anthropic-version': '2023-06-01' })
      expect(request?.headers.authorization).toBeUndefined()
      expect(request?.body).toEqual({
        model: 'claude-x',
        max_tokens: 4096,
        system: 'Be brief.\n\nBe kind.',
        messages: [
          { role: 'user', content: 'Hello' },
          { role: 'assistant', content: 'Hi' },
          {
            role: 'user',
            content: [
              { type: 'text', text: 'It is late.' },
              { type: 'text', text: 'And now?' },
            ],
          },
        ],
        stream: true,
        temperature: 0.5,
      })
    },
  )

  it('reply › with tool calls › sends them as text', async () => {
    await using upstream = await startUpstream()
    await collectReply(anthropicModel({ baseUrl: upstream.url, model: 'claude-x' }), {
      messages: [
        { role: 'user', content: 'Weather?' },
        {
          role: 'assistant',
          content: 'Let me look.',
          tool_calls: [{ id: 'c1', type: 'function', function: { name: 'weather', arguments: '{"in":"Oslo"}' } }],
        },
        { role: 'tool', content: 'Rain', tool_call_id: 'c1' },
        { role: 'tool', content: 'Wind', tool_call_id: 'c2' },
      ],
      maxTokens: 20,
    })
    expect(upstream.requests[0]?.path).toBe('/v1/messages')
    expect(upstream.requests[0]?.body).toEqual({
      model: 'claude-x',
      max_tokens: 20,
      messages: [
        { role: 'user', content: 'Weather?' },
        { role: 'assistant', content: 'Let me look.\n(called weather with {"in":"Oslo"})' },
        {
          role: 'user',
          content: [
            { type: 'text', text: '(result of weather) Rain' },
            { type: 'text', text: '(result of a tool) Wind' },
          ],
        },
      ],
      stream: true,
    })
  })

  it('reply › with thoughts, tool input and unknown events › skips them', async () => {
    const stream = [
      delta({ type: 'thinking_delta', thinking: 'Hm' }),
      delta({ type: 'text_delta', text: 'Yes' }),
      delta({ type: 'input_json_delta', partial_json: '{' }),
      event({ type: 'something_new', text: 'No' }),
      event({ type: 'message_delta', delta: { stop_reason: 'max_tokens' } }),
    ]
    await using upstream = await startUpstream(sendRaw('text/event-stream', stream.join('')))
    expect(await collectReply(anthropicModel({ baseUrl: upstream.origin, model: 'claude-x' }))).toEqual(['Yes'])
  })

  it('reply › with stop reason refusal › throws an error', async () => {
    const stream =
      delta({ type: 'text_delta', text: 'Well' }) +
      event({ type: 'message_delta', delta: { stop_reason: 'refusal' } }) +
      event({ type: 'message_stop' })
    await using upstream = await startUpstream(sendRaw('text/event-stream', stream))
    const { pieces, error } = await collectFailure(
      anthropicModel({ baseUrl: upstream.origin, model: 'claude-x' }),
      helloRequest,
    )
    expect(pieces).toEqual(['Well'])
    expect(error).toMatchObject({ code: 'upstream', message: expect.stringContaining('withheld the reply (refusal)') })
  })
})
