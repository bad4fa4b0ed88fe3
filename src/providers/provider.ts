import { MemoryError } from '../domain/error.ts'
import type { Model } from '../domain/ports.ts'
import { anthropicModel } from './anthropic.ts'
import { geminiModel } from './gemini.ts'
import { offlineModel } from './offline.ts'
import { type Access, localModel, openaiModel, xaiModel } from './openai.ts'
import type { Manner } from './request.ts'

/** What a user sets to choose a model. */
export type ProviderSettings = Manner & {
  readonly provider: string
  readonly apiKey?: string | undefined
  readonly baseUrl?: string | undefined
  readonly model?: string | undefined
}

/** A provider as data: how to make its model, which one if none is named, and where its key is found (not every one needs one). */
type Kind = { readonly make: (access: Access) => Model; readonly model: string; readonly key?: string }

const kinds: Readonly<Record<string, Kind>> = {
  openai: { make: openaiModel, model: 'gpt-5.4-mini', key: 'OPENAI_API_KEY' },
  anthropic: { make: anthropicModel, model: 'claude-sonnet-5', key: 'ANTHROPIC_API_KEY' },
  gemini: { make: geminiModel, model: 'gemini-3.5-flash', key: 'GEMINI_API_KEY' },
  xai: { make: xaiModel, model: 'grok-4.3', key: 'XAI_API_KEY' },
  local: { make: localModel, model: 'llama3.2' },
  offline: { make: offlineModel, model: '' },
}

/** The names `modelFrom` knows. */
export const providerNames: readonly string[] = Object.keys(kinds)

/**
 * The model a user's settings name.
 *
 * @example
 * const model = modelFrom({ provider: 'gemini', apiKey })
 */
export function modelFrom(settings: ProviderSettings): Model {
  const { provider, apiKey, baseUrl, timeouts, wait } = settings
  const kind = Object.hasOwn(kinds, provider) ? kinds[provider] : undefined
  if (kind === undefined) {
    throw new MemoryError(
      'bad-option',
      `provider ${JSON.stringify(String(provider).slice(0, 80))} is unknown. Known ones: ${providerNames.join(', ')}.`,
      {
        param: 'provider',
      },
    )
  }
  // A server at an address of one's own may hold the key itself or need none.
  if (kind.key !== undefined && isUnset(apiKey) && isUnset(baseUrl)) {
    throw new MemoryError(
      'bad-option',
      `apiKey is missing: provider ${provider} needs a key. Pass apiKey or set ${kind.key}.`,
      { param: 'apiKey' },
    )
  }
  const model = isUnset(settings.model) ? kind.model : settings.model
  return kind.make({ apiKey, baseUrl: isUnset(baseUrl) ? undefined : baseUrl, model, timeouts, wait })
}

const isUnset = (setting: string | undefined): setting is undefined => setting === undefined || setting.trim() === ''
