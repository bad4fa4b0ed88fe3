import fc from 'fast-check'
import type { ComparableMessage } from '../../../src/server/turn/messageEquality.ts'
import { type HistoryChange, reconcile, type StoredMessage } from '../../../src/server/turn/reconcile.ts'

/** A message as its client has it; `id` identifies it. */
type ClientMessage = ComparableMessage & { readonly id: number }

/** The fate of a reply: received, stored but never received, or not produced. */
type Outcome = 'answered' | 'lost' | 'failed'

/** An action of a client. `turn` selects one of its turns modulo their count. */
type ClientAction =
  | { readonly type: 'say'; readonly text: string | undefined; readonly usesTool: boolean; readonly outcome: Outcome }
  | { readonly type: 'edit'; readonly turn: number; readonly text: string | undefined; readonly outcome: Outcome }
  | { readonly type: 'go back'; readonly turn: number; readonly outcome: Outcome }
  | { readonly type: 'forget'; readonly turn: number }
  | { readonly type: 'retry'; readonly outcome: Outcome }

/** The part of its history that a client sends and the changes it makes to it. */
export type Client = {
  /** Maximum number of messages sent; 1 leaves the history to memory. */
  readonly window: number
  readonly style: 'faithful' | 'tidies replies' | 'shortens old replies' | 'dresses its question'
  readonly actions: readonly ClientAction[]
}

const outcome = fc.constantFrom<Outcome>('answered', 'answered', 'answered', 'lost', 'failed')
const text = fc.constantFrom(undefined, undefined, undefined, 'ok', 'yes', 'go on')
const turn = fc.nat({ max: 50 })
const say = fc.record({
  type: fc.constant('say' as const),
  text,
  usesTool: fc.constantFrom(false, false, true),
  outcome,
})
const action = fc.oneof(
  { weight: 6, arbitrary: say },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('edit' as const), turn, text, outcome }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('go back' as const), turn, outcome }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('forget' as const), turn }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('retry' as const), outcome }) },
)

/** Arbitrary clients with their actions. */
export const clients: fc.Arbitrary<Client> = fc.record({
  window: fc.oneof(fc.constant(Number.MAX_SAFE_INTEGER), fc.constant(1), fc.integer({ min: 2, max: 12 })),
  style: fc.constantFrom('faithful', 'tidies replies', 'shortens old replies', 'dresses its question'),
  actions: fc.array(action, { minLength: 1, maxLength: 14, size: 'max' }),
})

const isUser = ({ role }: ComparableMessage): boolean => role === 'user'
const isReply = ({ role }: ComparableMessage): boolean => role === 'assistant'
const formatIds = (line: readonly ClientMessage[]): string => line.map(({ id, role }) => `${role[0]}${id}`).join(' ')

/** Simulates a client and its session, and records deviations from the expected conversation. */
export class SimulatedClient {
  readonly faults: string[] = []
  readonly relations = new Set<HistoryChange['relation']>()
  readonly #client: Client
  #stored: (StoredMessage & ClientMessage)[] = []
  readonly #branches: ClientMessage[] = []
  #history: ClientMessage[] = []
  /** Number of stored messages before those the client shows: it cannot cut these. */
  #hiddenCount = 0
  #lastId = 0

  constructor(client: Client) {
    this.#client = client
  }

  run(): this {
    for (const each of this.#client.actions) this.#perform(each)
    return this
  }

  #perform(action: ClientAction): void {
    if (action.type === 'say') this.#sendMessage(action)
    else if (action.type === 'retry') this.#retry(action.outcome)
    else this.#changeHistory(action)
  }

  #changeHistory(action: Exclude<ClientAction, { type: 'say' | 'retry' }>): void {
    const turns = this.#history.flatMap((message, index) => (isUser(message) ? [index] : []))
    const index = turns[action.turn % turns.length]
    // A client without history, or with questions only, cannot take anything back.
    if (index === undefined || this.#client.window === 1) return
    if (this.#hiddenCount > 0 && index > 0 && !this.#history.slice(0, index).some(isReply)) return
    this.#history = this.#history.slice(0, action.type === 'go back' ? index + 1 : index)
    if (action.type === 'edit') this.#addQuestion(action.text)
    if (action.type !== 'forget') this.#ask(action.outcome)
  }

  #sendMessage({ text: words, usesTool, outcome: result }: ClientAction & { type: 'say' }): void {
    // Without any reply in its history, the client looks like one that leaves replies to memory.
    if (this.#missedReply() && !this.#messagesToSend().some(isReply)) this.#retry('answered')
    this.#addQuestion(words)
    if (usesTool) {
      this.#ask('answered', true)
      const call = this.#history.at(-1)?.toolCalls?.[0]?.id ?? ''
      this.#history.push({
        id: this.#next(),
        role: 'tool',
        content: `Result ${call}: ${'x'.repeat(40)}`,
        toolCallId: call,
      })
    }
    this.#ask(result)
  }

  #retry(result: Outcome): void {
    const newest = this.#history.at(-1)
    if (newest !== undefined && !isReply(newest)) this.#ask(result)
  }

  /** True when the newest stored reply has not reached the client. */
  #missedReply(): boolean {
    return this.#stored.at(-1)?.role === 'assistant' && this.#history.at(-1)?.id !== this.#stored.at(-1)?.id
  }

  #addQuestion(words: string | undefined): void {
    const id = this.#next()
    // Repeating an unanswered question is a retry; repeating the text at this position is going back.
    const isSame = [this.#stored.at(-1), this.#stored[this.#hiddenCount + this.#history.length]].some(
      (message) => message?.content === words,
    )
    const content = words === undefined || isSame || !this.#history.some(isReply) ? `Question ${id}` : words
    this.#history.push({ id, role: 'user', content })
  }

  /** Sends the client's history, applies the decision, and checks the session against the expected conversation. */
  #ask(result: Outcome, withCall = false): void {
    this.#repeatAsNewTurn()
    const sent = this.#messagesToSend().map((message, index, all) => this.#transform(message, index, all))
    const change = this.#reconcile(sent)
    this.relations.add(change.relation)
    const before = this.#stored
    const keptCount =
      change.cutFrom === undefined ? before.length : before.findIndex(({ sequence }) => sequence === change.cutFrom)
    this.#branches.push(...before.slice(keptCount))
    const added = sent.slice(change.newFrom)
    this.#stored = [
      ...before.slice(0, keptCount),
      ...added.map((message, at) => ({ ...message, sequence: keptCount + at + 1 })),
    ]
    const expected = [...before.slice(0, this.#hiddenCount), ...this.#history]
    if (formatIds(this.#stored) !== formatIds(expected)) {
      this.faults.push(
        `${change.relation}: sent ${formatIds(sent)} to ${formatIds(before)}, which became ${formatIds(this.#stored)} instead of ${formatIds(expected)}`,
      )
    }
    if (result !== 'failed') this.#reply(result === 'answered', withCall)
  }

  /**
   * A single message after its reply is a new turn, because nothing shows otherwise; so is one that replaces all
   * others.
   */
  #repeatAsNewTurn(): void {
    const [first, ...others] = this.#messagesToSend()
    if (first === undefined || others.length > 0 || !isUser(first)) return
    const newest = this.#stored.at(-1)
    if (newest?.id === first.id) return
    const isKnown = this.#stored.some(({ id }) => id === first.id)
    const again = isKnown ? { ...first, id: this.#next() } : first
    if (this.#history.length === 1) this.#hiddenCount = this.#stored.length
    this.#history = [...this.#history.slice(0, -1), again]
    if (this.#client.window === 1) this.#history = [...this.#stored.slice(this.#hiddenCount), again]
  }

  /** A window includes the newest reply, if any, because it locates the window. */
  #messagesToSend(): readonly ClientMessage[] {
    const { window } = this.#client
    if (window === 1) return this.#history.slice(-1)
    const reply = this.#history.findLastIndex(isReply)
    return this.#history.slice(Math.max(0, Math.min(this.#history.length - window, reply)))
  }

  /** Reads slightly more than was sent, and everything if that is not enough, as the server does. */
  #reconcile(sent: readonly ClientMessage[]): HistoryChange {
    const read = this.#stored.slice(-(sent.length + 4))
    const change = reconcile(freezeAll(read), freezeAll(sent), { hasEarlier: read.length < this.#stored.length })
    return change.relation === 'disjoint' && read.length < this.#stored.length
      ? reconcile(freezeAll(this.#stored), freezeAll(sent), { hasEarlier: false })
      : change
  }

  #reply(isReceived: boolean, withCall: boolean): void {
    const id = this.#next()
    const calls = [{ id: `call-${id}`, name: 'look', arguments: `{"for":"answer ${id}","deep":true}` }]
    const reply: ClientMessage = withCall
      ? { id, role: 'assistant', content: '', toolCalls: calls }
      : { id, role: 'assistant', content: `<think>Hm.</think>\n\nAnswer ${id}. Yours.` }
    this.#stored.push({ ...reply, sequence: this.#stored.length + 1 })
    if (isReceived) this.#history.push(reply)
  }

  #transform(message: ClientMessage, index: number, all: readonly ClientMessage[]): ClientMessage {
    const { style } = this.#client
    const [before, after] = [all[index - 1], all[index + 1]]
    const { content, toolCalls } = message
    if (style === 'dresses its question' && isUser(message)) {
      return after !== undefined && isReply(after)
        ? message
        : { ...message, content: `${content}\n<found>Page ${message.id}</found>` }
    }
    if (style === 'tidies replies' && isReply(message)) {
      const cleaned = content.replace(/<think>.*<\/think>/, '').trim()
      return {
        ...message,
        content: cleaned,
        ...(toolCalls === undefined ? {} : { toolCalls: toolCalls.map(reformatCall) }),
      }
    }
    const isOld = all.slice(index + 1).some(isReply)
    if (style === 'shortens old replies' && isOld && !isUser(message) && before !== undefined && after !== undefined)
      return { ...message, content: '[left out]' }
    return message
  }

  #next(): number {
    this.#lastId++
    return this.#lastId
  }

  /** Ids stored more than once, in the session or its branches. */
  duplicates(): readonly number[] {
    const all = [...this.#stored, ...this.#branches].map(({ id }) => id)
    return all.filter((id, index) => all.indexOf(id) !== index)
  }
}

const reformatCall = (call: { id: string; name: string; arguments: string }) => {
  const { for: what, deep } = JSON.parse(call.arguments) as { for: string; deep: boolean }
  return { ...call, arguments: JSON.stringify({ deep, for: what }, null, 2) }
}

/** Freezes the input: reconciling must not change it. */
const freezeAll = <T extends object>(list: readonly T[]): readonly T[] =>
  Object.freeze(list.map((each) => Object.freeze({ ...each })))
