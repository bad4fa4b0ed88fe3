import { randomBytes } from 'node:crypto'
import { existsSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Fact, Message } from '../../src/domain/entry.ts'
import { MemoryError } from '../../src/domain/error.ts'
import { parseKey } from '../../src/domain/key.ts'
import type { SearchIndex, Store } from '../../src/domain/ports.ts'
import { noExpiry, type SessionChange } from '../../src/domain/session.ts'
import { type Memory, openMemory } from '../../src/index.ts'
import { loadKeyring } from '../../src/stores/encrypted/loadKeyring.ts'
import { encryptedStore } from '../../src/stores/encrypted.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { chars4 } from '../../src/text/estimators.ts'
import type { Position } from './journal.ts'
import {
  importedMessages,
  importedScope,
  importedSuffix,
  messageText,
  type Operation,
  replacementText,
} from './operations.ts'

/** A memory and its store, for operations that the memory does not offer. */
export type OpenStore = { readonly memory: Memory; readonly store: Store & SearchIndex }

/** Opens a store; it is encrypted if its key is in a file beside it. */
export async function openStoreFile(file: string, onWarning?: (warning: string) => void): Promise<OpenStore> {
  const options = onWarning === undefined ? {} : { onWarning }
  const keyFile = keyFileOf(file)
  const keyring = existsSync(keyFile) ? await loadKeyring(`file:${keyFile}`) : undefined
  const store =
    keyring === undefined
      ? sqliteStore(file, options)
      : await encryptedStore(sqliteStore(file, { ...options, keyring }), keyring)
  return { store, memory: await openMemory({ store, tokenizer: chars4 }) }
}

/** The file with the key of an encrypted store. */
const keyFileOf = (file: string): string => join(dirname(file), 'key')

/** Writes a key beside a store that does not exist yet, so that it will be encrypted. */
export const writeStoreKey = (file: string): void =>
  writeFileSync(keyFileOf(file), randomBytes(32).toString('base64'), { mode: 0o600 })

/** Runs an operation, for the first time or again; returns the positions of its messages. */
export async function runOperation({ memory, store }: OpenStore, operation: Operation): Promise<readonly Position[]> {
  const { id, session } = operation
  if (operation.kind === 'eraseSession') await memory.forget({ key: session })
  else if (operation.kind === 'eraseMessage') await memory.forget({ key: session, messageId: operation.message })
  else if (operation.kind === 'increment') await increment(store, operation)
  else if (operation.kind === 'replace')
    await memory.replace(session, operation.message, { role: 'assistant', content: replacementText(operation) })
  else if (operation.kind === 'putRow')
    await memory.table(scopeOfRows).put(['rows'], operation.row, { text: messageText(id, 0) })
  else if (operation.kind === 'import') await importBundle(memory, session)
  else {
    const texts = Array.from({ length: operation.messages }, (_, index) => messageText(id, index))
    const stored = operation.withFact
      ? await appendWithFact(store, operation, texts)
      : await memory.append(
          session,
          texts.map((content, index) => ({ role: index % 2 === 0 ? 'user' : 'assistant', content })),
          { operationId: id },
        )
    return stored.map(({ sequence, offset, weight }) => ({ sequence, offset, weight }))
  }
  return []
}

/** Scope of the rows. */
export const scopeOfRows = 'fault'

/** Imports the same bundle every time. */
async function importBundle(memory: Memory, session: string): Promise<void> {
  const source = await openMemory({ tokenizer: chars4, upkeep: false, clock: () => 1_772_000_000_000 })
  for (const key of [session, `${session}${importedSuffix}`]) {
    const texts = Array.from({ length: importedMessages }, (_, index) =>
      messageText(key.split(':')[1] as string, index),
    )
    await source.append(
      key,
      texts.map((content) => ({ role: 'user', content })),
    )
  }
  const chunks: Uint8Array[] = []
  for await (const chunk of source.export({ scope: importedScope })) chunks.push(chunk)
  await source.close()
  const open = async function* () {
    yield* chunks
  }
  await memory.import(open)
}

async function appendWithFact(
  store: Store,
  operation: Operation,
  texts: readonly string[],
): Promise<readonly Message[]> {
  const { epoch } = await store.readHead(parseKey(operation.session), 0)
  const append = texts.map((content) => ({
    at: 1_000,
    role: 'user' as const,
    content,
    tokens: 5,
    lineTokens: 5,
    tokenizer: 'none',
    weight: content.length,
  }))
  const put = [createFact(operation.id, messageText(operation.id, 0))]
  return store.commit({ ...createChange(operation, epoch), append, put })
}

async function increment(store: Store, operation: Operation): Promise<void> {
  for (;;) {
    const { epoch, revision, derived } = await store.readHead(parseKey(operation.session), 0)
    const [current] = derived as readonly Fact[]
    const put = [createFact('count', Number(current?.value ?? 0) + 1)]
    try {
      await store.commit({ ...createChange(operation, epoch), base: revision, put })
      return
    } catch (error) {
      if (!(error instanceof MemoryError) || error.code !== 'conflict') throw error
    }
  }
}

const createChange = ({ id, session }: Operation, epoch: number): SessionChange => ({
  id,
  key: parseKey(session),
  at: 1_000,
  epoch,
  append: [],
  put: [],
  drop: [],
  expiresAt: noExpiry,
})

const createFact = (id: string, value: string | number): Fact => ({
  kind: 'fact',
  id,
  at: 1_000,
  field: 'any',
  key: '',
  value,
  importance: 1,
  sources: [],
})
