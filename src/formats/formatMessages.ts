import type { LazyContext } from '../context/composeContext.ts'
import { copyMessages } from '../context/entryText.ts'
import type { Provider } from '../domain/ledger.ts'
import { toAiSdkContext } from './aiSdk.ts'
import { toAnthropicContext, toOpenAIMessages } from './originals.ts'

/** True for the name of a format, and for none. */
export const isProvider = (value: unknown): boolean =>
  [undefined, 'openai', 'anthropic', 'ai-sdk'].includes(value as Provider)

/** Converts messages to the format of an SDK; without a provider, to text in OpenAI's format. */
export function formatMessages(messages: LazyContext['messages'], provider: Provider | undefined) {
  if (provider === 'anthropic') return toAnthropicContext(messages)
  if (provider === 'ai-sdk') return toAiSdkContext(messages)
  return { messages: provider === 'openai' ? toOpenAIMessages(messages) : copyMessages(messages) }
}
