import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect } from 'vitest'
import { isCampaign } from '../../context/campaign.ts'
import { verifies } from '../../requirements/verifies.ts'
import { assistant, user } from '../start.ts'
import type { Hold } from './heldModel.ts'
import { openTestSession, replyText, type TestResponse, type TestSession } from './testSession.ts'

/** Clients of one session: one sends its whole history, one only the newest message, one edits earlier messages. */
type ClientKind = 'whole' | 'newest' | 'editing'

type Ask = { readonly kind: ClientKind; readonly turn: number }

/** Either some clients ask or some pending replies arrive; numbers select them modulo their count. */
type Step = { readonly asks: readonly Ask[] } | { readonly replies: readonly number[] }

const asks = fc.array(
  fc.record({ kind: fc.constantFrom<ClientKind>('whole', 'newest', 'editing'), turn: fc.nat({ max: 20 }) }),
  { minLength: 1, maxLength: 3 },
)

const steps: fc.Arbitrary<readonly Step[]> = fc.array(
  fc.oneof(fc.record({ asks }), fc.record({ replies: fc.array(fc.nat({ max: 5 }), { minLength: 1, maxLength: 3 }) })),
  { minLength: 2, maxLength: 8, size: 'max' },
)

type Line = readonly { readonly role: string; readonly content: string }[]

type Pending = {
  readonly kind: ClientKind
  readonly question: string
  readonly hold: Hold
  readonly answer: Promise<TestResponse>
}

/** Three clients of one session whose replies arrive when released. */
class ClientGroup {
  readonly acknowledged: string[] = []
  private readonly session: TestSession
  private readonly key: string
  /** True: clients see the current session and ask one after the other. False: each knows only its own messages. */
  private readonly isSequential: boolean
  private readonly histories: Record<ClientKind, Line> = { whole: [], newest: [], editing: [] }
  private pending: Pending[] = []
  private asked = 0

  constructor(session: TestSession, key: string, isSequential: boolean) {
    this.session = session
    this.key = key
    this.isSequential = isSequential
  }

  async run(sequence: readonly Step[]): Promise<void> {
    for (const step of sequence) {
      if ('replies' in step) await this.release(step.replies)
      else if (this.isSequential) for (const ask of step.asks) await this.ask(ask)
      else await Promise.all(step.asks.map((ask) => this.ask(ask)))
    }
    await this.release(this.pending.map((_, index) => index))
  }

  /** The messages of the session, then those of each branch. */
  async lines(): Promise<readonly (readonly string[])[]> {
    const lines = [await this.session.transcript(this.key), ...Object.values(await this.session.branches(this.key))]
    return lines.map((line) => line.map((each) => each.slice(each.indexOf(': ') + 2)))
  }

  private async ask({ kind, turn }: Ask): Promise<void> {
    const question = `Question ${++this.asked} of ${this.key}`
    const current = this.isSequential ? await this.session.server.memory.transcript(this.key) : this.histories[kind]
    const history = { whole: current, newest: [], editing: historyBefore(current, turn) }[kind].map(
      ({ role, content }) => ({
        role,
        content,
      }),
    )
    this.histories[kind] = [...history, user(question)]
    const hold = this.session.model.hold(question)
    const answer = this.session.chat([...history, user(question)], { 'user-agent': `${kind}/1.0` }, this.key)
    await Promise.race([
      hold.arrived,
      answer.then(({ status }) => Promise.reject(new Error(`answered ${status} before the model was asked`))),
    ])
    this.acknowledged.push(question)
    this.pending.push({ kind, question, hold, answer })
  }

  /** Releases replies at once and asserts that each is stored after its question. */
  private async release(places: readonly number[]): Promise<void> {
    const released = new Set(places.flatMap((index) => this.pending[index % this.pending.length] ?? []))
    this.pending = this.pending.filter((each) => !released.has(each))
    for (const { hold } of released) hold.release()
    const received = await Promise.all(
      [...released].map(async ({ kind, question, answer }) => ({ kind, question, reply: replyText(await answer) })),
    )
    const lines = await this.lines()
    for (const { kind, question, reply } of received) {
      const containing = lines.filter((line) => line.includes(reply))
      expect(containing.map((line) => line.includes(question) && line.indexOf(question) < line.indexOf(reply))).toEqual(
        [true],
      )
      this.acknowledged.push(reply)
      this.histories[kind] = this.histories[kind].flatMap((each) =>
        each.content === question ? [each, assistant(reply)] : [each],
      )
    }
  }
}

/** The history before a question that follows a reply; the whole history if there is none. */
function historyBefore(line: Line, turn: number): Line {
  const first = line.findIndex(({ role }) => role === 'assistant')
  const places = line.flatMap(({ role }, index) => (role === 'user' && first >= 0 && index > first ? [index] : []))
  return line.slice(0, places[turn % places.length] ?? line.length)
}

describe('three clients of one session, asks and replies in any order', () => {
  let session: TestSession
  let runs = 0
  beforeAll(async () => {
    session = await openTestSession({ reply: (asked, index) => ({ text: `Reply ${index} to ${asked}` }) })
  })
  afterAll(() => session[Symbol.asyncDispose]())

  verifies(
    ['T-15', 'C-10'],
    'lose and duplicate nothing: every message is in the session or in one branch, each reply after its question',
    async () => {
      const check = async (sequence: readonly Step[]): Promise<void> => {
        const group = new ClientGroup(session, `demo:step-${runs++}`, true)
        await group.run(sequence)
        expect((await group.lines()).flat().sort()).toEqual(group.acknowledged.toSorted())
      }
      await fc.assert(fc.asyncProperty(steps, check), { numRuns: isCampaign ? 60 : 20 })
      expect(session.server.faults).toEqual([])
    },
  )

  verifies(['T-15', 'C-10'], 'each knowing only its own messages and asking concurrently › lose nothing', async () => {
    const check = async (sequence: readonly Step[]): Promise<void> => {
      const group = new ClientGroup(session, `demo:own-${runs++}`, false)
      await group.run(sequence)
      const lines = await group.lines()
      expect(group.acknowledged.filter((question) => !lines.flat().includes(question))).toEqual([])
    }
    await fc.assert(fc.asyncProperty(steps, check), { numRuns: isCampaign ? 60 : 20 })
    expect(session.server.faults).toEqual([])
  })
})
