import { MemoryError, shortenText } from '../domain/error.ts'
import type { Embedder } from '../domain/ports.ts'
import { openaiEmbedder } from './embedder.ts'
import { ollamaEmbedder } from './ollamaEmbedder.ts'
import { transformersEmbedder } from './transformersEmbedder.ts'
import { buildEndpointUrl } from './url.ts'

/** An embedder as users name it in a configuration or a flag. */
export type EmbedderName = {
  readonly provider: 'openai' | 'ollama' | 'transformers'
  readonly model: string
  /** Base URL of the server; for `transformers` the folder of the models. */
  readonly location: string | undefined
}

type Environment = Readonly<Record<string, string | undefined>>

/** Describes valid names in errors and help. */
export const embedderForms =
  'ollama:MODEL, ollama:MODEL@URL, openai:MODEL, openai:MODEL@URL, transformers:MODEL or transformers:MODEL@FOLDER'

/**
 * Parses the name of an embedder; undefined for anything else. A URL must not contain a key, so it has neither a user
 * name nor a query.
 *
 * @example
 * parseEmbedderName('ollama:nomic-embed-text')
 * parseEmbedderName('openai:bge-m3@http://localhost:8000/v1')
 * parseEmbedderName('transformers:Xenova/all-MiniLM-L6-v2@/srv/models')
 */
export function parseEmbedderName(text: string): EmbedderName | undefined {
  const [, provider, model, location] = /^(openai|ollama|transformers):([^\s@]+)(?:@(\S.*))?$/.exec(text.trim()) ?? []
  if (provider === undefined || model === undefined) return undefined
  if (provider !== 'transformers' && location !== undefined && !isPlainUrl(location)) return undefined
  return { provider: provider as EmbedderName['provider'], model, location }
}

function isPlainUrl(text: string): boolean {
  try {
    return buildEndpointUrl(text, '').search === ''
  } catch {
    return false
  }
}

/**
 * Creates the embedder with a name. Keys come from the environment: `OPENAI_API_KEY` is sent to OpenAI only,
 * `THREADKEEP_EMBEDDER_KEY` to any server.
 *
 * @throws MemoryError `bad-option` for an invalid name or a missing key.
 *
 * @example
 * const memory = await openMemory({ embedder: createEmbedder('ollama:nomic-embed-text', process.env) })
 */
export function createEmbedder(name: string, environment: Environment): Embedder {
  const parsed = parseEmbedderName(name)
  // A malformed address may contain a password, so it is not repeated.
  if (parsed === undefined)
    throw optionError(
      `embedder is ${JSON.stringify(shortenText(name.replace(/@.*/s, '@…'), 60))}; it must be ${embedderForms}.`,
    )
  const { provider, model, location } = parsed
  const apiKey = readVariable(environment, 'THREADKEEP_EMBEDDER_KEY')
  if (provider === 'ollama') return ollamaEmbedder({ model, baseUrl: location, apiKey })
  if (provider === 'openai' && location !== undefined) return openaiEmbedder({ model, baseUrl: location, apiKey })
  if (provider === 'openai') return openaiEmbedder({ model, apiKey: apiKey ?? requireOpenaiKey(environment) })
  const allowDownload = readVariable(environment, 'THREADKEEP_MODEL_DOWNLOAD')
  if (![undefined, 'true', 'false'].includes(allowDownload))
    throw optionError(`THREADKEEP_MODEL_DOWNLOAD is ${JSON.stringify(allowDownload)}; it must be true or false.`)
  return transformersEmbedder({ model, localModelPath: location, allowDownload: allowDownload === 'true' })
}

function requireOpenaiKey(environment: Environment): string {
  const key = readVariable(environment, 'OPENAI_API_KEY')
  if (key !== undefined) return key
  throw optionError(
    'The embedder needs a key of OpenAI. Set OPENAI_API_KEY, or name another server: openai:MODEL@http://localhost:8000/v1.',
  )
}

function readVariable(environment: Environment, name: string): string | undefined {
  const value = environment[name]?.trim()
  return value === '' ? undefined : value
}

const optionError = (message: string): MemoryError => new MemoryError('bad-option', message, { param: 'embedder' })
