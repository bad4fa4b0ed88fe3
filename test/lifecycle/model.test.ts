import fc from 'fast-check'
import { describe, expect } from 'vitest'
import { openMemory, profiles, ramStore } from '../../src/index.ts'
import { verifies } from '../requirements/verifies.ts'

/** What may happen, by chance: something is said or read, a session ends, time passes, somebody sweeps. */
type Step =
  | { readonly do: 'say' | 'read' | 'end'; readonly key: string }
  | { readonly do: 'wait'; readonly time: number }
  | { readonly do: 'sweep' }

const start = 1_800_000_000_000
const limits = { idle: 100, age: 300, messages: 4, sessionsPerScope: 3, bytes: 1_000, whenFull: 'evict' as const }
const keys = ['acme:a', 'acme:b', 'acme:c', 'acme:d', 'acme:e', 'zeta:a']

type Lived = { readonly startedAt: number; touchedAt: number; contents: string[] }

/** What should happen, told as simply as can be: every session in a list, and all of it looked at each time. */
class Model {
  now = start
  readonly sessions = new Map<string, Lived>()
  readonly ends: string[] = []

  say(key: string, content: string): void {
    if (this.isOver(key)) this.end(key, 'expired')
    const lived = this.sessions.get(key) ?? { startedAt: this.now, touchedAt: this.now, contents: [] }
    this.sessions.set(key, lived)
    lived.touchedAt = this.now
    lived.contents.push(content)
    if (lived.contents.length > limits.messages) lived.contents.splice(1, 1)
    this.crowdOut(key)
  }

  read(key: string): readonly string[] {
    return this.isOver(key) ? [] : (this.sessions.get(key)?.contents ?? [])
  }

  end(key: string, reason: string): void {
    const lived = this.sessions.get(key)
    if (lived === undefined) return
    this.sessions.delete(key)
    this.ends.push(`${key} ${lived.startedAt} ${reason}: ${lived.contents}`)
  }

  sweep(): readonly string[] {
    const over = [...this.sessions.keys()].filter((key) => this.isOver(key)).sort()
    for (const key of over) this.end(key, 'expired')
    return over
  }

  /** The session of the scope that was used longest ago makes room for one more. */
  private crowdOut(key: string): void {
    const scope = key.split(':')[0]
    const alive = [...this.sessions].filter(
      ([other]) => other !== key && other.startsWith(`${scope}:`) && !this.isOver(other),
    )
    if (this.sessions.get(key)?.contents.length !== 1 || alive.length < limits.sessionsPerScope) return
    const [[unused] = ['']] = alive.sort(([a, one], [b, other]) => one.touchedAt - other.touchedAt || (a < b ? -1 : 1))
    this.end(unused, 'evicted')
  }

  isOver(key: string): boolean {
    const lived = this.sessions.get(key)
    return lived !== undefined && this.now >= Math.min(lived.touchedAt + limits.idle, lived.startedAt + limits.age)
  }
}

const stepOf = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('say' as const), key: fc.constantFrom(...keys) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('read' as const), key: fc.constantFrom(...keys) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('end' as const), key: fc.constantFrom(...keys) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('wait' as const), time: fc.integer({ min: 1, max: 60 }) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('sweep' as const) }) },
)

const plain = { pack: (bytes: Uint8Array) => bytes.slice(), unpack: (bytes: Uint8Array) => bytes }

async function follow(steps: readonly Step[]): Promise<void> {
  const model = new Model()
  const ends: string[] = []
  const memory = await openMemory({
    profile: { ...profiles.support, tokenizer: 'chars-4', upkeep: [], lifetime: limits },
    // Whoever is not used for a moment is packed away by each sweep.
    sessions: ramStore({ pack: plain, restAfter: 10 }),
    clock: () => model.now,
    onSessionEnd: (key, { messages, createdAt }, { reason }) =>
      void ends.push(`${key} ${createdAt} ${reason}: ${messages.map(({ content }) => content)}`),
  })
  for (const [place, step] of steps.entries()) {
    if (step.do === 'wait') model.now += step.time
    else if (step.do === 'sweep') expect((await memory.sweep()).ended).toEqual(model.sweep())
    else if (step.do === 'read')
      expect((await memory.transcript(step.key)).map(({ content }) => content)).toEqual(model.read(step.key))
    else if (step.do === 'say') {
      await memory.append(step.key, [{ role: 'user', content: `${place}` }])
      model.say(step.key, `${place}`)
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
  verifies(
    ['T-06', 'T-07', 'T-12'],
    'live, give way and end as the simplest telling of it says, whatever happens in whichever order',
    () => fc.assert(fc.asyncProperty(fc.array(stepOf, { maxLength: 80 }), follow), { numRuns: 150 }),
  )
})
