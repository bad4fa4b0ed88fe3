import type { Command } from 'commander'
import type { ProviderSettings } from '../../providers/provider.ts'
import { type Environment, readOption } from '../options.ts'
import { option } from '../terminal/help.ts'

export type ProviderFlags = { readonly provider?: string; readonly model?: string; readonly upstream?: string }

const apiKeyVariables: Readonly<Record<string, string>> = {
  openai: 'OPENAI_API_KEY',
  anthropic: 'ANTHROPIC_API_KEY',
  gemini: 'GEMINI_API_KEY',
  xai: 'XAI_API_KEY',
}

/** Environment variables of API keys with their meaning, for the help. */
export const apiKeyHelp: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(apiKeyVariables).map(([provider, name]) => [name, `API key of the provider ${provider}`]),
)

/** Adds the options that choose a model; `fallback` is the choice without them. */
export const addProviderOptions = (command: Command, fallback: string): Command =>
  command
    .addOption(option('--provider <name>', 'openai, anthropic, gemini, xai, local or offline', { fallback }))
    .addOption(option('--model <name>', 'model name', { fallback: "the provider's default" }))
    .addOption(
      option('--upstream <url>', "base URL of the provider's server", {
        env: ['THREADKEEP_UPSTREAM', 'OPENAI_BASE_URL'],
        fallback: "the provider's",
      }),
    )

/** Returns the settings of the model that flags and environment choose; undefined if they choose none. */
export function selectProvider(flags: ProviderFlags, environment: Environment): ProviderSettings | undefined {
  const upstream = readOption(flags.upstream, environment, 'THREADKEEP_UPSTREAM', 'OPENAI_BASE_URL')
  const provider = flags.provider ?? (upstream === undefined ? undefined : 'openai')
  if (provider === undefined) return undefined
  const variable = Object.hasOwn(apiKeyVariables, provider) ? apiKeyVariables[provider] : undefined
  return {
    provider,
    model: flags.model,
    // The environment names a server that speaks OpenAI's protocol, so other providers ignore it.
    baseUrl: provider === 'openai' || provider === 'local' ? upstream : flags.upstream,
    apiKey: variable === undefined ? undefined : environment[variable],
  }
}
