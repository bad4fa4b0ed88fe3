import type { Parsed } from '../domain/chat.ts'
import { type Derived, isBlank, type Message, type Said, type Tokens } from '../domain/entry.ts'
import { kept } from '../domain/getOrCompute.ts'
import type { ChatMessage } from '../domain/ledger.ts'
import type { Tokenizer } from '../domain/ports.ts'
import type { Band, Profile, Rung } from '../domain/profile.ts'
import { clip, clipMiddle } from '../text/clip.ts'
import { messageCost } from '../text/cost.ts'
import { digest } from '../text/digest.ts'
import { compactJson } from '../text/json.ts'
import { disarmed } from '../text/memoryTag.ts'
import { selectSentences } from '../text/sections.ts'
import { squeezeSpace, stripComments } from '../text/squeeze.ts'
import { inputOf } from './anthropic.ts'
import type { Fees } from './fees.ts'
import { type Prices, pricers } from './pricers.ts'
import { lineOfStatement, statement } from './statement.ts'
import { isSendable, type Unit } from './unit.ts'
import { chatOf, lineOf, mend } from './wording.ts'

/**
 * A rendering with its price. `text` ends with its separator and begins with a character before which every tokenizer
 * splits, so that the price of a text made of such pieces is the sum of their prices.
 */
export type Form = {
  readonly text: string
  /** As turns of the conversation: mostly one. */
  readonly chat: ChatMessage | readonly ChatMessage[]
  readonly tokens: Tokens
  readonly shortened: boolean
  readonly exact: boolean
}

/** How a unit is shown: as turns of the conversation, or as lines of a block, each with a label before it. */
export type Manner = { readonly show: 'turns' | 'block'; readonly label: string; readonly separator: '\n' | '\n\n' }

export const asTurn: Manner = { show: 'turns', label: '', separator: '\n\n' }

/** How a band shows its units. */
export const mannerOf = (band: Band): Manner =>
  band.show === 'turns'
    ? asTurn
    : { show: 'block', label: band.label ?? '', separator: 'recalled' in band.claim ? '\n' : '\n\n' }

/** Renders entries and remembers what each rendering costs, for as long as the entry itself is in memory. */
export class Renderer {
  readonly tokenizer: Tokenizer
  /** What is paid once in the contexts of a profile. */
  readonly known = new WeakMap<Profile, Map<string, Fees>>()
  readonly #forms = new WeakMap<Message, Map<string, Form | null>>()
  readonly #statements = new WeakMap<Derived, Map<string, Form>>()
  readonly #wholes = new WeakMap<Derived, Form | null>()
  readonly #fees = new Map<string, Tokens>()

  constructor(tokenizer: Tokenizer) {
    this.tokenizer = tokenizer
  }

  /** What a fixed piece of text costs: headings, framing. */
  fee(text: string): Tokens {
    let tokens = this.#fees.get(text)
    if (tokens === undefined) {
      tokens = this.tokenizer.count(text)
      if (this.#fees.size < 4_096) this.#fees.set(text, tokens)
    }
    return tokens
  }

  /** The unit on this rung in at most `room` tokens, or null if it cannot be had. */
  unit(unit: Unit, manner: Manner, rung: Rung, room: Tokens): Form | null {
    if (rung.as === 'sections') return within(this.#sections(unit, manner, room), room)
    // a digest has two hundred characters or more: not worth making for less room
    if (rung.as === 'digest' && room < 40) return null
    if (rung.as !== 'fit') return within(this.#cached(unit, manner, rung), room)
    const whole = this.#cached(unit, manner, { as: 'whole' })
    const most = Math.min(room, rung.tokens ?? room)
    if (whole === null || whole.tokens <= most) return whole
    return rung.tokens !== undefined && rung.tokens <= room
      ? this.#remembered(unit, manner, `fit ${rung.tokens}`, () => this.#fitted(unit, manner, most))
      : this.#fitted(unit, manner, most)
  }

  /** The cheapest rendering of a unit that still shows some of it. */
  shortest(unit: Unit, manner: Manner): Form | null {
    return this.#remembered(unit, manner, 'shortest', () => {
      const bare = this.#form(unit, manner, (content) => clip(content.trim(), 1))
      const others = [this.#cached(unit, manner, { as: 'whole' }), this.#cached(unit, manner, { as: 'squeeze' })]
      return others.reduce(
        (best, form) => (best !== null && form !== null && form.tokens <= best.tokens ? form : best),
        bare,
      )
    })
  }

  derived(entry: Derived, rung: Rung, room: Tokens): Form | null {
    if (rung.as === 'whole') return within(this.#whole(entry), room)
    const text =
      rung.as === 'sections'
        ? statement(entry, (part) => this.#sentences(part, room - around))
        : statement(entry, (part) => shorten(part, rung, entry.kind))
    return within(this.#stated(entry, text), room)
  }

  /** What a derived entry costs when it is shown whole. */
  price(entry: Derived): Tokens {
    return this.#whole(entry)?.tokens ?? 0
  }

  #whole(entry: Derived): Form | null {
    return kept(this.#wholes, entry, () => this.#stated(entry, statement(entry, asSaid)))
  }

  #stated(entry: Derived, text: string): Form | null {
    if (isBlank(text)) return null
    const line = lineOfStatement(text)
    const forms = kept(this.#statements, entry, () => new Map<string, Form>())
    return kept(forms, line, () => ({
      text: line,
      chat: [],
      tokens: this.tokenizer.count(line),
      shortened: text !== statement(entry, asSaid),
      exact: this.tokenizer.isExact(line),
    }))
  }

  #cached(unit: Unit, manner: Manner, rung: Rung): Form | null {
    const isWhole = rung.as === 'whole'
    const message = unit.messages[0] as Message
    // Words alone are mostly sent as they were said, at the price they were stored with: that is made as fast as it is found, and need not be kept.
    if (isWhole && manner === asTurn && isAlone(unit) && message.content.isWellFormed() && this.#isPriced(message))
      return new AsSaid(message, this.tokenizer.isExact(message.content))
    const name = rung.as === 'clip' ? `clip ${rung.characters}` : rung.as
    return this.#remembered(unit, manner, name, () =>
      this.#form(unit, manner, isWhole ? asSaid : (content, role) => shorten(content, rung, role)),
    )
  }

  #remembered(unit: Unit, manner: Manner, rung: string, make: () => Form | null): Form | null {
    const forms = kept(this.#forms, unit.messages[0] as Message, () => new Map<string, Form | null>())
    return kept(
      forms,
      `${rung}${manner.show}${manner.separator}${manner.label}${isAlone(unit) ? '' : `${unit.messages.length}${unit.fault}`}`,
      make,
    )
  }

  #form(unit: Unit, manner: Manner, shortened: (content: string, role: string) => string): Form | null {
    const shown = sendable(unit)
    if (shown.length === 0) return null
    const contents = shown.map((message) =>
      isBlank(message.content) ? message.content : shortened(message.content, message.role),
    )
    const mended = shown.map((message, at) => mend(message, contents[at] as string))
    const calls = unit.fault === undefined
    const { label, separator } = manner
    const text = mended.map((message) => `${label}${lineOf(message, calls)}${separator}`).join('')
    const chat = manner.show === 'turns' ? mended.map((message) => chatOf(message, calls)) : []
    const changed =
      shown.length < unit.messages.length ||
      unit.fault !== undefined ||
      shown.some((message, at) => message.content !== contents[at])
    return {
      text,
      chat,
      tokens: (changed ? undefined : this.#priceIn(unit, manner)) ?? priceOf(this.tokenizer, text, chat),
      shortened: changed,
      exact: this.tokenizer.isExact(text),
    }
  }

  /** What whole messages cost was counted when they were stored. */
  #priceIn({ messages }: Unit, manner: Manner): Tokens | undefined {
    if (!messages.every((message) => this.#isPriced(message))) return undefined
    if (manner.show === 'turns') return messages.reduce((sum, message) => sum + message.tokens, 0)
    return manner.label === '' && manner.separator === '\n'
      ? messages.reduce((sum, message) => sum + message.lineTokens, 0)
      : undefined
  }

  /** What would be shown otherwise than it was said may have been priced as it was said. */
  #isPriced(message: Message): boolean {
    return message.tokenizer === this.tokenizer.name && !isArmed(message)
  }

  /** Beginning and end of each message, as much as `room` allows: a few probes around the length the price suggests. */
  #fitted(unit: Unit, manner: Manner, room: Tokens): Form | null {
    const shortest = within(this.shortest(unit, manner), room)
    if (shortest === null) return null
    const longest = Math.max(...unit.messages.map((message) => message.content.length))
    let best: Form | null = null
    let [low, high] = [0, longest]
    let guess = Math.min(longest - 1, room * 4)
    for (let probe = 0; probe < 12 && guess > low && guess < high; probe++) {
      const form = this.#form(unit, manner, (content) => ends(content, guess))
      if (form === null) return null
      if (form.tokens <= room) {
        best = form
        low = guess
        if (form.tokens >= room * 0.97) break
      } else high = guess
      const scaled = Math.floor((guess * room) / form.tokens)
      guess = scaled > low && scaled < high && probe < 6 ? scaled : (low + high) >> 1
    }
    return best ?? shortest
  }

  #sections(unit: Unit, manner: Manner, room: Tokens): Form | null {
    const whole = this.#cached(unit, manner, { as: 'whole' })
    if (whole === null || whole.tokens <= room) return whole
    const share = Math.floor(room / unit.messages.length) - 16
    return this.#form(unit, manner, (content) => this.#sentences(content, share) || clip(content, 1))
  }

  #sentences(text: string, room: Tokens): string {
    return selectSentences(text, (candidate) => this.tokenizer.count(candidate) <= room)
  }
}

/** A message shown as it was said, at the price it was stored with. Its line is seldom asked for: nothing is made before it is. */
class AsSaid implements Form {
  readonly exact: boolean
  readonly #message: Message

  constructor(message: Message, exact: boolean) {
    this.exact = exact
    this.#message = message
  }

  get text(): string {
    return `${lineOf(this.#message)}\n\n`
  }

  get chat(): ChatMessage {
    const { role, content, name } = this.#message
    // what holds no tag need not be searched for one again
    return role === 'tool' || name !== undefined ? chatOf(this.#message) : { role, content }
  }

  get tokens(): Tokens {
    return this.#message.tokens
  }

  get shortened(): boolean {
    return false
  }
}

const isAlone = (unit: Unit): boolean => unit.messages.length === 1 && unit.fault === undefined
const asSaid = (content: string): string => content

/** What a line has beside its words: what it begins with, and its end. */
const around = 8

const within = (form: Form | null, room: Tokens): Form | null => (form !== null && form.tokens <= room ? form : null)

/** Whether something said could pass for the edge of memory. */
const isArmed = ({ content, name = '', calls }: Message): boolean =>
  hasTag(content) || hasTag(name) || calls?.some((call) => hasTag(call.name) || hasTag(call.arguments)) === true
const hasTag = (text: string): boolean => disarmed(text) !== text

/** White space around a text is the first to go: a cut that shows nothing else would show nothing. */
function ends(content: string, characters: number): string {
  if (content.length <= characters) return content
  const text = content.trim()
  return characters < 60
    ? clip(text, Math.max(1, characters))
    : clipMiddle(text, Math.ceil(characters / 2), Math.floor(characters / 2))
}

function shorten(content: string, rung: Rung, role: string): string {
  if (rung.as === 'squeeze') return squeezeSpace(content)
  if (rung.as === 'json') return compactJson(content)
  if (rung.as === 'uncomment') return squeezeSpace(stripComments(content))
  if (rung.as === 'digest') return digest(content, role)
  return rung.as === 'clip' ? clip(content, rung.characters) : content
}

/** The messages of a unit that a provider takes. */
function sendable(unit: Unit): readonly Message[] {
  if (!isSendable(unit)) return []
  return unit.fault === undefined ? unit.messages : unit.messages.slice(0, 1)
}

/** A turn is shown as a chat message or as text: it is paid for so that both fit. */
function priceOf(tokenizer: Tokenizer, text: string, chat: readonly ChatMessage[]): Tokens {
  let cost = 0
  for (const message of chat) cost += chatCost(tokenizer, message) + restatement(tokenizer, message)
  return Math.max(tokenizer.count(text), cost)
}

/** What it costs more to write calls as Anthropic's API wants them: arguments as an object whatever they were, ids that may be others. */
function restatement(tokenizer: Tokenizer, message: ChatMessage): Tokens {
  const renamed = (id: string): Tokens => Math.max(0, 3 - tokenizer.count(id))
  const restated = (json: string): Tokens =>
    Math.max(0, tokenizer.count(JSON.stringify(inputOf(json))) - tokenizer.count(json))
  if (message.role === 'tool') return renamed(message.tool_call_id)
  const calls = message.role === 'assistant' ? (message.tool_calls ?? []) : []
  return calls.reduce((sum, call) => sum + renamed(call.id) + restated(call.function.arguments), 0)
}

/** What was said with its prices: counted once, when it is stored. */
export function weighed(tokenizer: Tokenizer, said: Parsed, cap = Number.POSITIVE_INFINITY): Said {
  const [tokens, lineTokens] = pricers.get(tokenizer)?.(said) ?? prices(tokenizer, said)
  return { ...said, tokens, lineTokens, tokenizer: tokenizer.name, weight: Math.min(tokens, cap) }
}

function prices(tokenizer: Tokenizer, said: Parsed): Prices {
  const text = `${lineOf(said)}\n\n`
  return [priceOf(tokenizer, text, [chatOf(said)]), tokenizer.count(text.slice(0, -1))]
}

/** What a message costs a provider's client, exactly as it is sent. */
export function chatCost(tokenizer: Tokenizer, message: ChatMessage): Tokens {
  if (message.role === 'tool')
    return messageCost(tokenizer, { role: 'tool', content: message.content, answers: message.tool_call_id })
  const { role, content, name } = message
  const calls =
    role === 'assistant' ? message.tool_calls?.map((call) => ({ id: call.id, ...call.function })) : undefined
  return messageCost(tokenizer, { role, content, name, calls })
}
