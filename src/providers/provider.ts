import type { OptionChecks } from '../domain/checkOptions.ts'
import { anyText, anyValue, MemoryError, shortenText } from '../domain/error.ts'
import type { Model } from '../domain/ports.ts'
import { anthropicModel } from './anthropic.ts'
import { geminiModel } from './gemini.ts'
import { offlineModel } from './offline.ts'
import { localModel, type ModelOptions, openaiModel, xaiModel } from './openai.ts'
import { type RequestOptions, requestOptionChecks } from './request.ts'

/** A user's choice of a provider and a model. */
export type ProviderSettings = RequestOptions & {
  /** One of `providerNames`. */
  readonly provider: string
  /** Required for hosted providers unless `baseUrl` is set. */
  readonly apiKey?: string | undefined
  /** Default: the provider's public API; `http://localhost:11434/v1` for `local`. */
  readonly baseUrl?: string | undefined
  /** Default: a current model of the provider. */
  readonly model?: string | undefined
}

/** The provider itself is checked by its name. */
export const providerSettingChecks: OptionChecks<ProviderSettings> = {
  ...requestOptionChecks,
  provider: anyValue,
  apiKey: anyText,
  baseUrl: anyText,
  model: anyText,
}

type Provider = {
  readonly create: (options: ModelOptions) => Model
  readonly defaultModel: string
  /** The environment variable of the key; undefined when the provider needs none. */
  readonly keyVariable?: string
}

const providers: Readonly<Record<string, Provider>> = {
  openai: { create: openaiModel, defaultModel: 'gpt-5.4-mini', keyVariable: 'OPENAI_API_KEY' },
  anthropic: { create: anthropicModel, defaultModel: 'claude-sonnet-5', keyVariable: 'ANTHROPIC_API_KEY' },
  gemini: { create: geminiModel, defaultModel: 'gemini-3.5-flash', keyVariable: 'GEMINI_API_KEY' },
  xai: { create: xaiModel, defaultModel: 'grok-4.3', keyVariable: 'XAI_API_KEY' },
  local: { create: localModel, defaultModel: 'llama3.2' },
  offline: { create: () => offlineModel(), defaultModel: '' },
}

/** Providers that `createModel` supports. */
export const providerNames: readonly string[] = Object.keys(providers)

/**
 * Creates the model that a user's settings name.
 *
 * @throws MemoryError `bad-option` for an unknown provider, a missing key or an invalid `baseUrl`.
 *
 * @example
 * const model = createModel({ provider: 'gemini', apiKey })
 */
export function createModel(settings: ProviderSettings): Model {
  const { provider: name, apiKey, baseUrl, model, timeouts, sleep, maxAttempts } = settings
  const provider = Object.hasOwn(providers, name) ? providers[name] : undefined
  if (provider === undefined) {
    const quoted = JSON.stringify(shortenText(String(name), 80))
    throw new MemoryError('bad-option', `Unknown provider ${quoted}. Use one of: ${providerNames.join(', ')}.`, {
      param: 'provider',
    })
  }
  // A server at a custom base URL may hold the key itself or need none.
  if (provider.keyVariable !== undefined && isUnset(apiKey) && isUnset(baseUrl)) {
    throw new MemoryError(
      'bad-option',
      `apiKey is missing: provider ${name} needs a key. Pass apiKey or set ${provider.keyVariable}.`,
      { param: 'apiKey' },
    )
  }
  return provider.create({
    apiKey,
    baseUrl: isUnset(baseUrl) ? undefined : baseUrl,
    model: isUnset(model) ? provider.defaultModel : model,
    timeouts,
    sleep,
    maxAttempts,
  })
}

const isUnset = (setting: string | undefined): setting is undefined => setting === undefined || setting.trim() === ''
