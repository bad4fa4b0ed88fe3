import type { Fact } from '../../src/domain/entry.ts'
import { MemoryError } from '../../src/domain/error.ts'
import { parseKey } from '../../src/domain/key.ts'
import type { Index, Store } from '../../src/domain/ports.ts'
import { type Change, never } from '../../src/domain/session.ts'
import { type Memory, openMemory } from '../../src/index.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { chars4 } from '../../src/text/estimators.ts'
import type { Place } from './journal.ts'
import { type Operation, textOf } from './operations.ts'

/** A memory with the store it is kept in: what a memory does not offer yet goes through the store. */
export type Opened = { readonly memory: Memory; readonly store: Store & Index }

export async function openFile(file: string, onWarning?: (warning: string) => void): Promise<Opened> {
  const store = sqliteStore(file, onWarning === undefined ? {} : { onWarning })
  return { store, memory: await openMemory({ store, tokenizer: chars4 }) }
}

/** Does an operation, for the first time or again; where its messages stand. */
export async function perform({ memory, store }: Opened, operation: Operation): Promise<readonly Place[]> {
  const { id, session } = operation
  if (operation.does === 'forget') await memory.forget({ key: session })
  else if (operation.does === 'drop') await memory.forget({ key: session, messageId: operation.message })
  else if (operation.does === 'count') await countUp(store, operation)
  else {
    const texts = Array.from({ length: operation.messages }, (_, place) => textOf(id, place))
    const stored = operation.learns
      ? await learn(store, operation, texts)
      : await memory.append(
          session,
          texts.map((content, place) => ({ role: place % 2 === 0 ? 'user' : 'assistant', content })),
          { operationId: id },
        )
    return stored.map(({ sequence, offset, weight }) => ({ sequence, offset, weight }))
  }
  return []
}

async function learn(store: Store, operation: Operation, texts: readonly string[]) {
  const { epoch } = await store.head(parseKey(operation.session), 0)
  const append = texts.map((content) => ({
    at: 1_000,
    role: 'user' as const,
    content,
    tokens: 5,
    lineTokens: 5,
    tokenizer: 'none',
    weight: content.length,
  }))
  return store.commit({ ...changeOf(operation, epoch), append, put: [factOf(operation.id, textOf(operation.id, 0))] })
}

async function countUp(store: Store, operation: Operation): Promise<void> {
  for (;;) {
    const { epoch, revision, derived } = await store.head(parseKey(operation.session), 0)
    const [before] = derived as readonly Fact[]
    const put = [factOf('count', Number(before?.value ?? 0) + 1)]
    try {
      await store.commit({ ...changeOf(operation, epoch), base: revision, put })
      return
    } catch (error) {
      if (!(error instanceof MemoryError) || error.code !== 'conflict') throw error
    }
  }
}

const changeOf = ({ id, session }: Operation, epoch: number): Change => ({
  id,
  key: parseKey(session),
  at: 1_000,
  epoch,
  append: [],
  put: [],
  drop: [],
  expiresAt: never,
})

const factOf = (id: string, value: string | number): Fact => ({
  kind: 'fact',
  id,
  at: 1_000,
  field: 'any',
  key: '',
  value,
  importance: 1,
  sources: [],
})
