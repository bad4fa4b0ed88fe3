import { describe, expect, it } from 'vitest'
import type { MemoryError } from '../../src/domain/error.ts'
import { type EmbedderOptions, openaiEmbedder } from '../../src/providers/embedder.ts'
import { exactTokenizer } from '../../src/tokenizers/tokenizers.ts'
import { formatErrorChain } from './collectReply.ts'
import { useFakeTimeouts } from './fakeTimeouts.ts'
import {
  type Behaviour,
  closedPortUrl,
  type RecordedRequest,
  respondWithStatus,
  type Script,
  sendRaw,
  startUpstream,
  type Upstream,
} from './upstream.ts'

type Item = { readonly index?: unknown; readonly embedding?: unknown }

const respondWith = (...data: Item[]): Behaviour =>
  sendRaw('application/json', JSON.stringify({ object: 'list', model: 'test', data }))
const base64 = (...values: number[]): string => Buffer.from(Float32Array.from(values).buffer).toString('base64')
const embedderAt = (upstream: Upstream, options: Partial<EmbedderOptions> = {}) =>
  openaiEmbedder({ baseUrl: upstream.url, model: 'test', ...options })

/** Embeds each text as the vector [length, index]. */
const embedLengths: Script = ({ body }) =>
  respondWith(...body.input.map((text: string, index: number) => ({ index, embedding: [text.length, index] })))

async function embedFailure(
  script: Script,
  texts: readonly string[] = ['a', 'b'],
  options: Partial<EmbedderOptions> = {},
): Promise<MemoryError> {
  await using upstream = await startUpstream(script)
  return await embedderAt(upstream, options)
    .embed(texts)
    .then(
      (vectors) => expect.unreachable(`embed did not fail but returned ${vectors.length} vectors`),
      (error) => error,
    )
}

describe('openaiEmbedder', () => {
  it('embed › with several texts › sends one request with the key and returns their vectors', async () => {
    await using upstream = await startUpstream(embedLengths)
    const embedder = embedderAt(upstream, { apiKey: ' sk-1\n', headers: { 'x-team': 'blue' } })
    expect(embedder.name).toBe('test')
    expect(await embedder.embed(['Miso', 'is a cat'])).toEqual([Float32Array.of(4, 0), Float32Array.of(8, 1)])
    expect(upstream.requests.map(({ path, body }) => [path, body])).toEqual([
      ['/v1/embeddings', { model: 'test', input: ['Miso', 'is a cat'] }],
    ])
    expect(upstream.requests[0]?.headers).toMatchObject({
      authorization: 'Bearer sk-1',
      accept: 'application/json',
      'x-team': 'blue',
    })
  })

  it('embed › with dimensions › requests them and includes them in the name', async () => {
    await using upstream = await startUpstream(embedLengths)
    const embedder = embedderAt(upstream, { dimensions: 2 })
    expect(embedder.name).toBe('test@2')
    expect(await embedder.embed(['Miso'])).toEqual([Float32Array.of(4, 0)])
    expect(upstream.requests[0]?.body).toEqual({ model: 'test', input: ['Miso'], dimensions: 2 })
  })

  it('embed › without texts › sends no request', async () => {
    expect(await openaiEmbedder({ baseUrl: await closedPortUrl(), model: 'test' }).embed([])).toEqual([])
  })

  it('embed › with vectors in any order, as numbers or base64 › returns them in the order of the texts', async () => {
    await using upstream = await startUpstream(
      respondWith({ index: 1, embedding: base64(0.5, -2) }, { index: 0, embedding: [1, 0.1] }),
    )
    expect(await embedderAt(upstream).embed(['a', 'b'])).toEqual([Float32Array.of(1, 0.1), Float32Array.of(0.5, -2)])
  })

  it('embed › with vectors without an index › keeps their order', async () => {
    await using upstream = await startUpstream(respondWith({ embedding: [1] }, { embedding: [2] }))
    expect(await embedderAt(upstream).embed(['a', 'b'])).toEqual([Float32Array.of(1), Float32Array.of(2)])
  })

  it.each([
    ['too few vectors', respondWith({ index: 0, embedding: [1] }), 'sent 1 vectors for 2 texts'],
    [
      'too many vectors',
      respondWith({ embedding: [1] }, { embedding: [1] }, { embedding: [1] }),
      'sent 3 vectors for 2 texts',
    ],
    ['no vectors', sendRaw('application/json', '{"object":"chat.completion"}'), 'sent 0 vectors for 2 texts'],
    [
      'a repeated index',
      respondWith({ index: 0, embedding: [1] }, { index: 0, embedding: [2] }),
      'sent no vector of finite numbers for text 1',
    ],
    [
      'an index out of range',
      respondWith({ index: 0, embedding: [1] }, { index: 2, embedding: [2] }),
      'sent no vector of finite numbers for text 1',
    ],
    [
      'strings in a vector',
      respondWith({ index: 0, embedding: [1] }, { index: 1, embedding: ['2'] }),
      'sent no vector of finite numbers for text 1',
    ],
    [
      'an empty vector',
      respondWith({ index: 0, embedding: [] }, { index: 1, embedding: [2] }),
      'sent no vector of finite numbers for text 0',
    ],
    [
      'null in a vector',
      respondWith({ index: 0, embedding: [null] }, { index: 1, embedding: [2] }),
      'sent no vector of finite numbers for text 0',
    ],
    [
      'a number beyond 32-bit floats',
      respondWith({ index: 0, embedding: [1e39] }, { index: 1, embedding: [2] }),
      'sent no vector of finite numbers for text 0',
    ],
    [
      'an infinite number',
      respondWith({ index: 0, embedding: base64(Infinity) }, { index: 1, embedding: [2] }),
      'sent no vector of finite numbers for text 0',
    ],
    [
      'incomplete base64 floats',
      respondWith({ index: 0, embedding: 'AAAAAAA=' }, { index: 1, embedding: [2] }),
      'sent no vector of finite numbers for text 0',
    ],
    [
      'vectors of different lengths',
      respondWith({ index: 0, embedding: [1, 2] }, { index: 1, embedding: [2] }),
      'sent a vector of 1 numbers where 2 were expected',
    ],
    ['a web page', sendRaw('text/html', '<html>'), 'sent something that is not JSON'],
    [
      'a response over the size limit',
      sendRaw('application/json', `"${'x'.repeat(2_097_152)}"`),
      'sent more than 2097152 bytes',
    ],
  ])('embed › with %s › throws an error that explains it', async (_, behaviour, message) => {
    expect(await embedFailure(behaviour)).toMatchObject({
      name: 'MemoryError',
      code: 'upstream',
      message: expect.stringMatching(
        new RegExp(
          `^http://127.0.0.1:\\d+/v1/embeddings ${message}. Check that the address and the model are those of an embedder.$`,
        ),
      ),
    })
  })

  it('embed › with vectors of another length than requested › throws', async () => {
    const error = await embedFailure(respondWith({ index: 0, embedding: [1, 2, 3] }), ['a'], { dimensions: 2 })
    expect(error.message).toContain('sent a vector of 3 numbers where 2 were expected')
  })

  it.each([
    ['a refused key', respondWithStatus(401), 'refused the key (HTTP 401). Check apiKey.'],
    [
      'an unknown model',
      respondWithStatus(404),
      'has no model "test" or no such endpoint (HTTP 404). Check the model name and baseUrl.',
    ],
    [
      'an error in a successful response',
      sendRaw('application/json', '{"error":{"type":"overloaded"}}'),
      'reported an error (overloaded)',
    ],
    ['a dropped connection', { does: 'drop', pieces: [] }, 'broke off in the middle of the reply'],
  ] as const)(
    'embed › with %s › throws an error with the remedy and without secrets',
    async (_, behaviour, message) => {
      const error = await embedFailure(behaviour, ['SECRET text'], { apiKey: 'SECRET-key' })
      expect(error).toMatchObject({ name: 'MemoryError', code: 'upstream', message: expect.stringContaining(message) })
      expect(formatErrorChain(error)).not.toContain('SECRET')
    },
  )

  it('embed › with a server that never answers › times out', async () => {
    using clock = useFakeTimeouts()
    const hang = (): Behaviour => {
      clock.advance(30)
      return { does: 'hang' }
    }
    const error = await embedFailure(hang, ['a'], { timeouts: { firstByte: 30 } })
    expect(error).toMatchObject({ code: 'timeout', message: expect.stringContaining('did not answer within 30 ms') })
  })

  it('embed › with a busy server › retries', async () => {
    await using upstream = await startUpstream([
      respondWithStatus(503),
      respondWithStatus(429),
      respondWith({ index: 0, embedding: [1] }),
    ])
    const delays: number[] = []
    const embedder = embedderAt(upstream, { sleep: async (ms) => void delays.push(ms) })
    expect(await embedder.embed(['a'])).toEqual([Float32Array.of(1)])
    expect(delays).toEqual([500, 1_500])
  })

  it('embed › when aborted › throws and closes the connection', async () => {
    const stop = new AbortController()
    await using upstream = await startUpstream(() => {
      stop.abort()
      return { does: 'hang' }
    })
    await expect(embedderAt(upstream).embed(['a'], stop.signal)).rejects.toMatchObject({ code: 'aborted' })
    expect(await upstream.requests[0]?.outcome).toBe('hung up')
  })

  it.each([
    ['words', 'The cat sat on the mat. ', 20_000],
    ['characters of many bytes', '猫は\u{1F469}\u200D\u{1F680}と', 4_000],
  ])('embed › with too many %s › embeds the beginning without splitting a character', async (_, text, repeats) => {
    await using upstream = await startUpstream(embedLengths)
    const long = text.repeat(repeats)
    await embedderAt(upstream).embed([long, 'short'])
    const [cut, short] = (upstream.requests[0] as RecordedRequest).body.input as [string, string]
    const { count } = await exactTokenizer('cl100k_base')
    expect([count(long) > 8_192, count(cut) <= 8_000, short]).toEqual([true, true, 'short'])
    expect(long.startsWith(cut)).toBe(true)
    const segments = [...new Intl.Segmenter('en', { granularity: 'grapheme' }).segment(long.slice(0, cut.length + 16))]
    expect(segments.some(({ index }) => index === cut.length)).toBe(true)
    expect(cut.length).toBeGreaterThan(2_000)
  })

  it('embed › with a lone surrogate › sends the replacement character', async () => {
    await using upstream = await startUpstream(embedLengths)
    await embedderAt(upstream).embed(['cut \ud83d'])
    expect(upstream.requests[0]?.body.input).toEqual(['cut \ufffd'])
  })

  it.each([0, 1.5, Number.NaN])('with %d dimensions › throws', (dimensions) => {
    const message = `dimensions is ${dimensions}; it must be a whole number, 1 or more.`
    expect(() => openaiEmbedder({ model: 'test', dimensions })).toThrow(
      expect.objectContaining({ code: 'bad-option', param: 'dimensions', message }),
    )
  })
})
