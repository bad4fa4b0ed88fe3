import { describe, expect, it } from 'vitest'
import { geminiModel } from '../../src/providers/gemini.ts'
import { verifies } from '../requirements/verifies.ts'
import { failureOf, hello, piecesOf } from './gather.ts'
import { sends, startUpstream } from './upstream.ts'

const data = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`

describe('geminiModel', () => {
  verifies(
    'E-15',
    'gemini: sends alternating contents and the system instruction, with the key in a header',
    async () => {
      await using upstream = await startUpstream()
      const model = geminiModel({ baseUrl: `${upstream.origin}/v1beta/`, apiKey: 'AIza-1', model: 'gemini-x' })
      const pieces = await piecesOf(model, {
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

  it('begins with a user, tells of tool calls in words, and asks the model the caller names', async () => {
    await using upstream = await startUpstream()
    await piecesOf(geminiModel({ baseUrl: upstream.origin, model: 'gemini-x' }), {
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

  it('joins the parts of a chunk and passes over thoughts', async () => {
    const parts = [{ text: 'Hm', thought: true }, { text: 'Ye' }, { functionCall: {} }, { text: 's' }]
    await using upstream = await startUpstream(
      sends('text/event-stream', data({ candidates: [{ content: { parts }, finishReason: 'MAX_TOKENS' }] })),
    )
    expect(await piecesOf(geminiModel({ baseUrl: upstream.origin, model: 'gemini-x' }))).toEqual(['Yes'])
  })

  it('takes a list of chunks in one', async () => {
    const chunks = ['Ye', 's'].map((text) => ({ candidates: [{ content: { parts: [{ text }] } }] }))
    await using upstream = await startUpstream(sends('application/json', JSON.stringify(chunks)))
    expect(await piecesOf(geminiModel({ baseUrl: upstream.origin, model: 'gemini-x' }))).toEqual(['Yes'])
  })

  it.each([
    ['the question was blocked', { promptFeedback: { blockReason: 'PROHIBITED_CONTENT' } }, 'PROHIBITED_CONTENT'],
    ['the reply was unsafe', { candidates: [{ finishReason: 'SAFETY' }] }, 'SAFETY'],
    ['the reply recited', { candidates: [{ finishReason: 'RECITATION' }] }, 'RECITATION'],
  ])('says that %s', async (_, chunk, reason) => {
    for (const behaviour of [
      sends('text/event-stream', data(chunk)),
      sends('application/json', JSON.stringify(chunk)),
    ]) {
      await using upstream = await startUpstream(behaviour)
      const { error } = await failureOf(geminiModel({ baseUrl: upstream.origin, model: 'gemini-x' }), hello)
      expect(error).toMatchObject({
        code: 'upstream',
        message: expect.stringContaining(`withheld the reply (${reason}). Put the question another way`),
      })
    }
  })
})
