import { openMemory } from '../../src/index.ts'
import { postgresStore } from '../../src/stores/postgres.ts'
import type { PostgresServer } from '../../test/support/postgresServer.ts'
import { createSentences } from '../corpus.ts'
import { type Contenders, importPeer, measureInterleaved, measureMs, report } from '../measure.ts'

const texts = createSentences(2_000)
const historyMessages = 200
const operations = 50
const rounds = 7

/** A conversation in some package: appends a message, or reads the last 50. */
type Conversation = {
  append(text: string, number: number): Promise<unknown>
  readLast(count: number): Promise<number>
  close(): Promise<unknown>
}

/** Compares the append of a message and the read of the last 50 in conversations of 200 messages and more. */
export async function measurePeers(postgres: PostgresServer): Promise<void> {
  const openers = {
    threadkeep: openThreadkeep,
    '@mastra/pg': openMastra,
    'LangGraph checkpointer': openCheckpointer,
    'LangGraph store': openLangGraphStore,
  }
  const conversations = new Map<string, Conversation>()
  for (const [name, open] of Object.entries(openers)) {
    const conversation = await open(await postgres.createDatabase())
    if (conversation === undefined) continue
    for (let number = 0; number < historyMessages; number++) await conversation.append(texts[number] as string, number)
    conversations.set(name, conversation)
  }
  let number = historyMessages
  const appends: Contenders = Object.fromEntries(
    [...conversations].map(([name, { append }]) => [
      name,
      () =>
        measureMs(async () => {
          for (let at = 0; at < operations; at++) await append(texts[number % texts.length] as string, number++)
        }).then((milliseconds) => milliseconds / operations),
    ]),
  )
  const reads: Contenders = Object.fromEntries(
    [...conversations].map(([name, { readLast }]) => [
      name,
      () =>
        measureMs(async () => {
          for (let at = 0; at < operations; at++) {
            const count = await readLast(50)
            if (count !== 50) throw new Error(`${name} returned ${count} messages instead of 50.`)
          }
        }).then((milliseconds) => milliseconds / operations),
    ]),
  )
  report('Append one message, milliseconds', await measureInterleaved(appends, rounds))
  report('Read the last 50 messages, milliseconds', await measureInterleaved(reads, rounds))
  for (const { close } of conversations.values()) await close()
}

const roleOf = (number: number): 'user' | 'assistant' => (number % 2 === 0 ? 'user' : 'assistant')

async function openThreadkeep(url: string): Promise<Conversation> {
  const store = await postgresStore(url)
  const memory = await openMemory({ store, upkeep: false })
  return {
    append: (content, number) => memory.append('bench:ann', [{ role: roleOf(number), content }]),
    readLast: async (limit) => (await memory.transcript('bench:ann', { limit, newest: true })).length,
    close: async () => {
      await memory.close()
      await store.close()
    },
  }
}

type MastraMessages = {
  saveThread(input: { thread: object }): Promise<unknown>
  saveMessages(input: { messages: readonly object[] }): Promise<unknown>
  listMessages(input: object): Promise<{ readonly messages: readonly unknown[] }>
}
type MastraPackage = {
  PostgresStore: new (config: {
    id: string
    connectionString: string
  }) => {
    init(): Promise<void>
    close(): Promise<void>
    getStore(name: 'memory'): Promise<MastraMessages>
  }
}

async function openMastra(connectionString: string): Promise<Conversation | undefined> {
  const mastra = await importPeer<MastraPackage>('@mastra/pg')
  if (mastra === undefined) return undefined
  const store = new mastra.PostgresStore({ id: 'bench', connectionString })
  await store.init()
  const memory = await store.getStore('memory')
  const now = new Date()
  const ids = { threadId: 'ann', resourceId: 'bench' }
  await memory.saveThread({
    thread: { id: 'ann', resourceId: 'bench', title: '', createdAt: now, updatedAt: now, metadata: {} },
  })
  return {
    append: (content, number) =>
      memory.saveMessages({
        messages: [
          {
            id: `m${number}`,
            role: roleOf(number),
            createdAt: new Date(now.getTime() + number),
            type: 'text',
            content: { format: 2, parts: [{ type: 'text', text: content }], content },
            ...ids,
          },
        ],
      }),
    readLast: async (perPage) =>
      (await memory.listMessages({ ...ids, page: 0, perPage, orderBy: { field: 'createdAt', direction: 'DESC' } }))
        .messages.length,
    close: () => store.close(),
  }
}

type Checkpoint = { readonly channel_values: { readonly messages: readonly unknown[] } }
type SaverPackage = {
  PostgresSaver: {
    fromConnString(url: string): {
      setup(): Promise<void>
      put(config: object, checkpoint: object, metadata: object, versions: object): Promise<unknown>
      getTuple(config: object): Promise<{ readonly checkpoint: Checkpoint } | undefined>
      end(): Promise<void>
    }
  }
}
type CheckpointPackage = { uuid6(clock: number): string }

/** A checkpoint holds the whole list of messages, as the state of a graph with a messages channel does. */
async function openCheckpointer(url: string): Promise<Conversation | undefined> {
  const [saverPackage, checkpoints] = [
    await importPeer<SaverPackage>('@langchain/langgraph-checkpoint-postgres'),
    await importPeer<CheckpointPackage>('@langchain/langgraph-checkpoint'),
  ]
  if (saverPackage === undefined || checkpoints === undefined) return undefined
  const saver = saverPackage.PostgresSaver.fromConnString(url)
  await saver.setup()
  const config = { configurable: { thread_id: 'ann', checkpoint_ns: '' } }
  const messages: object[] = []
  return {
    append: (content, number) => {
      messages.push({ type: roleOf(number) === 'user' ? 'human' : 'ai', data: { content } })
      const versions = { messages: messages.length }
      const checkpoint = {
        v: 4,
        id: checkpoints.uuid6(messages.length),
        ts: new Date().toISOString(),
        channel_values: { messages },
        channel_versions: versions,
        versions_seen: {},
      }
      return saver.put(config, checkpoint, { source: 'loop', step: number, parents: {} }, versions)
    },
    readLast: async (count) => {
      const tuple = await saver.getTuple(config)
      return tuple?.checkpoint.channel_values.messages.slice(-count).length ?? 0
    },
    close: () => saver.end(),
  }
}

type StorePackage = {
  PostgresStore: {
    fromConnString(url: string): {
      setup(): Promise<void>
      put(namespace: readonly string[], key: string, value: object): Promise<void>
      search(namespace: readonly string[], options: object): Promise<readonly unknown[]>
      stop(): Promise<void>
    }
  }
}

async function openLangGraphStore(url: string): Promise<Conversation | undefined> {
  const langgraph = await importPeer<StorePackage>('@langchain/langgraph-checkpoint-postgres/store')
  if (langgraph === undefined) return undefined
  const store = langgraph.PostgresStore.fromConnString(url)
  await store.setup()
  const namespace = ['bench', 'ann']
  return {
    append: (content, number) => store.put(namespace, `m${number}`, { role: roleOf(number), content }),
    readLast: async (limit) => (await store.search(namespace, { limit })).length,
    close: () => store.stop(),
  }
}
