import { replaceLoneSurrogates } from '../domain/chat.ts'
import { checkOptions } from '../domain/checkOptions.ts'
import type { Embedder } from '../domain/ports.ts'
import { getArray } from '../text/json.ts'
import { type EmbedderOptions, embedderOptionChecks } from './embedder.ts'
import type { SettingNames } from './errors.ts'
import { post } from './request.ts'
import { buildEndpointUrl } from './url.ts'
import { checkDimensions, createHeaders, parseVectors, readVectorJson } from './vectors.ts'

const settings: SettingNames = { baseUrl: 'baseUrl', apiKey: 'the key the server was started with' }

/**
 * Creates an embedder that uses Ollama's own API, which cuts long texts to what the model reads. The default address is
 * `http://localhost:11434`; no key is needed.
 *
 * @throws MemoryError `bad-option` for invalid `dimensions` or `baseUrl`. `embed` throws `upstream`, `timeout` or
 * `aborted`.
 *
 * @example
 * const memory = await openMemory({ embedder: ollamaEmbedder({ model: 'nomic-embed-text' }) })
 */
export function ollamaEmbedder(options: EmbedderOptions): Embedder {
  checkOptions<EmbedderOptions>('ollamaEmbedder', options, embedderOptionChecks)
  const { model, dimensions, weight } = options
  checkDimensions(dimensions)
  // The address of Ollama's OpenAI-compatible API, which ends in /v1, is accepted too.
  const url = buildEndpointUrl(options.baseUrl ?? 'http://localhost:11434', '/api/embed', '/v1')
  const headers = createHeaders(options)
  return {
    name: `ollama:${model}${dimensions === undefined ? '' : `@${dimensions}`}`,
    ...(weight !== undefined && { weight }),
    async embed(texts, signal) {
      if (texts.length === 0) return []
      const body = { model, input: texts.map(replaceLoneSurrogates), truncate: true, dimensions }
      const response = await post(url, { ...options, headers, body, settings, signal })
      const items = getArray(await readVectorJson(response, texts.length), 'embeddings')
      const embeddings = items.map((embedding, index) => [index, embedding] as const)
      return parseVectors(embeddings, { count: texts.length, dimensions, url: response.url })
    },
  }
}
