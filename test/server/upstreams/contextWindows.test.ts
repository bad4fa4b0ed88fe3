import { describe, expect, it } from 'vitest'
import { contextWindowOf } from '../../../src/server/upstreams/contextWindows.ts'

describe('context window of a model', () => {
  it.each([
    ['gpt-4o-mini', 128_000],
    ['openai/gpt-4.1', 1_047_576],
    ['gpt-4-0613', 8_192],
    ['gpt-4-1106-preview', 128_000],
    ['gpt-5.4-mini', 400_000],
    ['claude-sonnet-4-5', 200_000],
    ['us.anthropic.claude-sonnet-4-20250514-v1:0', 200_000],
    ['gemma3:27b', 128_000],
    ['phi-4-mini', 128_000],
    ['something-else', 128_000],
    ['', 128_000],
  ])('%s › is known or assumed', (model, window) => expect(contextWindowOf(model, {})).toBe(window))

  it('in the configuration › comes first, an exact name before a pattern', () => {
    const configured = { 'My-*': 8_192, 'my-model': 4_096, '*-long-*b': 1_000_000, 'gpt-4o*': 64_000 }
    const windows = ['my-model', 'org/my-model', 'org/my-other', 'x-long-7b', 'x-long-7c', 'gpt-4o'].map((model) =>
      contextWindowOf(model, configured),
    )
    expect(windows).toEqual([4_096, 4_096, 8_192, 1_000_000, 128_000, 64_000])
  })
})
