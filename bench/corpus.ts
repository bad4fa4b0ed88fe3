import { decode } from 'gpt-tokenizer/encoding/o200k_base'
import type { Said } from '../src/domain/entry.ts'
import { type Key, parseKey } from '../src/domain/key.ts'
import type { Store } from '../src/domain/ports.ts'
import { type Change, never } from '../src/domain/session.ts'

/** Some 20,000 English words, the commonest first. */
export const vocabulary = Array.from({ length: 85_000 }, (_, token) => decode([token + 256])).flatMap((text) =>
  /^ [a-z]{3,12}$/.test(text) ? [text.slice(1)] : [],
)

/** Numbers from 0 to 1 that are the same in every run. */
export function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 4_294_967_296
    return state / 4_294_967_296
  }
}

/** Sentences of 10 to 40 words, each word as common as its rank makes it (Zipf). */
export function sentences(count: number, seed = 42): string[] {
  const random = seeded(seed)
  const word = (): string => vocabulary[Math.floor(vocabulary.length ** random()) - 1] as string
  return Array.from(
    { length: count },
    () => `${Array.from({ length: 10 + Math.floor(random() * 31) }, word).join(' ')}.`,
  )
}

/** A message as a store takes it; `place` is its place in the conversation. */
export function spoken(content: string, place: number): Said {
  const tokens = Math.ceil(content.length / 4)
  return {
    at: place * 60_000,
    role: place % 2 === 0 ? 'user' : 'assistant',
    content,
    tokens,
    lineTokens: tokens,
    tokenizer: 'estimate',
    weight: tokens,
  }
}

export const changeOf = (key: Key, id: string, append: readonly Said[]): Change => ({
  key,
  id,
  at: append.at(-1)?.at ?? 0,
  epoch: 0,
  append,
  put: [],
  drop: [],
  expiresAt: never,
})

export const scope = 'bench'
export const sessionKey = (session: number): Key => parseKey(`${scope}:s${session}`)

/** Writes so many sessions of so many messages each, the sentences in order and from the start again when they end. */
export async function fill(store: Store, sessions: number, each: number, texts: readonly string[]): Promise<void> {
  for (let from = 0; from < sessions; from += 8) {
    const some = Array.from({ length: Math.min(8, sessions - from) }, (_, at) => from + at)
    await Promise.all(
      some.map((session) => {
        const append = Array.from({ length: each }, (_, place) =>
          spoken(texts[(session * each + place) % texts.length] as string, place),
        )
        return store.commit(changeOf(sessionKey(session), `fill${session}`, append))
      }),
    )
  }
}
