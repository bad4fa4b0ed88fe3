import type { Fact, Message, NewMessage } from '../../domain/entry.ts'
import { type ErrorCode, MemoryError } from '../../domain/error.ts'
import { parseKey } from '../../domain/key.ts'
import type { IndexChanges, SearchIndex, Store } from '../../domain/ports.ts'
import { noExpiry, type SessionChange } from '../../domain/session.ts'

/** Checks by name; each throws if the store violates the port's contract. */
export type ConformanceChecks = Readonly<Record<string, (store: Store & SearchIndex) => Promise<void>>>

export const key = parseKey('acme:ann')
export const otherSession = parseKey('acme:bob')
export const otherScope = parseKey('zeta:ann')

export const newMessage = (content: string, overrides: Partial<NewMessage> = {}): NewMessage => ({
  at: 1_000,
  role: 'user',
  content,
  tokens: 5,
  lineTokens: 5,
  tokenizer: 'test',
  weight: 5,
  ...overrides,
})
export const newChange = (id: string, overrides: Partial<SessionChange> = {}): SessionChange => ({
  id,
  key,
  at: 1_000,
  epoch: 0,
  append: [],
  put: [],
  drop: [],
  expiresAt: noExpiry,
  ...overrides,
})
export const newFact = (id: string, value: string): Fact => ({
  kind: 'fact',
  id,
  at: 1_000,
  field: 'important_facts',
  key: '',
  value,
  importance: 5,
  sources: [{ message: 'm1' }],
})

export const contentOf = (message: Message): string => message.content
export const summarizeMessage = (message: Message): string =>
  `${message.id} ${message.sequence} ${message.offset} ${message.content}`
export const formatKeys = (listed: readonly { key: { scope: string; id: string } }[]): string[] =>
  listed.map(({ key: { scope, id } }) => `${scope}:${id}`)

export function expectEqual(actual: unknown, expected: unknown): void {
  const [a, b] = [canonicalJson(actual), canonicalJson(expected)]
  if (a !== b) throw new Error(`expected ${b}\n but got ${a}`)
}

/** Serializes plain data independently of the order of fields. */
function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner === undefined
        ? null
        : inner,
  )
}

export async function expectRejection(code: ErrorCode, attempt: Promise<unknown>): Promise<void> {
  const outcome = await attempt.then(
    () => 'accepted',
    (error: unknown) => (error instanceof MemoryError ? error.code : String(error)),
  )
  expectEqual(outcome, code)
}

/** Reads changes until they are not listed again: a store may repeat them while other transactions run. */
export async function readSettledChanges(store: SearchIndex, since: number): Promise<IndexChanges> {
  const endsAt = Date.now() + 10_000
  for (;;) {
    const changes = await store.changesSince({ scope: 'acme' }, since)
    const later = await store.changesSince({ scope: 'acme' }, changes.stamp)
    if (later.sessions.length === 0 || Date.now() > endsAt) return changes
  }
}
