import { join } from 'node:path'
import type { Incoming } from '../../src/domain/chat.ts'
import { type Graph, openGraph } from '../../src/graph/graph.ts'
import { Handoff, type HandoffOptions } from '../../src/handoff/handoff.ts'
import { type Memory, MemoryError, openMemory } from '../../src/index.ts'
import { openStore } from '../../src/stores/open.ts'
import { newFolder } from '../fault/tempFolder.ts'

export const day = 86_400_000
/** 15 November 2026, noon. */
export const noon = Date.UTC(2026, 10, 15, 12)

/** A clock that moves when it is told to. */
export type Time = { now: number }

/** How a disk fails at the moment, if it does: for reads too, or only for what is written to the graph. */
export type Fault = { code?: 'full' | 'not-durable' | undefined; reads?: boolean; onlyGraph?: boolean }

export type Stage = AsyncDisposable & {
  readonly handoff: Handoff
  readonly memory: Memory
  readonly graph: Graph
  readonly time: Time
  readonly folder: string
  readonly file: string
}

export type StageOptions = Omit<Partial<HandoffOptions>, 'memory' | 'clock'> & {
  /** A file that is there already: another process would open it like this. */
  readonly file?: string
  readonly time?: Time
  /** While it names a code, whatever is written fails with it. */
  readonly fault?: Fault
  readonly storeKey?: string
}

/** A handoff on a real file, with a clock of its own; sessions are named by the time alone. */
export async function stage({
  file,
  time = { now: noon },
  fault = {},
  storeKey,
  ...options
}: StageOptions = {}): Promise<Stage> {
  const folder = file === undefined ? newFolder() : undefined
  const path = file ?? join((folder as { path: string }).path, 'handoff.db')
  const clock = (): number => time.now
  const url = `sqlite:${path}`
  const memory = await openMemory({ profile: 'handoff', clock, store: failing(await openStore(url, storeKey), fault) })
  const graph = failing(await openGraph(url, { clock, ...(storeKey === undefined ? {} : { storeKey }) }), fault)
  let last = 0
  const name = (now: number): string => {
    last = Math.max(last + 1, now)
    return `session_${last}`
  }
  const handoff = new Handoff({ clock, name, memory, graph, ...options })
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

/** The same store or graph, which fails as a disk would whenever it is told to. */
function failing<T extends object>(part: T, fault: Fault): T {
  const reads = new Set<string | symbol>(['head', 'page', 'entity', 'entities', 'relationships'])
  const writes = (name: string | symbol): boolean => name === 'write' || (name === 'commit' && fault.onlyGraph !== true)
  return new Proxy(part, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name)
      if (typeof value !== 'function') return value
      return (...given: unknown[]) => {
        const isHit = fault.code !== undefined && (writes(name) || (fault.reads === true && reads.has(name)))
        return isHit
          ? Promise.reject(new MemoryError(fault.code ?? 'full', 'The disk is full.'))
          : value.apply(target, given)
      }
    },
  })
}

/** A conversation about code, with a task, a file and data in it. */
export const coding: readonly Incoming[] = [
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
