import type { Fact, Message, Said } from '../../domain/entry.ts'
import { type ErrorCode, MemoryError } from '../../domain/error.ts'
import { parseKey } from '../../domain/key.ts'
import type { Index, Store } from '../../domain/ports.ts'
import { type Change, never } from '../../domain/session.ts'

/** Promises by what they say, each a check that throws when a store breaks it. */
export type Checks = Readonly<Record<string, (store: Store & Index) => Promise<void>>>

export const key = parseKey('acme:ann')
export const other = parseKey('acme:bob')
export const foreign = parseKey('zeta:ann')

export const said = (content: string, more: Partial<Said> = {}): Said => ({
  at: 1_000,
  role: 'user',
  content,
  tokens: 5,
  lineTokens: 5,
  tokenizer: 'test',
  weight: 5,
  ...more,
})
export const change = (id: string, more: Partial<Change> = {}): Change => ({
  id,
  key,
  at: 1_000,
  epoch: 0,
  append: [],
  put: [],
  drop: [],
  expiresAt: never,
  ...more,
})
export const fact = (id: string, value: string): Fact => ({
  kind: 'fact',
  id,
  at: 1_000,
  field: 'important_facts',
  key: '',
  value,
  importance: 5,
  sources: [{ message: 'm1' }],
})

export const content = (message: Message): string => message.content
export const outline = (message: Message): string =>
  `${message.id} ${message.sequence} ${message.offset} ${message.content}`
export const names = (listed: readonly { key: { scope: string; id: string } }[]): string[] =>
  listed.map((one) => `${one.key.scope}:${one.key.id}`)

export function same(actual: unknown, expected: unknown): void {
  const [a, b] = [canonical(actual), canonical(expected)]
  if (a !== b) throw new Error(`expected ${b}\n but got ${a}`)
}

/** Plain data as text that does not depend on the order of fields. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner === undefined
        ? null
        : inner,
  )
}

export async function refused(code: ErrorCode, attempt: Promise<unknown>): Promise<void> {
  const outcome = await attempt.then(
    () => 'accepted',
    (error: unknown) => (error instanceof MemoryError ? error.code : String(error)),
  )
  same(outcome, code)
}
