import { replaceLoneSurrogates } from '../domain/chat.ts'
import { checkOptions, type OptionChecks } from '../domain/checkOptions.ts'
import { anyValue, share } from '../domain/error.ts'
import type { Embedder } from '../domain/ports.ts'
import { clip } from '../text/clip.ts'
import { getArray, getPath } from '../text/json.ts'
import { upperBound } from '../text/upperBound.ts'
import type { SettingNames } from './errors.ts'
import { type ModelOptions, modelOptionChecks } from './openai.ts'
import { post } from './request.ts'
import { buildEndpointUrl } from './url.ts'
import { checkDimensions, createHeaders, parseVectors, readVectorJson } from './vectors.ts'

/** Connection to an embedding model. */
export type EmbedderOptions = ModelOptions & {
  /** Requests vectors of this length, for models that support it. Default: the model's own length. */
  readonly dimensions?: number | undefined
  /** Share of the embedder in rankings, from 0 to 1. Default: 0.2. */
  readonly weight?: number | undefined
}

/** `checkDimensions` checks the dimensions. */
export const embedderOptionChecks: OptionChecks<EmbedderOptions> = {
  ...modelOptionChecks,
  dimensions: anyValue,
  weight: share(true),
}

/** OpenAI's models reject texts of more than 8,192 tokens. */
const maxTextTokens = 8_000
/** Length difference at which the search for the cut stops: counting tokens costs more than a few characters gain. */
const cutPrecisionChars = 64
const settings: SettingNames = { baseUrl: 'baseUrl', apiKey: 'apiKey' }

/**
 * Creates an embedder that uses OpenAI's embeddings API, at OpenAI or at a compatible server such as llama.cpp or vLLM.
 * Texts of more than 8,000 tokens are cut.
 *
 * @throws MemoryError `bad-option` for invalid `dimensions` or `baseUrl`. `embed` throws `upstream`, `timeout` or
 * `aborted`.
 *
 * @example
 * const memory = await openMemory({ embedder: openaiEmbedder({ apiKey, model: 'text-embedding-3-small' }) })
 */
export function openaiEmbedder(options: EmbedderOptions): Embedder {
  checkOptions<EmbedderOptions>('openaiEmbedder', options, embedderOptionChecks)
  const { model, dimensions, weight } = options
  checkDimensions(dimensions)
  const url = buildEndpointUrl(options.baseUrl ?? 'https://api.openai.com/v1', '/embeddings')
  const headers = createHeaders(options)
  return {
    name: dimensions === undefined ? model : `${model}@${dimensions}`,
    ...(weight !== undefined && { weight }),
    async embed(texts, signal) {
      if (texts.length === 0) return []
      const body = { model, input: texts.map((text) => cutToLimit(replaceLoneSurrogates(text))), dimensions }
      const response = await post(url, { ...options, headers, body, settings, signal })
      const items = getArray(await readVectorJson(response, texts.length), 'data')
      const embeddings = items.map(
        (item, index) => [getPath(item, 'index') ?? index, getPath(item, 'embedding')] as const,
      )
      return parseVectors(embeddings, { count: texts.length, dimensions, url: response.url })
    },
  }
}

/** Cuts a text to the token limit without splitting a character. */
function cutToLimit(text: string): string {
  const fits = (part: string): boolean => upperBound.count(part) <= maxTextTokens
  if (fits(text)) return text
  let fitting = 0
  let tooLong = text.length
  while (tooLong - fitting > cutPrecisionChars) {
    const middle = (fitting + tooLong) >> 1
    if (fits(clip(text, middle, ''))) fitting = middle
    else tooLong = middle
  }
  return clip(text, fitting, '')
}
