import fc from 'fast-check'
import type { ComparableMessage } from '../../../src/server/turn/messageEquality.ts'
import { type HistoryChange, reconcile, type StoredMessage } from '../../../src/server/turn/reconcile.ts'

/** A message as its client has it; the number tells it from all others. */
type Said = ComparableMessage & { readonly id: number }

/** What becomes of the reply: it arrives, it is stored but the client never sees it, or none is made. */
type Outcome = 'answered' | 'lost' | 'failed'

/** What a client does. Which of its turns an edit is about is told by a number that is taken modulo their count. */
type Deed =
  | { readonly does: 'say'; readonly text: string | undefined; readonly usesTool: boolean; readonly outcome: Outcome }
  | { readonly does: 'edit'; readonly turn: number; readonly text: string | undefined; readonly outcome: Outcome }
  | { readonly does: 'go back'; readonly turn: number; readonly outcome: Outcome }
  | { readonly does: 'forget'; readonly turn: number }
  | { readonly does: 'retry'; readonly outcome: Outcome }

/** How a client sends its history, and what it makes of it on the way. */
export type Client = {
  /** How many messages it sends at most; 1 leaves the history to memory. */
  readonly window: number
  readonly manner: 'faithful' | 'tidies replies' | 'shortens old replies' | 'dresses its question'
  readonly deeds: readonly Deed[]
}

const outcome = fc.constantFrom<Outcome>('answered', 'answered', 'answered', 'lost', 'failed')
const text = fc.constantFrom(undefined, undefined, undefined, 'ok', 'yes', 'go on')
const turn = fc.nat({ max: 50 })
const say = fc.record({
  does: fc.constant('say' as const),
  text,
  usesTool: fc.constantFrom(false, false, true),
  outcome,
})
const deed = fc.oneof(
  { weight: 6, arbitrary: say },
  { weight: 2, arbitrary: fc.record({ does: fc.constant('edit' as const), turn, text, outcome }) },
  { weight: 2, arbitrary: fc.record({ does: fc.constant('go back' as const), turn, outcome }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constant('forget' as const), turn }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constant('retry' as const), outcome }) },
)

/** Clients of all kinds, and what they do. */
export const clients: fc.Arbitrary<Client> = fc.record({
  window: fc.oneof(fc.constant(Number.MAX_SAFE_INTEGER), fc.constant(1), fc.integer({ min: 2, max: 12 })),
  manner: fc.constantFrom('faithful', 'tidies replies', 'shortens old replies', 'dresses its question'),
  deeds: fc.array(deed, { minLength: 1, maxLength: 14, size: 'max' }),
})

const isUser = ({ role }: ComparableMessage): boolean => role === 'user'
const isReply = ({ role }: ComparableMessage): boolean => role === 'assistant'
const shown = (line: readonly Said[]): string => line.map(({ id, role }) => `${role[0]}${id}`).join(' ')

/** A client, the session it talks to, and the conversation as both should have it. */
export class Talk {
  readonly faults: string[] = []
  readonly hows = new Set<HistoryChange['relation']>()
  readonly #client: Client
  #line: (StoredMessage & Said)[] = []
  readonly #branches: Said[] = []
  #view: Said[] = []
  /** How much of the session stands before what the client tells: it cannot take back what it does not show. */
  #base = 0
  #given = 0

  constructor(client: Client) {
    this.#client = client
  }

  run(): this {
    for (const each of this.#client.deeds) this.#do(each)
    return this
  }

  #do(deed: Deed): void {
    if (deed.does === 'say') this.#say(deed)
    else if (deed.does === 'retry') this.#retry(deed.outcome)
    else this.#takeBack(deed)
  }

  #takeBack(deed: Exclude<Deed, { does: 'say' | 'retry' }>): void {
    const turns = this.#view.flatMap((message, place) => (isUser(message) ? [place] : []))
    const place = turns[deed.turn % turns.length]
    // Who leaves the history to memory cannot take anything back, nor can who shows only questions that came after others.
    if (place === undefined || this.#client.window === 1) return
    if (this.#base > 0 && place > 0 && !this.#view.slice(0, place).some(isReply)) return
    this.#view = this.#view.slice(0, deed.does === 'go back' ? place + 1 : place)
    if (deed.does === 'edit') this.#utter(deed.text)
    if (deed.does !== 'forget') this.#ask(deed.outcome)
  }

  #say({ text: words, usesTool, outcome: result }: Deed & { does: 'say' }): void {
    // Without any reply to show, a client that never got one looks like one that leaves replies to memory.
    if (this.#isUnseen() && !this.#sent().some(isReply)) this.#retry('answered')
    this.#utter(words)
    if (usesTool) {
      this.#ask('answered', true)
      const call = this.#view.at(-1)?.calls?.[0]?.id ?? ''
      this.#view.push({ id: this.#next(), role: 'tool', content: `Result ${call}: ${'x'.repeat(40)}`, answers: call })
    }
    this.#ask(result)
  }

  #retry(result: Outcome): void {
    const newest = this.#view.at(-1)
    if (newest !== undefined && !isReply(newest)) this.#ask(result)
  }

  /** Whether the newest reply stored has not reached the client. */
  #isUnseen(): boolean {
    return this.#line.at(-1)?.role === 'assistant' && this.#view.at(-1)?.id !== this.#line.at(-1)?.id
  }

  #utter(words: string | undefined): void {
    const id = this.#next()
    // Saying once more what waits for its reply is a retry, and saying what stood here before is going back.
    const isSame = [this.#line.at(-1), this.#line[this.#base + this.#view.length]].some(
      (message) => message?.content === words,
    )
    const content = words === undefined || isSame || !this.#view.some(isReply) ? `Question ${id}` : words
    this.#view.push({ id, role: 'user', content })
  }

  /** Sends the conversation as the client has it, applies what is decided, and checks that the session is the conversation. */
  #ask(result: Outcome, withCall = false): void {
    this.#sayAgain()
    const sent = this.#sent().map((message, place, all) => this.#dress(message, place, all))
    const decided = this.#decide(sent)
    this.hows.add(decided.relation)
    const before = this.#line
    const kept =
      decided.cutFrom === undefined ? before.length : before.findIndex(({ sequence }) => sequence === decided.cutFrom)
    this.#branches.push(...before.slice(kept))
    const news = sent.slice(decided.newFrom)
    this.#line = [...before.slice(0, kept), ...news.map((message, at) => ({ ...message, sequence: kept + at + 1 }))]
    const expected = [...before.slice(0, this.#base), ...this.#view]
    if (shown(this.#line) !== shown(expected)) {
      this.faults.push(
        `${decided.relation}: sent ${shown(sent)} to ${shown(before)}, which became ${shown(this.#line)} instead of ${shown(expected)}`,
      )
    }
    if (result !== 'failed') this.#reply(result === 'answered', withCall)
  }

  /** A message that comes alone after its reply is one more turn: nothing shows that it is not. So is one that is put in the place of all others. */
  #sayAgain(): void {
    const [first, ...others] = this.#sent()
    if (first === undefined || others.length > 0 || !isUser(first)) return
    const newest = this.#line.at(-1)
    if (newest?.id === first.id) return
    const isKnown = this.#line.some(({ id }) => id === first.id)
    const again = isKnown ? { ...first, id: this.#next() } : first
    if (this.#view.length === 1) this.#base = this.#line.length
    this.#view = [...this.#view.slice(0, -1), again]
    if (this.#client.window === 1) this.#view = [...this.#line.slice(this.#base), again]
  }

  /** A window holds a reply, if there is one: it is what tells where the window lies. */
  #sent(): readonly Said[] {
    const { window } = this.#client
    if (window === 1) return this.#view.slice(-1)
    const reply = this.#view.findLastIndex(isReply)
    return this.#view.slice(Math.max(0, Math.min(this.#view.length - window, reply)))
  }

  /** The server reads a little more than was sent, and all of it if that is not enough. */
  #decide(sent: readonly Said[]): HistoryChange {
    const read = this.#line.slice(-(sent.length + 4))
    const decided = reconcile(frozen(read), frozen(sent), { hasEarlier: read.length < this.#line.length })
    return decided.relation === 'disjoint' && read.length < this.#line.length
      ? reconcile(frozen(this.#line), frozen(sent), { hasEarlier: false })
      : decided
  }

  #reply(isSeen: boolean, withCall: boolean): void {
    const id = this.#next()
    const calls = [{ id: `call-${id}`, name: 'look', arguments: `{"for":"answer ${id}","deep":true}` }]
    const reply: Said = withCall
      ? { id, role: 'assistant', content: '', calls }
      : { id, role: 'assistant', content: `<think>Hm.</think>\n\nAnswer ${id}. Yours.` }
    this.#line.push({ ...reply, sequence: this.#line.length + 1 })
    if (isSeen) this.#view.push(reply)
  }

  #dress(message: Said, place: number, all: readonly Said[]): Said {
    const { manner } = this.#client
    const [before, after] = [all[place - 1], all[place + 1]]
    const { content, calls } = message
    if (manner === 'dresses its question' && isUser(message)) {
      return after !== undefined && isReply(after)
        ? message
        : { ...message, content: `${content}\n<found>Page ${message.id}</found>` }
    }
    if (manner === 'tidies replies' && isReply(message)) {
      const tidy = content.replace(/<think>.*<\/think>/, '').trim()
      return { ...message, content: tidy, ...(calls === undefined ? {} : { calls: calls.map(tidied) }) }
    }
    const isOld = all.slice(place + 1).some(isReply)
    if (manner === 'shortens old replies' && isOld && !isUser(message) && before !== undefined && after !== undefined)
      return { ...message, content: '[left out]' }
    return message
  }

  #next(): number {
    this.#given++
    return this.#given
  }

  /** What was said more than once, in the session or in what was cut off it. */
  repeated(): readonly number[] {
    const all = [...this.#line, ...this.#branches].map(({ id }) => id)
    return all.filter((id, place) => all.indexOf(id) !== place)
  }
}

const tidied = (call: { id: string; name: string; arguments: string }) => {
  const { for: what, deep } = JSON.parse(call.arguments) as { for: string; deep: boolean }
  return { ...call, arguments: JSON.stringify({ deep, for: what }, null, 2) }
}

/** Deciding changes nothing that it is given. */
const frozen = <T extends object>(list: readonly T[]): readonly T[] =>
  Object.freeze(list.map((each) => Object.freeze({ ...each })))
