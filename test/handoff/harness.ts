import { join } from 'node:path'
import type { MessageInput } from '../../src/domain/chat.ts'
import { openGraph } from '../../src/graph/graph.ts'
import type { Graph } from '../../src/graph/types.ts'
import { Handoff, type HandoffOptions } from '../../src/handoff/handoff.ts'
import { type Memory, MemoryError, openMemory } from '../../src/index.ts'
import { openStore } from '../../src/stores/open.ts'
import { createTempFolder } from '../fault/tempFolder.ts'

export const day = 86_400_000
/** 15 November 2026, 12:00 UTC. */
export const noon = Date.UTC(2026, 10, 15, 12)

/** Manually advanced clock. */
export type Time = { now: number }

/** Simulated store failure: writes fail with `code`, reads too if `reads`; only graph writes if `onlyGraph`. */
export type Fault = { code?: 'full' | 'not-durable' | undefined; reads?: boolean; onlyGraph?: boolean }

export type HandoffHarness = AsyncDisposable & {
  readonly handoff: Handoff
  readonly memory: Memory
  readonly graph: Graph
  readonly time: Time
  readonly folder: string
  readonly file: string
}

export type HarnessOptions = Omit<Partial<HandoffOptions>, 'memory' | 'clock'> & {
  /** Existing file, as opened by another process. Default: a new file. */
  readonly file?: string
  readonly time?: Time
  readonly fault?: Fault
  readonly storeKey?: string
}

/** Creates a handoff on a real file with a manual clock. Session ids are derived from the clock. */
export async function createHarness({
  file,
  time = { now: noon },
  fault = {},
  storeKey,
  ...options
}: HarnessOptions = {}): Promise<HandoffHarness> {
  const folder = file === undefined ? createTempFolder() : undefined
  const path = file ?? join((folder as { path: string }).path, 'handoff.db')
  const clock = (): number => time.now
  const url = `sqlite:${path}`
  const memory = await openMemory({
    profile: 'handoff',
    clock,
    store: injectFault(await openStore(url, storeKey), fault),
  })
  const graph = injectFault(await openGraph(url, { clock, ...(storeKey === undefined ? {} : { storeKey }) }), fault)
  let last = 0
  const generateSessionId = (now: number): string => {
    last = Math.max(last + 1, now)
    return `session_${last}`
  }
  const handoff = new Handoff({ clock, generateSessionId, memory, graph, ...options })
  return {
    handoff,
    memory,
    graph,
    time,
    folder: folder?.path ?? '',
    file: path,
    [Symbol.asyncDispose]: async () => {
      await handoff.close()
      await graph.close()
      await memory.close()
      folder?.[Symbol.dispose]()
    },
  }
}

/** Wraps a store or graph so that its calls fail while `fault.code` is set. */
function injectFault<T extends object>(target: T, fault: Fault): T {
  const reads = new Set<string | symbol>([
    'readHead',
    'readMessages',
    'getEntity',
    'queryEntities',
    'queryRelationships',
  ])
  const isWrite = (name: string | symbol): boolean =>
    name === 'write' || (name === 'commit' && fault.onlyGraph !== true)
  return new Proxy(target, {
    get(object, name) {
      const value: unknown = Reflect.get(object, name)
      if (typeof value !== 'function') return value
      return (...args: unknown[]) => {
        const mustFail = fault.code !== undefined && (isWrite(name) || (fault.reads === true && reads.has(name)))
        return mustFail
          ? Promise.reject(new MemoryError(fault.code ?? 'full', 'The disk is full.'))
          : value.apply(object, args)
      }
    },
  })
}

/** Resolves to 'done', or to the code and message of the MemoryError. */
export const describeOutcome = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => 'done',
    (error: unknown) => error instanceof MemoryError && `${error.code}: ${error.message}`,
  )

export const userMessage = (content: string) => ({ role: 'user' as const, content })

/** Conversation about code that contains a task, a file and data. */
export const codingConversation: readonly MessageInput[] = [
  {
    role: 'user',
    content:
      'The login page of billing-portal fails with error E-4711 when the password has an umlaut. Please fix src/login/encode.ts.',
  },
  {
    role: 'assistant',
    content:
      'The encoder drops every byte above 127. This repairs it:\n\n```ts\nexport function encodePassword(text: string): Uint8Array {\n  // every character counts\n  return new TextEncoder().encode(text)\n}\n```\n\nIt keeps the umlauts.',
  },
  { role: 'user', content: 'Good. We never store plain passwords. TODO: add a test for encodePassword with "Zürich".' },
  {
    role: 'assistant',
    content: 'Noted: the test for encodePassword is still open. The limit of 72 bytes of bcrypt holds as before.',
  },
]
