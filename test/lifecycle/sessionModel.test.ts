import fc from 'fast-check'
import { describe, expect } from 'vitest'
import { openMemory, profiles, ramStore } from '../../src/index.ts'
import { verifies } from '../requirements/verifies.ts'

/** A random operation: append, read or end a session, let time pass, or sweep. */
type Step =
  | { readonly do: 'append' | 'read' | 'end'; readonly key: string }
  | { readonly do: 'wait'; readonly time: number }
  | { readonly do: 'sweep' }

const start = 1_800_000_000_000
const limits = { idle: 100, age: 300, messages: 4, sessionsPerScope: 3, bytes: 1_000, whenFull: 'evict' as const }
const keys = ['acme:a', 'acme:b', 'acme:c', 'acme:d', 'acme:e', 'zeta:a']

type ModelSession = { readonly startedAt: number; touchedAt: number; contents: string[] }

/** Reference model: keeps all sessions in a map and checks every one on each operation. */
class Model {
  now = start
  readonly sessions = new Map<string, ModelSession>()
  readonly ends: string[] = []

  append(key: string, content: string): void {
    if (this.isExpired(key)) this.end(key, 'expired')
    const session = this.sessions.get(key) ?? { startedAt: this.now, touchedAt: this.now, contents: [] }
    this.sessions.set(key, session)
    session.touchedAt = this.now
    session.contents.push(content)
    if (session.contents.length > limits.messages) session.contents.splice(1, 1)
    this.evict(key)
  }

  read(key: string): readonly string[] {
    const session = this.sessions.get(key)
    if (session === undefined || this.isExpired(key)) return []
    session.touchedAt = this.now
    return session.contents
  }

  end(key: string, reason: string): void {
    const session = this.sessions.get(key)
    if (session === undefined) return
    this.sessions.delete(key)
    this.ends.push(`${key} ${session.startedAt} ${reason}: ${session.contents}`)
  }

  sweep(): readonly string[] {
    const expired = [...this.sessions.keys()].filter((key) => this.isExpired(key)).sort()
    for (const key of expired) this.end(key, 'expired')
    return expired
  }

  /** Evicts the least recently used session of the scope if there is one too many. */
  private evict(key: string): void {
    const scope = key.split(':')[0]
    const alive = [...this.sessions].filter(
      ([other]) => other !== key && other.startsWith(`${scope}:`) && !this.isExpired(other),
    )
    if (this.sessions.get(key)?.contents.length !== 1 || alive.length < limits.sessionsPerScope) return
    const [[unused] = ['']] = alive.sort(([a, one], [b, other]) => one.touchedAt - other.touchedAt || (a < b ? -1 : 1))
    this.end(unused, 'evicted')
  }

  isExpired(key: string): boolean {
    const session = this.sessions.get(key)
    return (
      session !== undefined && this.now >= Math.min(session.touchedAt + limits.idle, session.startedAt + limits.age)
    )
  }
}

const anyStep = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('append' as const), key: fc.constantFrom(...keys) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('read' as const), key: fc.constantFrom(...keys) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('end' as const), key: fc.constantFrom(...keys) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('wait' as const), time: fc.integer({ min: 1, max: 60 }) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('sweep' as const) }) },
)

const noCompression = { compress: (bytes: Uint8Array) => bytes.slice(), decompress: (bytes: Uint8Array) => bytes }

async function compareWithModel(steps: readonly Step[]): Promise<void> {
  const model = new Model()
  const ends: string[] = []
  const memory = await openMemory({
    profile: { ...profiles.support, tokenizer: 'chars-4', upkeep: [], lifetime: limits },
    // Each sweep compresses sessions that were idle for 10 ms.
    sessions: ramStore({ compressor: noCompression, compressAfterMs: 10 }),
    clock: () => model.now,
    onSessionEnd: (key, { messages, createdAt }, { reason }) =>
      void ends.push(`${key} ${createdAt} ${reason}: ${messages.map(({ content }) => content)}`),
  })
  for (const [index, step] of steps.entries()) {
    if (step.do === 'wait') model.now += step.time
    else if (step.do === 'sweep') expect((await memory.sweep()).ended).toEqual(model.sweep())
    else if (step.do === 'read')
      expect((await memory.transcript(step.key)).map(({ content }) => content)).toEqual(model.read(step.key))
    else if (step.do === 'append') {
      await memory.append(step.key, [{ role: 'user', content: `${index}` }])
      model.append(step.key, `${index}`)
    } else {
      expect(await memory.end(step.key)).toBe(model.sessions.has(step.key))
      model.end(step.key, 'ended')
    }
  }
  model.now += 10_000
  expect((await memory.sweep()).ended).toEqual(model.sweep())
  await memory.close()
  expect(ends.sort()).toEqual(model.ends.sort())
}

describe('sessions', () => {
  verifies(['T-06', 'T-07', 'T-12'], 'behave like the reference model for any sequence of operations', () =>
    fc.assert(fc.asyncProperty(fc.array(anyStep, { maxLength: 80 }), compareWithModel), { numRuns: 150 }),
  )
})
