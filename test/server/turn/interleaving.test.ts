import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect } from 'vitest'
import { verifies } from '../../requirements/verifies.ts'
import { assistant, user } from '../start.ts'
import type { Hold } from './held.ts'
import { type Answered, openScene, type Scene, textIn } from './scene.ts'

/** Those who share a session: one sends its whole history, one only what is new, and one edits what it said before. */
type Who = 'whole' | 'newest' | 'editing'
type Ask = { readonly who: Who; readonly turn: number }
/** Some ask, or some replies that are under way come; which ones is told by numbers that are taken modulo their count. */
type Step = { readonly asks: readonly Ask[] } | { readonly replies: readonly number[] }

const asks = fc.array(
  fc.record({ who: fc.constantFrom<Who>('whole', 'newest', 'editing'), turn: fc.nat({ max: 20 }) }),
  { minLength: 1, maxLength: 3 },
)
const steps: fc.Arbitrary<readonly Step[]> = fc.array(
  fc.oneof(fc.record({ asks }), fc.record({ replies: fc.array(fc.nat({ max: 5 }), { minLength: 1, maxLength: 3 }) })),
  { minLength: 2, maxLength: 8, size: 'max' },
)

type Line = readonly { readonly role: string; readonly content: string }[]
type Pending = { readonly who: Who; readonly words: string; readonly hold: Hold; readonly answer: Promise<Answered> }

/** Three clients of one session whose replies come when they are let. */
class Crowd {
  readonly acknowledged: string[] = []
  private readonly scene: Scene
  private readonly key: string
  /** Whether all clients see the session as it is, and one asks after the other; else each knows what it said and heard itself. */
  private readonly isInStep: boolean
  private readonly views: Record<Who, Line> = { whole: [], newest: [], editing: [] }
  private pending: Pending[] = []
  private asked = 0

  constructor(scene: Scene, key: string, isInStep: boolean) {
    this.scene = scene
    this.key = key
    this.isInStep = isInStep
  }

  async run(all: readonly Step[]): Promise<void> {
    for (const step of all) {
      if ('replies' in step) await this.release(step.replies)
      else if (this.isInStep) for (const ask of step.asks) await this.ask(ask)
      else await Promise.all(step.asks.map((ask) => this.ask(ask)))
    }
    await this.release(this.pending.map((_, place) => place))
  }

  /** What is in the session, then what is in each branch of it. */
  async lines(): Promise<readonly (readonly string[])[]> {
    const lines = [await this.scene.said(this.key), ...Object.values(await this.scene.branches(this.key))]
    return lines.map((line) => line.map((each) => each.slice(each.indexOf(': ') + 2)))
  }

  private async ask({ who, turn }: Ask): Promise<void> {
    const words = `Question ${++this.asked} of ${this.key}`
    const seen = this.isInStep ? await this.scene.server.memory.transcript(this.key) : this.views[who]
    const history = { whole: seen, newest: [], editing: upTo(seen, turn) }[who].map(({ role, content }) => ({
      role,
      content,
    }))
    this.views[who] = [...history, user(words)]
    const hold = this.scene.model.hold(words)
    const answer = this.scene.chat([...history, user(words)], {}, this.key)
    await Promise.race([
      hold.arrived,
      answer.then(({ status }) => Promise.reject(new Error(`answered ${status} before the model was asked`))),
    ])
    this.acknowledged.push(words)
    this.pending.push({ who, words, hold, answer })
  }

  /** Lets replies come, at once; each must then stand where its question does. */
  private async release(places: readonly number[]): Promise<void> {
    const released = new Set(places.flatMap((place) => this.pending[place % this.pending.length] ?? []))
    this.pending = this.pending.filter((each) => !released.has(each))
    for (const { hold } of released) hold.release()
    const heard = await Promise.all(
      [...released].map(async ({ who, words, answer }) => ({ who, words, reply: textIn(await answer) })),
    )
    const lines = await this.lines()
    for (const { who, words, reply } of heard) {
      const homes = lines.filter((line) => line.includes(reply))
      expect(homes.map((line) => line.includes(words) && line.indexOf(words) < line.indexOf(reply))).toEqual([true])
      this.acknowledged.push(reply)
      this.views[who] = this.views[who].flatMap((each) => (each.content === words ? [each, assistant(reply)] : [each]))
    }
  }
}

/** A history up to one of the questions in it that a reply was given before; up to its end, if there is none. */
function upTo(line: Line, turn: number): Line {
  const first = line.findIndex(({ role }) => role === 'assistant')
  const places = line.flatMap(({ role }, place) => (role === 'user' && first >= 0 && place > first ? [place] : []))
  return line.slice(0, places[turn % places.length] ?? line.length)
}

describe('three clients of one session, in whatever order they ask and replies come', () => {
  let scene: Scene
  let runs = 0
  beforeAll(async () => {
    scene = await openScene({ reply: (asked, place) => ({ text: `Reply ${place} to ${asked}` }) })
  })
  afterAll(() => scene[Symbol.asyncDispose]())

  verifies(
    ['T-15', 'C-10'],
    'lose nothing and store nothing twice: all is in the session or in one branch, each reply where its question is',
    async () => {
      const check = async (all: readonly Step[]): Promise<void> => {
        const crowd = new Crowd(scene, `demo:step-${runs++}`, true)
        await crowd.run(all)
        expect((await crowd.lines()).flat().sort()).toEqual(crowd.acknowledged.toSorted())
      }
      await fc.assert(fc.asyncProperty(steps, check), { numRuns: 60 })
      expect(scene.server.faults).toEqual([])
    },
  )

  verifies(['T-15', 'C-10'], 'lose nothing when each knows only its own part and all ask at once', async () => {
    const check = async (all: readonly Step[]): Promise<void> => {
      const crowd = new Crowd(scene, `demo:own-${runs++}`, false)
      await crowd.run(all)
      const lines = await crowd.lines()
      expect(crowd.acknowledged.filter((words) => !lines.flat().includes(words))).toEqual([])
    }
    await fc.assert(fc.asyncProperty(steps, check), { numRuns: 60 })
    expect(scene.server.faults).toEqual([])
  })
})
