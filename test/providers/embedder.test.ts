import { describe, expect, it } from 'vitest'
import type { MemoryError } from '../../src/domain/error.ts'
import { type EmbedderAccess, openaiEmbedder } from '../../src/providers/embedder.ts'
import { exactTokenizer } from '../../src/tokenizers/tokenizers.ts'
import { everythingIn } from './gather.ts'
import {
  type Behaviour,
  closedPort,
  type Received,
  refuses,
  type Script,
  sends,
  startUpstream,
  type Upstream,
} from './upstream.ts'

type Item = { readonly index?: unknown; readonly embedding?: unknown }

const answers = (...data: Item[]): Behaviour =>
  sends('application/json', JSON.stringify({ object: 'list', model: 'test', data }))
const base64 = (...values: number[]): string => Buffer.from(Float32Array.from(values).buffer).toString('base64')
const embedderAt = (upstream: Upstream, access: Partial<EmbedderAccess> = {}) =>
  openaiEmbedder({ baseUrl: upstream.url, model: 'test', ...access })

/** Each text as the vector of its length and of its place. */
const measures: Script = ({ body }) =>
  answers(...body.input.map((text: string, index: number) => ({ index, embedding: [text.length, index] })))

async function failureOf(
  script: Script,
  texts: readonly string[] = ['a', 'b'],
  access: Partial<EmbedderAccess> = {},
): Promise<MemoryError> {
  await using upstream = await startUpstream(script)
  return await embedderAt(upstream, access)
    .embed(texts)
    .then(
      (vectors) => expect.unreachable(`it did not fail but made ${vectors.length} vectors`),
      (error) => error,
    )
}

describe('openaiEmbedder', () => {
  it('sends the texts in one request, with the key, and gives their vectors', async () => {
    await using upstream = await startUpstream(measures)
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

  it('asks for shorter vectors, and has another name then', async () => {
    await using upstream = await startUpstream(measures)
    const embedder = embedderAt(upstream, { dimensions: 2 })
    expect(embedder.name).toBe('test@2')
    expect(await embedder.embed(['Miso'])).toEqual([Float32Array.of(4, 0)])
    expect(upstream.requests[0]?.body).toEqual({ model: 'test', input: ['Miso'], dimensions: 2 })
  })

  it('asks nobody for nothing', async () => {
    expect(await openaiEmbedder({ baseUrl: await closedPort(), model: 'test' }).embed([])).toEqual([])
  })

  it('takes vectors in any order, as numbers or in base64', async () => {
    await using upstream = await startUpstream(
      answers({ index: 1, embedding: base64(0.5, -2) }, { index: 0, embedding: [1, 0.1] }),
    )
    expect(await embedderAt(upstream).embed(['a', 'b'])).toEqual([Float32Array.of(1, 0.1), Float32Array.of(0.5, -2)])
  })

  it('takes vectors without a place in the order they come', async () => {
    await using upstream = await startUpstream(answers({ embedding: [1] }, { embedding: [2] }))
    expect(await embedderAt(upstream).embed(['a', 'b'])).toEqual([Float32Array.of(1), Float32Array.of(2)])
  })

  it.each([
    ['too few', answers({ index: 0, embedding: [1] }), 'sent 1 vectors for 2 texts'],
    ['too many', answers({ embedding: [1] }, { embedding: [1] }, { embedding: [1] }), 'sent 3 vectors for 2 texts'],
    ['none', sends('application/json', '{"object":"chat.completion"}'), 'sent 0 vectors for 2 texts'],
    [
      'one twice',
      answers({ index: 0, embedding: [1] }, { index: 0, embedding: [2] }),
      'sent no vector of finite numbers for text 1',
    ],
    [
      'a place there is not',
      answers({ index: 0, embedding: [1] }, { index: 2, embedding: [2] }),
      'sent no vector of finite numbers for text 1',
    ],
    [
      'words',
      answers({ index: 0, embedding: [1] }, { index: 1, embedding: ['2'] }),
      'sent no vector of finite numbers for text 1',
    ],
    [
      'an empty one',
      answers({ index: 0, embedding: [] }, { index: 1, embedding: [2] }),
      'sent no vector of finite numbers for text 0',
    ],
    [
      'nothing',
      answers({ index: 0, embedding: [null] }, { index: 1, embedding: [2] }),
      'sent no vector of finite numbers for text 0',
    ],
    [
      'more than 32 bits hold',
      answers({ index: 0, embedding: [1e39] }, { index: 1, embedding: [2] }),
      'sent no vector of finite numbers for text 0',
    ],
    [
      'infinity',
      answers({ index: 0, embedding: base64(Infinity) }, { index: 1, embedding: [2] }),
      'sent no vector of finite numbers for text 0',
    ],
    [
      'torn bytes',
      answers({ index: 0, embedding: 'AAAAAAA=' }, { index: 1, embedding: [2] }),
      'sent no vector of finite numbers for text 0',
    ],
    [
      'different lengths',
      answers({ index: 0, embedding: [1, 2] }, { index: 1, embedding: [2] }),
      'sent a vector of 1 numbers where 2 were expected',
    ],
    ['a web page', sends('text/html', '<html>'), 'sent something that is not JSON'],
    ['a flood', sends('application/json', `"${'x'.repeat(2_097_152)}"`), 'sent more than 2097152 bytes'],
  ])('refuses %s', async (_, behaviour, message) => {
    expect(await failureOf(behaviour)).toMatchObject({
      name: 'MemoryError',
      code: 'upstream',
      message: expect.stringMatching(
        new RegExp(
          `^http://127.0.0.1:\\d+/v1/embeddings ${message}. Check that the address and the model are those of an embedder.$`,
        ),
      ),
    })
  })

  it('refuses vectors of another length than it asked for', async () => {
    const error = await failureOf(answers({ index: 0, embedding: [1, 2, 3] }), ['a'], { dimensions: 2 })
    expect(error.message).toContain('sent a vector of 3 numbers where 2 were expected')
  })

  it.each([
    ['a key that is refused', refuses(401), 'refused the key (HTTP 401). Check apiKey.'],
    [
      'a model it does not know',
      refuses(404),
      'knows no model "test" or no such address (HTTP 404). Check the model name and baseUrl.',
    ],
    [
      'an error inside a success',
      sends('application/json', '{"error":{"type":"overloaded"}}'),
      'reported an error (overloaded)',
    ],
    ['a connection that breaks', { does: 'drop', pieces: [] }, 'broke off in the middle of the reply'],
  ] as const)('says what to do about %s', async (_, behaviour, message) => {
    const error = await failureOf(behaviour, ['SECRET text'], { apiKey: 'SECRET-key' })
    expect(error).toMatchObject({ name: 'MemoryError', code: 'upstream', message: expect.stringContaining(message) })
    expect(everythingIn(error)).not.toContain('SECRET')
  })

  it('gives up on a server that is silent', async () => {
    const error = await failureOf({ does: 'hang' }, ['a'], { timeouts: { first: 30 } })
    expect(error).toMatchObject({ code: 'timeout', message: expect.stringContaining('did not answer within 30 ms') })
  })

  it('asks again when the server is busy', async () => {
    await using upstream = await startUpstream([refuses(503), refuses(429), answers({ index: 0, embedding: [1] })])
    const pauses: number[] = []
    const embedder = embedderAt(upstream, { wait: async (ms) => void pauses.push(ms) })
    expect(await embedder.embed(['a'])).toEqual([Float32Array.of(1)])
    expect(pauses).toEqual([500, 1_500])
  })

  it('stops when the caller does', async () => {
    const stop = new AbortController()
    await using upstream = await startUpstream(() => {
      stop.abort()
      return { does: 'hang' }
    })
    await expect(embedderAt(upstream).embed(['a'], stop.signal)).rejects.toMatchObject({ code: 'aborted' })
    expect(await upstream.requests[0]?.over).toBe('hung up')
  })

  it.each([
    ['words', 'The cat sat on the mat. ', 20_000],
    ['characters of many bytes', '猫は\u{1F469}\u200D\u{1F680}と', 4_000],
  ])('embeds the beginning of a text of too many %s, whole characters of it', async (_, text, repeats) => {
    await using upstream = await startUpstream(measures)
    const long = text.repeat(repeats)
    await embedderAt(upstream).embed([long, 'short'])
    const [cut, short] = (upstream.requests[0] as Received).body.input as [string, string]
    const { count } = await exactTokenizer('cl100k_base')
    expect([count(long) > 8_192, count(cut) <= 8_000, short]).toEqual([true, true, 'short'])
    expect(long.startsWith(cut)).toBe(true)
    const segments = [...new Intl.Segmenter('en', { granularity: 'grapheme' }).segment(long.slice(0, cut.length + 16))]
    expect(segments.some(({ index }) => index === cut.length)).toBe(true)
    expect(cut.length).toBeGreaterThan(2_000)
  })

  it('sends no half characters', async () => {
    await using upstream = await startUpstream(measures)
    await embedderAt(upstream).embed(['cut \ud83d'])
    expect(upstream.requests[0]?.body.input).toEqual(['cut \ufffd'])
  })

  it.each([0, 1.5, Number.NaN])('refuses %d dimensions', (dimensions) => {
    const message = `dimensions is ${dimensions}; it must be a whole number, 1 or more.`
    expect(() => openaiEmbedder({ model: 'test', dimensions })).toThrow(
      expect.objectContaining({ code: 'bad-option', param: 'dimensions', message }),
    )
  })
})
