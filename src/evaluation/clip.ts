import type { DatasetMessage } from './dataset.ts'

/** Clips a text to its first tokens. */
export function clipToStart(text: string, tokens: number, countTokens: (text: string) => number): string {
  let cut = text.slice(0, tokens * 6)
  while (countTokens(cut) > tokens) cut = cut.slice(0, Math.floor(cut.length * 0.95))
  return cut
}

/** Clips a text to its last tokens. */
export function clipToEnd(text: string, tokens: number, countTokens: (text: string) => number): string {
  let cut = text.slice(-tokens * 6)
  while (countTokens(cut) > tokens) cut = cut.slice(Math.ceil(cut.length * 0.03))
  return cut
}

export const joinTexts = (messages: readonly Pick<DatasetMessage, 'text'>[]): string =>
  messages.map(({ text }) => text).join('\n')
