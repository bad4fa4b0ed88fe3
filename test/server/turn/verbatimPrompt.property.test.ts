import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect } from 'vitest'
import { isCampaign, propertyTimeoutMs } from '../../context/campaign.ts'
import { verifies } from '../../requirements/verifies.ts'
import { isMemoryMessage } from '../fidelity/compareRequests.ts'
import { assistant, user } from '../start.ts'
import { openTestSession, replyText, type TestSession } from './testSession.ts'

type Message = { readonly role: string; readonly content: unknown }
type Turn = { readonly question: string; answer: string | undefined }

/** Actions of a full client. `turn` selects one of its turns modulo their count. */
type FullAction =
  | { readonly type: 'say' | 'regenerate' | 'compact' | 'delegate' }
  /** `edit` changes a question and keeps what follows; `go back` also drops what follows and asks it anew. */
  | { readonly type: 'edit' | 'go back' | 'delete' | 'rewrite answer'; readonly turn: number }
type Action = { readonly client: 0 | 1; readonly action: FullAction } | { readonly client: 'thin' }

const turn = fc.nat({ max: 20 })
const fullAction: fc.Arbitrary<FullAction> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ type: fc.constant('say' as const) }) },
  { weight: 3, arbitrary: fc.record({ type: fc.constantFrom('regenerate', 'compact', 'delegate') }) },
  { weight: 4, arbitrary: fc.record({ type: fc.constantFrom('edit', 'go back', 'delete', 'rewrite answer'), turn }) },
)
const createActions = (fullClients: readonly (0 | 1)[], thinWeight: number): fc.Arbitrary<readonly Action[]> =>
  fc.array(
    fc.oneof(
      { weight: 5, arbitrary: fc.record({ client: fc.constantFrom(...fullClients), action: fullAction }) },
      { weight: thinWeight, arbitrary: fc.record({ client: fc.constant('thin' as const) }) },
    ),
    { minLength: 1, maxLength: 14 },
  )

/** From the simplest session to the one with all clients: the first that fails shows the smallest cause. */
const cases = [
  ['a full client', createActions([1], 0)],
  ['a full client with cache markers', createActions([0], 0)],
  ['two full clients', createActions([0, 1], 0)],
  ['a full client and a thin client', createActions([1], 3)],
  ['two full clients and a thin client', createActions([0, 1], 2)],
] as const

/** Texts of one session: accepted ones and those that a client took back. */
class SessionTexts {
  #count = 0
  readonly #versions = new Set<string>()
  readonly #accepted = new Set<string>()

  create(kind: string): string {
    return `${kind} ${++this.#count}.`
  }

  /** Creates another version of an earlier message. Memory keeps the version that the model answered. */
  createVersion(kind: string): string {
    const text = this.create(kind)
    this.#versions.add(text)
    return text
  }

  accept(...texts: readonly string[]): void {
    for (const text of texts) if (!this.#versions.has(text)) this.#accepted.add(text)
  }

  takeBack(...texts: readonly (string | undefined)[]): void {
    for (const text of texts) if (text !== undefined) this.#accepted.delete(text)
  }

  /** Returns the accepted texts that are not among the stored ones. */
  findLost(stored: ReadonlySet<string>): readonly string[] {
    return [...this.#accepted].filter((text) => !stored.has(text))
  }
}

/** A client that resends its conversation. The first one writes parts and moves a cache marker, the second writes text. */
class FullClient {
  #turns: Turn[] = []
  /** Until its second turn the server cannot tell it from a thin client. */
  #hasResent = false
  readonly #session: TestSession
  readonly #key: string
  readonly #texts: SessionTexts
  readonly #index: 0 | 1

  constructor(session: TestSession, key: string, texts: SessionTexts, index: 0 | 1) {
    this.#session = session
    this.#key = key
    this.#texts = texts
    this.#index = index
  }

  async perform(action: FullAction): Promise<void> {
    if (action.type === 'delegate') {
      await this.#send([{ question: this.#texts.create('Task'), answer: undefined }])
      return
    }
    this.#change(action)
    await this.#send(this.#turns)
  }

  /** Changes the conversation so that its last turn is the one to answer. */
  #change(action: Exclude<FullAction, { readonly type: 'delegate' }>): void {
    const index = 'turn' in action && this.#turns.length > 0 ? action.turn % this.#turns.length : 0
    const changed = this.#turns[index]
    const last = this.#turns.at(-1)
    if (action.type === 'compact') this.#turns = []
    else if (action.type === 'regenerate' && last !== undefined) {
      this.#texts.takeBack(last.answer)
      last.answer = undefined
      return
    } else if (changed !== undefined) this.#changeTurn(action.type, index, changed)
    if (action.type !== 'go back' || changed === undefined)
      this.#turns.push({
        question: this.#texts.create(action.type === 'compact' ? 'Summary' : 'Question'),
        answer: undefined,
      })
  }

  #changeTurn(type: FullAction['type'], index: number, { question, answer }: Turn): void {
    if (type === 'edit') {
      this.#texts.takeBack(question)
      this.#turns[index] = { question: this.#texts.createVersion('Edited question'), answer }
    } else if (type === 'rewrite answer') {
      this.#texts.takeBack(answer)
      this.#turns[index] = { question, answer: this.#texts.createVersion('Rewritten answer') }
    } else if (type === 'delete') {
      this.#texts.takeBack(question, answer)
      this.#turns.splice(index, 1)
    } else if (type === 'go back') {
      const dropped = this.#turns.splice(index)
      this.#texts.takeBack(...dropped.flatMap((each) => [each.question, each.answer]))
      this.#turns.push({ question: this.#texts.create('Other question'), answer: undefined })
    }
  }

  async #send(turns: readonly Turn[]): Promise<void> {
    const messages = this.#render(turns)
    if (turns.length > 1) this.#hasResent = true
    const response = await this.#session.chat(messages, { 'user-agent': `client-${this.#index}/1.0` }, this.#key)
    expect(response.status).toBe(200)
    const prompt: readonly Message[] = this.#session.model.requests.at(-1)?.body.messages
    if (this.#hasResent) {
      expect(prompt.slice(0, messages.length)).toEqual(messages)
      const added = prompt.slice(messages.length)
      expect(added.length === 0 || (added.length === 1 && isMemoryMessage('chat/completions', added[0]))).toBe(true)
    } else expect(prompt).toContainEqual(messages.at(-1))
    const last = turns.at(-1) as Turn
    last.answer = replyText(response)
    this.#texts.accept(...turns.flatMap(({ question, answer }) => [question, answer as string]))
  }

  #render(turns: readonly Turn[]): readonly Message[] {
    const list = turns.flatMap(({ question, answer }) => [
      user(question),
      ...(answer === undefined ? [] : [assistant(answer)]),
    ])
    if (this.#index === 1) return list
    const marker = { cache_control: { type: 'ephemeral' } }
    return [
      { role: 'system', content: 'Be brief.' },
      ...list.map(({ role, content }, index) => ({
        role,
        content: [{ type: 'text', text: content, ...(index === list.length - 1 ? marker : {}) }],
      })),
    ]
  }
}

async function sendThin(session: TestSession, key: string, texts: SessionTexts): Promise<void> {
  const question = texts.create('Thin question')
  const response = await session.chat([user(question)], { 'x-threadkeep-history': 'thin' }, key)
  expect(response.status).toBe(200)
  expect(session.model.requests.at(-1)?.body.messages.at(-1)).toEqual(user(question))
  texts.accept(question, replyText(response))
}

/** Reads the texts of a session and all its branches. */
async function readStored(session: TestSession, key: string): Promise<ReadonlySet<string>> {
  const lines = [...(await session.transcript(key)), ...Object.values(await session.branches(key)).flat()]
  return new Set(lines.map((line) => line.slice(line.indexOf(': ') + 2)))
}

describe('a session', () => {
  let session: TestSession
  beforeAll(async () => {
    session = await openTestSession({ reply: (_, index) => ({ text: `Answer ${index}.` }) })
  })
  afterAll(() => session[Symbol.asyncDispose]())

  let sessions = 0
  const run = async (actions: readonly Action[]): Promise<void> => {
    const key = `demo:property-${++sessions}`
    const texts = new SessionTexts()
    const clients = [new FullClient(session, key, texts, 0), new FullClient(session, key, texts, 1)] as const
    for (const each of actions) {
      if (each.client === 'thin') await sendThin(session, key, texts)
      else await clients[each.client].perform(each.action)
    }
    expect(texts.findLost(await readStored(session, key))).toEqual([])
    expect(session.server.faults).toEqual([])
  }

  for (const [clients, actions] of cases)
    verifies(
      ['F-01', 'F-04'],
      `with ${clients} › prompts hold what was sent, and no accepted message is lost`,
      () => fc.assert(fc.asyncProperty(actions, run), { numRuns: isCampaign ? 2_000 : 25 }),
      propertyTimeoutMs,
    )
})
