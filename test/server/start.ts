import OpenAI from 'openai'
import type { SearchIndex, Store } from '../../src/domain/ports.ts'
import type { Profile } from '../../src/domain/profile.ts'
import { type MemoryOptions, openMemory } from '../../src/index.ts'
import type { Memory } from '../../src/memory.ts'
import { MemoryRegistry, type ProfileConfig } from '../../src/server/memoryRegistry.ts'
import { type ServeOptions, serve } from '../../src/server/serve.ts'
import { ramStore } from '../../src/stores/ram.ts'

export type TestServer = AsyncDisposable & {
  readonly url: string
  readonly memory: Memory
  /** Faults reported to the operator. */
  readonly faults: readonly string[]
  /** An OpenAI client with only the base URL changed. */
  client(key: string): OpenAI
  /** The stored transcript, one `role: content` line per message. */
  transcriptLines(key: string): Promise<string[]>
  /** Sends a chat completion with fetch. */
  postChat(key: string, body: unknown, headers?: Readonly<Record<string, string>>): Promise<Response>
  /** Sends any request, such as `GET /api/sessions`, and parses the JSON body; undefined without a body. */
  requestJson(
    request: string,
    body?: unknown,
    headers?: Readonly<Record<string, string>>,
  ): Promise<{ readonly status: number; readonly body: unknown }>
  close(grace?: number): Promise<void>
}

type Options = Omit<ServeOptions, 'memory'> & {
  readonly memory?: MemoryOptions
  /** MemoryRegistry by profile; one memory for everything when omitted. */
  readonly profiles?: ProfileConfig
}

/** Starts the real server on a free port. */
export async function startServer({ profiles, ...options }: Options = {}): Promise<TestServer> {
  const open = (profile?: Profile) => openMemory({ ...options.memory, ...(profile === undefined ? {} : { profile }) })
  const memories =
    profiles === undefined ? MemoryRegistry.resolve(await open()) : await MemoryRegistry.open(open, profiles)
  const memory = memories.sessions
  const faults: string[] = []
  const serving = await serve({ port: 0, onFault: (_, trace) => faults.push(trace), ...options, memory: memories })
  const close = async (grace?: number): Promise<void> => {
    await serving.close(grace)
    await memories[Symbol.asyncDispose]()
  }
  return {
    url: serving.url,
    memory,
    faults,
    client: (key) => new OpenAI({ baseURL: `${serving.url}/v1/${key}`, apiKey: 'sk-client', maxRetries: 0 }),
    transcriptLines: async (key) => toLines(await memory.transcript(key)),
    postChat: (key, body, headers = {}) =>
      fetch(`${serving.url}/v1/${key}/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: typeof body === 'string' ? body : JSON.stringify(body),
      }),
    requestJson: async (request, body, headers = {}) => {
      const [method = '', path = ''] = request.split(' ')
      const typed = body === undefined ? {} : { 'content-type': 'application/json' }
      const init = {
        method,
        headers: { ...typed, ...headers },
        ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      }
      const response = await fetch(`${serving.url}${path}`, init)
      const text = await response.text()
      return { status: response.status, body: text === '' ? undefined : JSON.parse(text) }
    },
    close,
    [Symbol.asyncDispose]: () => close(),
  }
}

export const user = (content: string) => ({ role: 'user' as const, content })
export const assistant = (content: string) => ({ role: 'assistant' as const, content })

/** Formats messages as `role: content` lines. */
export const toLines = (messages: readonly { readonly role: string; readonly content?: unknown }[]): string[] =>
  messages.map(({ role, content }) => `${role}: ${content}`)

/** Collects an async iterable. */
export async function collectAll<T>(iterable: AsyncIterable<T>): Promise<T[]> {
  const items: T[] = []
  for await (const item of iterable) items.push(item)
  return items
}

/** A RAM store that answers after 100 turns of the event loop, like a disk or a network. */
export function slowStore(): Store & SearchIndex {
  const store = ramStore()
  const slowly = async <T>(work: () => Promise<T>): Promise<T> => {
    for (let turn = 0; turn < 100; turn++) await new Promise(setImmediate)
    return work()
  }
  return {
    ...store,
    readHead: (key, recent) => slowly(() => store.readHead(key, recent)),
    commit: (change) => slowly(() => store.commit(change)),
  }
}
