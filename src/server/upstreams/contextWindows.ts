import type { Tokens } from '../../domain/entry.ts'

/** Context windows in tokens by model name; a name may end with `*`. */
export type ContextWindows = Readonly<Record<string, Tokens>>

/** Published context windows of model families; the first match counts. */
const publishedWindows: ReadonlyMap<string, Tokens> = new Map([
  ['gpt-5*', 400_000],
  ['gpt-4.1*', 1_047_576],
  ['gpt-4o*', 128_000],
  ['chatgpt-4o*', 128_000],
  ['gpt-4-turbo*', 128_000],
  ['gpt-4-32k*', 32_768],
  ['gpt-4-*preview*', 128_000],
  ['gpt-4*', 8_192],
  ['gpt-3.5*', 16_385],
  ['gpt-oss*', 131_072],
  ['o1-mini*', 128_000],
  ['o1*', 200_000],
  ['o3*', 200_000],
  ['o4*', 200_000],
  ['codex*', 200_000],
  ['claude*', 200_000],
  ['*anthropic.claude*', 200_000],
  ['gemini*', 1_048_576],
  ['gemma-3*', 128_000],
  ['gemma3*', 128_000],
  ['gemma*', 8_192],
  ['grok-4*', 256_000],
  ['grok*', 131_072],
  ['deepseek*', 128_000],
  ['qwen3-coder*', 262_144],
  ['qwen*', 131_072],
  ['llama-4*', 131_072],
  ['llama4*', 131_072],
  ['llama-3.1*', 128_000],
  ['llama-3.2*', 128_000],
  ['llama-3.3*', 128_000],
  ['llama3.*', 128_000],
  ['llama*', 8_192],
  ['mistral-7b*', 32_768],
  ['mixtral*', 32_768],
  ['mistral*', 128_000],
  ['codestral*', 128_000],
  ['devstral*', 128_000],
  ['kimi*', 131_072],
  ['glm*', 128_000],
  ['minimax*', 200_000],
  ['command*', 128_000],
  ['phi-4-mini*', 128_000],
  ['phi4-mini*', 128_000],
  ['phi-4*', 16_384],
  ['phi4*', 16_384],
])

/** Assumed for a model that no table lists: the smallest window of the models that hosts currently offer. */
const unknownModelWindow: Tokens = 128_000

/**
 * Returns the context window of a model. Names may carry a host's prefix, as in `anthropic/claude-sonnet-4`. A
 * configured exact name comes first, then configured patterns, then the published windows.
 *
 * @example
 * contextWindowOf('openai/gpt-4o-mini', {}) // 128_000
 * contextWindowOf('my-model-7b', { 'my-*': 8_192 }) // 8_192
 */
export function contextWindowOf(model: string, configured: ContextWindows): Tokens {
  const name = model.toLowerCase()
  const base = name.slice(name.lastIndexOf('/') + 1)
  const own = new Map(Object.entries(configured).map(([pattern, window]) => [pattern.toLowerCase(), window]))
  return (
    own.get(name) ??
    own.get(base) ??
    findWindow(own, name) ??
    findWindow(own, base) ??
    findWindow(publishedWindows, base) ??
    unknownModelWindow
  )
}

function findWindow(windows: ReadonlyMap<string, Tokens>, name: string): Tokens | undefined {
  for (const [pattern, window] of windows) if (matchesPattern(pattern, name)) return window
  return undefined
}

/** Matches a name with a pattern in which `*` stands for any text. */
function matchesPattern(pattern: string, name: string): boolean {
  const [start = '', ...rest] = pattern.split('*')
  if (rest.length === 0) return name === pattern
  if (!name.startsWith(start)) return false
  let position = start.length
  for (const part of rest.slice(0, -1)) {
    const found = name.indexOf(part, position)
    if (found < 0) return false
    position = found + part.length
  }
  const end = rest.at(-1) ?? ''
  return name.length - position >= end.length && name.endsWith(end)
}
