import { describe, expect, it } from 'vitest'
import { geminiModel } from '../../src/providers/gemini.ts'
import { verifies } from '../requirements/verifies.ts'
import { collectFailure, collectReply, helloRequest } from './collectReply.ts'
import { sendRaw, startUpstream } from './upstream.ts'

const data = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`

describe('geminiModel', () => {
  verifies(
    'E-15',
    'gemini › reply › sends alternating contents, the system instruction and the key header',
    async () => {
      await using upstream = await startUpstream()
      const model = geminiModel({ baseUrl: `${upstream.origin}/v1beta/`, apiKey: 'AIza-1', model: 'gemini-x' })
      const pieces = await collectReply(model, {
        messages: [
          { role: 'system', content: 'Be brief.' },
          { role: 'user', content: 'One' },
          { role: 'user', content: 'Two' },
          { role: 'assistant', content: 'Three' },
          { role: 'assistant', content: 'Four' },
          { role: 'system', content: 'It is late.' },
          { role: 'user', content: 'Five' },
        ],
        maxTokens: 30,
        temperature: 1,
      })
      expect(pieces).toEqual(['Hello', ' from upstream.'])
      const [request] = upstream.requests
      expect(request?.path).toBe('/v1beta/models/gemini-x:streamGenerateContent?alt=sse')
      expect(request?.headers['x-goog-api-key']).toBe('AIza-1')
      expect(request?.body).toEqual({
        contents: [
          { role: 'user', parts: [{ text: 'One' }, { text: 'Two' }] },
          { role: 'model', parts: [{ text: 'Three' }, { text: 'Four' }] },
          { role: 'user', parts: [{ text: 'It is late.' }, { text: 'Five' }] },
        ],
        systemInstruction: { parts: [{ text: 'Be brief.' }] },
        generationConfig: { maxOutputTokens: 30, temperature: 1 },
      })
    },
  )

  it('reply › with tool calls and a model in the request › starts with a user turn, sends the calls as text and uses that model', async () => {
    await using upstream = await startUpstream()
    await collectReply(geminiModel({ baseUrl: upstream.origin, model: 'gemini-x' }), {
      messages: [
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: 'c1', type: 'function', function: { name: 'weather', arguments: '{}' } }],
        },
        { role: 'tool', content: 'Rain', tool_call_id: 'c1' },
      ],
      model: 'tuned/my model',
    })
    expect(upstream.requests[0]?.path).toBe('/v1beta/models/tuned%2Fmy%20model:streamGenerateContent?alt=sse')
    expect(upstream.requests[0]?.body.contents).toEqual([
      { role: 'user', parts: [{ text: '(The conversation continues.)' }] },
      { role: 'model', parts: [{ text: '(called weather with {})' }] },
      { role: 'user', parts: [{ text: '(result of weather) Rain' }] },
    ])
  })

  it('reply › with several parts in a chunk › joins the text parts and skips thoughts', async () => {
    const parts = [{ text: 'Hm', thought: true }, { text: 'Ye' }, { functionCall: {} }, { text: 's' }]
    await using upstream = await startUpstream(
      sendRaw('text/event-stream', data({ candidates: [{ content: { parts }, finishReason: 'MAX_TOKENS' }] })),
    )
    expect(await collectReply(geminiModel({ baseUrl: upstream.origin, model: 'gemini-x' }))).toEqual(['Yes'])
  })

  it('reply › with a JSON array of chunks › joins their text', async () => {
    const chunks = ['Ye', 's'].map((text) => ({ candidates: [{ content: { parts: [{ text }] } }] }))
    await using upstream = await startUpstream(sendRaw('application/json', JSON.stringify(chunks)))
    expect(await collectReply(geminiModel({ baseUrl: upstream.origin, model: 'gemini-x' }))).toEqual(['Yes'])
  })

  it.each([
    ['a blocked prompt', { promptFeedback: { blockReason: 'PROHIBITED_CONTENT' } }, 'PROHIBITED_CONTENT'],
    ['an unsafe reply', { candidates: [{ finishReason: 'SAFETY' }] }, 'SAFETY'],
    ['a recitation', { candidates: [{ finishReason: 'RECITATION' }] }, 'RECITATION'],
  ])('reply › with %s › throws an error with the reason', async (_, chunk, reason) => {
    for (const behaviour of [
      sendRaw('text/event-stream', data(chunk)),
      sendRaw('application/json', JSON.stringify(chunk)),
    ]) {
      await using upstream = await startUpstream(behaviour)
      const { error } = await collectFailure(geminiModel({ baseUrl: upstream.origin, model: 'gemini-x' }), helloRequest)
      expect(error).toMatchObject({
        code: 'upstream',
        message: expect.stringContaining(`withheld the reply (${reason}). Rephrase the question`),
      })
    }
  })
})
