import { describe, expect, it } from 'vitest'
import { ollamaEmbedder } from '../../src/providers/ollamaEmbedder.ts'
import { respondWithStatus, sendRaw, startUpstream } from './upstream.ts'

const respondWith = (...embeddings: unknown[]) =>
  sendRaw('application/json', JSON.stringify({ model: 'test', embeddings }))

describe('ollamaEmbedder', () => {
  it('embed › with several texts › sends one request to /api/embed and returns the vectors in order', async () => {
    await using upstream = await startUpstream(respondWith([1, 0], [0, 1]))
    const embedder = ollamaEmbedder({ baseUrl: upstream.origin, model: 'nomic-embed-text:v1.5', weight: 0.3 })
    expect([embedder.name, embedder.weight]).toEqual(['ollama:nomic-embed-text:v1.5', 0.3])
    expect(await embedder.embed(['Miso', 'is a cat'])).toEqual([Float32Array.of(1, 0), Float32Array.of(0, 1)])
    expect(upstream.requests.map(({ path, body }) => [path, body])).toEqual([
      ['/api/embed', { model: 'nomic-embed-text:v1.5', input: ['Miso', 'is a cat'], truncate: true }],
    ])
    expect(upstream.requests[0]?.headers.authorization).toBeUndefined()
  })

  it('with the address of the OpenAI-compatible API › uses /api/embed of that server', async () => {
    await using upstream = await startUpstream(respondWith([1, 0]))
    await ollamaEmbedder({ baseUrl: upstream.url, model: 'm' }).embed(['a'])
    expect(upstream.requests[0]?.path).toBe('/api/embed')
  })

  it('embed › with dimensions and a key › sends both and includes the dimensions in the name', async () => {
    await using upstream = await startUpstream(respondWith([1, 0]))
    const embedder = ollamaEmbedder({ baseUrl: upstream.origin, model: 'm', dimensions: 2, apiKey: 'k1' })
    expect(embedder.name).toBe('ollama:m@2')
    await embedder.embed(['a'])
    expect(upstream.requests[0]?.body).toMatchObject({ dimensions: 2 })
    expect(upstream.requests[0]?.headers.authorization).toBe('Bearer k1')
  })

  it.each([
    ['too few vectors', respondWith([1]), 'sent 1 vectors for 2 texts'],
    ['vectors of different lengths', respondWith([1], [1, 2]), 'sent a vector of 2 numbers where 1 were expected'],
    ['another protocol', sendRaw('application/json', '{"data":[]}'), 'sent 0 vectors for 2 texts'],
    ['a missing model', respondWithStatus(404), 'has no model "m" or no such endpoint'],
    ['an error with status 200', sendRaw('application/json', '{"error":"boom"}'), 'reported an error'],
  ])('embed › with %s in the response › fails with the problem', async (_, script, problem) => {
    await using upstream = await startUpstream(script)
    const embedder = ollamaEmbedder({ baseUrl: upstream.origin, model: 'm', maxAttempts: 1 })
    await expect(embedder.embed(['a', 'b'])).rejects.toMatchObject({
      code: 'upstream',
      message: expect.stringContaining(problem),
    })
  })

  it('embed › without texts › sends no request', async () => {
    expect(await ollamaEmbedder({ baseUrl: 'http://127.0.0.1:9', model: 'm' }).embed([])).toEqual([])
  })
})
