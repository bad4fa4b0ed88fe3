import { decode } from 'gpt-tokenizer/encoding/o200k_base'
import type { NewMessage } from '../src/domain/entry.ts'
import { type Key, parseKey } from '../src/domain/key.ts'
import type { Store } from '../src/domain/ports.ts'
import { noExpiry, type SessionChange } from '../src/domain/session.ts'

/** About 20,000 English words, most frequent first. */
export const vocabulary = Array.from({ length: 85_000 }, (_, token) => decode([token + 256])).flatMap((text) =>
  /^ [a-z]{3,12}$/.test(text) ? [text.slice(1)] : [],
)

/** Creates a deterministic generator of numbers from 0 to 1. */
export function createRandom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 4_294_967_296
    return state / 4_294_967_296
  }
}

/** Creates sentences of 10 to 40 words with Zipf-distributed word frequencies. */
export function createSentences(count: number, seed = 42): string[] {
  const random = createRandom(seed)
  const word = (): string => vocabulary[Math.floor(vocabulary.length ** random()) - 1] as string
  return Array.from(
    { length: count },
    () => `${Array.from({ length: 10 + Math.floor(random() * 31) }, word).join(' ')}.`,
  )
}

/** Creates a message in the form that a store accepts; `index` is its position in the conversation. */
export function createMessage(content: string, index: number): NewMessage {
  const tokens = Math.ceil(content.length / 4)
  return {
    at: index * 60_000,
    role: index % 2 === 0 ? 'user' : 'assistant',
    content,
    tokens,
    lineTokens: tokens,
    tokenizer: 'estimate',
    weight: tokens,
  }
}

export const createChange = (key: Key, id: string, append: readonly NewMessage[]): SessionChange => ({
  key,
  id,
  at: append.at(-1)?.at ?? 0,
  epoch: 0,
  append,
  put: [],
  drop: [],
  expiresAt: noExpiry,
})

export const scope = 'bench'
export const benchKey = (session: number): Key => parseKey(`${scope}:s${session}`)

/** Writes sessions with `messagesEach` messages, cycling through the texts. */
export async function fillStore(
  store: Store,
  sessions: number,
  messagesEach: number,
  texts: readonly string[],
): Promise<void> {
  for (let from = 0; from < sessions; from += 8) {
    const batch = Array.from({ length: Math.min(8, sessions - from) }, (_, offset) => from + offset)
    await Promise.all(
      batch.map((session) => {
        const append = Array.from({ length: messagesEach }, (_, index) =>
          createMessage(texts[(session * messagesEach + index) % texts.length] as string, index),
        )
        return store.commit(createChange(benchKey(session), `fill${session}`, append))
      }),
    )
  }
}
