import { describe, expect, it, vi } from 'vitest'
import { openaiEmbedder } from '../../src/providers/embedder.ts'
import { ollamaEmbedder } from '../../src/providers/ollamaEmbedder.ts'
import { createModel, providerNames } from '../../src/providers/provider.ts'
import { verifies } from '../requirements/verifies.ts'
import { collectFailure, collectReply, formatErrorChain } from './collectReply.ts'
import { useFakeTimeouts } from './fakeTimeouts.ts'
import { closedPortUrl, startUpstream } from './upstream.ts'

const known = 'openai, anthropic, gemini, xai, local, offline'

/** Refuses every request, after it was reported, until disposed. */
function stubFetch(onRequest: (url: string | URL | Request) => void): Disposable {
  vi.stubGlobal('fetch', async (url: string | URL | Request) => {
    onRequest(url)
    return new Response('{}', { status: 400 })
  })
  return { [Symbol.dispose]: () => void vi.unstubAllGlobals() }
}

function errorOf(settings: Parameters<typeof createModel>[0]): unknown {
  try {
    return createModel(settings)
  } catch (error) {
    return error
  }
}

describe('createModel', () => {
  verifies('E-15', 'createModel › with each provider name › creates a model that replies', async () => {
    expect(providerNames.join(', ')).toBe(known)
    await using upstream = await startUpstream()
    for (const provider of ['openai', 'anthropic', 'gemini', 'xai', 'local']) {
      const pieces = await collectReply(createModel({ provider, apiKey: 'k', baseUrl: upstream.url, model: 'mine' }))
      expect(pieces).toEqual(['Hello', ' from upstream.'])
    }
    expect(upstream.requests.map((request) => request.path)).toEqual([
      '/v1/chat/completions',
      '/v1/messages',
      '/v1/v1beta/models/mine:streamGenerateContent?alt=sse',
      '/v1/chat/completions',
      '/v1/chat/completions',
    ])
    expect((await collectReply(createModel({ provider: 'offline' }))).join('')).toMatch(
      /No language model is configured/,
    )
  })

  it.each([
    ['openai', 'gpt-5.4-mini'],
    ['anthropic', 'claude-sonnet-5'],
    ['gemini', 'gemini-3.5-flash'],
    ['xai', 'grok-4.3'],
    ['local', 'llama3.2'],
    ['offline', 'threadkeep-offline'],
  ])('with provider %s and no model › uses the default model', (provider, name) => {
    expect(createModel({ provider, apiKey: 'k' }).name).toBe(name)
    expect(createModel({ provider, apiKey: 'k', model: '' }).name).toBe(name)
  })

  it.each(['opneai', 'OpenAI', '', 'constructor', '__proto__'])(
    'with unknown provider %j › throws an error that lists the providers',
    (provider) => {
      expect(errorOf({ provider })).toMatchObject({
        name: 'MemoryError',
        code: 'bad-option',
        param: 'provider',
        message: `Unknown provider ${JSON.stringify(provider)}. Use one of: ${known}.`,
      })
    },
  )

  it.each([
    ['openai', 'OPENAI_API_KEY'],
    ['anthropic', 'ANTHROPIC_API_KEY'],
    ['gemini', 'GEMINI_API_KEY'],
    ['xai', 'XAI_API_KEY'],
  ])('with provider %s and no key › throws an error that names the environment variable', (provider, variable) => {
    for (const apiKey of [undefined, '', ' \n']) {
      expect(errorOf({ provider, apiKey })).toMatchObject({
        code: 'bad-option',
        param: 'apiKey',
        message: `apiKey is missing: provider ${provider} needs a key. Pass apiKey or set ${variable}.`,
      })
    }
  })

  verifies(
    'E-15',
    'createModel › without baseUrl › calls the public API of the provider, or the local server',
    async () => {
      const urls: string[] = []
      using _ = stubFetch((url) => urls.push(String(url)))
      for (const provider of ['openai', 'anthropic', 'gemini', 'xai', 'local'])
        await collectFailure(createModel({ provider, apiKey: 'k', model: 'mine', maxAttempts: 1 }))
      await collectFailure(
        createModel({ provider: 'openai', apiKey: 'k', model: 'mine', baseUrl: ' ', maxAttempts: 1 }),
      )
      expect(urls).toEqual([
        'https://api.openai.com/v1/chat/completions',
        'https://api.anthropic.com/v1/messages',
        'https://generativelanguage.googleapis.com/v1beta/models/mine:streamGenerateContent?alt=sse',
        'https://api.x.ai/v1/chat/completions',
        'http://localhost:11434/v1/chat/completions',
        'https://api.openai.com/v1/chat/completions',
      ])
    },
  )

  verifies(
    'E-15',
    'openaiEmbedder and ollamaEmbedder › without baseUrl › call the public API or the local server',
    async () => {
      const urls: string[] = []
      using _ = stubFetch((url) => urls.push(String(url)))
      const options = { model: 'mine', dimensions: 3, maxAttempts: 1 }
      for (const embedder of [openaiEmbedder({ ...options, apiKey: 'k' }), ollamaEmbedder(options)])
        await expect(embedder.embed(['hello'])).rejects.toThrow()
      expect(urls).toEqual(['https://api.openai.com/v1/embeddings', 'http://localhost:11434/api/embed'])
    },
  )

  it('with a local server or a custom baseUrl › needs no key', async () => {
    expect(createModel({ provider: 'local' }).name).toBe('llama3.2')
    await using upstream = await startUpstream()
    expect(await collectReply(createModel({ provider: 'openai', baseUrl: upstream.url }))).toEqual([
      'Hello',
      ' from upstream.',
    ])
    expect(upstream.requests[0]?.headers.authorization).toBeUndefined()
  })

  it('with credentials in baseUrl › throws an error that does not quote them', () => {
    for (const provider of ['openai', 'anthropic', 'gemini', 'xai', 'local']) {
      const error = errorOf({ provider, apiKey: 'k', baseUrl: 'https://me:SECRET@example.com' })
      expect(error).toMatchObject({ code: 'bad-option', param: 'baseUrl' })
      expect(formatErrorChain(error)).not.toMatch(/SECRET@/)
    }
  })

  it('with timeouts › applies them to requests', async () => {
    using clock = useFakeTimeouts()
    await using upstream = await startUpstream(() => {
      clock.advance(30)
      return { does: 'hang' }
    })
    const { error } = await collectFailure(
      createModel({ provider: 'local', baseUrl: upstream.url, timeouts: { firstByte: 30 } }),
    )
    expect(error.code).toBe('timeout')
  })

  it('with a local server that is down › throws an error that names the setting to check', async () => {
    const baseUrl = await closedPortUrl()
    const { error } = await collectFailure(createModel({ provider: 'local', baseUrl }))
    expect(error.message).toBe(
      `No answer from ${baseUrl}/chat/completions (ECONNREFUSED). Is the server running? Check --upstream or OPENAI_BASE_URL.`,
    )
  })
})
