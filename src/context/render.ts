import { type DerivedEntry, isBlank, type Message, type Tokens } from '../domain/entry.ts'
import { getOrCompute } from '../domain/keyed.ts'
import type { ChatMessage } from '../domain/ledger.ts'
import type { Tokenizer } from '../domain/ports.ts'
import type { Band, RenderStep } from '../domain/profile.ts'
import { runSync, type Work } from '../domain/work.ts'
import { clip } from '../text/clip.ts'
import { escapeMemoryTags, escapeMemoryTagsInSteps } from '../text/fences.ts'
import type { PassageRange } from '../text/passages.ts'
import { selectSentencesInSteps } from '../text/selectSentences.ts'
import {
  findMemoryTag,
  formatDerived,
  formatLine,
  hasMemoryTag,
  isLong,
  type Rendering,
  textOfDerived,
  toChatMessage,
  toMemoryLine,
  VerbatimRendering,
  withContent,
  withSource,
} from './entryText.ts'
import { countRendering } from './measureMessage.ts'
import { joinPassages, keepEnd, keepEnds, shortenInSteps } from './shorten.ts'

/** Reason why a stored message cannot be sent as it is. */
export type UnitFault = 'empty message' | 'tool result without its call' | 'tool call without its result'

/**
 * Smallest part of a conversation that is shown or left out: one message, or an assistant's tool calls with all their
 * results, because providers reject one without the other.
 */
export type Unit = {
  readonly messages: readonly Message[]
  readonly fault: UnitFault | undefined
  /** Only this part of the only message. */
  readonly passage?: PassageRange
  /** Text shown in place of the only message's text. */
  readonly excerpt?: string
  /** Chosen for another reason than a match: for its neighbours, to fill the budget, or because work refers to it. */
  readonly basis?: 'nearby' | 'filler' | 'work'
}

/** Creates a unit of one message. */
export const singleUnit = (message: Message, fault?: UnitFault): Unit => ({ messages: [message], fault })

export const firstSequence = (unit: Unit): number => (unit.messages[0] as Message).sequence
/** Sequence number of the last message of a unit. */
export const lastSequence = (unit: Unit): number => (unit.messages.at(-1) as Message).sequence

/** True if a provider accepts at least part of the unit: of a call without its results, the text sent with it. */
export const isSendable = ({ fault, messages }: Unit): boolean =>
  fault === undefined || (fault === 'tool call without its result' && !isBlank((messages[0] as Message).content))

/** Groups consecutive messages, starting at index `from`, into units. */
export function groupIntoUnits(messages: readonly Message[], from = 0): Unit[] {
  const units: Unit[] = []
  for (let at = from; at < messages.length; ) {
    const unit = readUnit(messages, at)
    units.push(unit)
    at += unit.messages.length
  }
  return units
}

/** True if the message may be separated from its tool call or results at the edge of a page. */
export const mayBeSplit = (message: Message | undefined): boolean =>
  message !== undefined && (message.role === 'tool' || message.toolCalls !== undefined)

function readUnit(messages: readonly Message[], at: number): Unit {
  const message = messages[at] as Message
  if (message.role === 'tool') return singleUnit(message, 'tool result without its call')
  if (message.toolCalls === undefined || message.toolCalls.length === 0)
    return singleUnit(message, isBlank(message.content) ? 'empty message' : undefined)
  const openCalls = new Set(message.toolCalls.map((call) => call.id))
  const hasUniqueIds = openCalls.size === message.toolCalls.length
  let end = at + 1
  for (; end < messages.length; end++) {
    const result = messages[end] as Message
    if (result.role !== 'tool' || !openCalls.delete(result.toolCallId ?? '')) break
  }
  return {
    messages: messages.slice(at, end),
    fault: hasUniqueIds && openCalls.size === 0 ? undefined : 'tool call without its result',
  }
}

/** Form of a unit in the context: chat turns, or labelled lines of a text block. */
export type RenderMode = { readonly show: 'turns' | 'block'; readonly label: string; readonly separator: '\n' | '\n\n' }

/** Renders a unit as turns of the conversation. */
export const turnMode: RenderMode = { show: 'turns', label: '', separator: '\n\n' }

export const renderModeOf = (band: Band): RenderMode =>
  band.renderAs === 'turns'
    ? turnMode
    : { show: 'block', label: band.label ?? '', separator: 'recalled' in band.claim ? '\n' : '\n\n' }

/** A digest has at least 200 characters, so it is not attempted with less room than this. */
const minDigestTokens = 40
/** Tokens of a memory line beside its text: prefix and newline. */
const memoryLineOverheadTokens = 8
const maxCachedFixedTexts = 4_096
/** A longer text is shortest when it is cut to its first character. */
const maxShortestCharacters = 16_384
/** A longer text is not rewritten: hardly any budget has room for the result. */
const maxRewrittenCharacters = 262_144
/** Renderings of shorter texts need no pause after them. */
const minPausedCharacters = 4_096

/** Returns another form of a message's content, at once or in steps. */
type Shorten = (content: string, role: string) => string | Work<string>

/** Renders entries within token limits. Caches renderings for as long as the entry object is in memory. */
export class Renderer {
  readonly tokenizer: Tokenizer
  readonly #unitRenderings = new WeakMap<Message, Map<string, Rendering | null>>()
  readonly #derivedRenderings = new WeakMap<DerivedEntry, Map<string, Rendering>>()
  readonly #wholeDerived = new WeakMap<DerivedEntry, Rendering | null>()
  readonly #fixedTexts = new Map<string, Tokens>()

  constructor(tokenizer: Tokenizer) {
    this.tokenizer = tokenizer
  }

  /** Counts a fixed text, such as a heading, with a cache. */
  countFixed(text: string): Tokens {
    let tokens = this.#fixedTexts.get(text)
    if (tokens === undefined) {
      tokens = this.tokenizer.count(text)
      if (this.#fixedTexts.size < maxCachedFixedTexts) this.#fixedTexts.set(text, tokens)
    }
    return tokens
  }

  /** Renders a unit with one render step in at most `maxTokens`, or returns null. */
  renderUnit(unit: Unit, mode: RenderMode, step: RenderStep, maxTokens: Tokens): Rendering | null {
    return runSync(this.renderUnitInSteps(unit, mode, step, maxTokens))
  }

  /** `renderUnit` as interruptible work. */
  *renderUnitInSteps(unit: Unit, mode: RenderMode, step: RenderStep, maxTokens: Tokens): Work<Rendering | null> {
    if (step.as === 'sections') return ifFits(yield* this.#renderSections(unit, mode, maxTokens), maxTokens)
    if (step.as === 'digest' && maxTokens < minDigestTokens) return null
    if (isRewriting(step) && unit.messages.some(({ content }) => content.length > maxRewrittenCharacters)) return null
    if (step.as === 'whole' && this.#isFarOver(unit, maxTokens)) return null
    if (step.as !== 'fit' && step.as !== 'end') return ifFits(yield* this.#renderStep(unit, mode, step), maxTokens)
    const limit = step.as === 'end' ? maxTokens : Math.min(maxTokens, step.tokens ?? maxTokens)
    if (!this.#isFarOver(unit, limit)) {
      const whole = yield* this.#renderStep(unit, mode, { as: 'whole' })
      if (whole === null || whole.tokens <= limit) return whole
    }
    if (step.as === 'end') return yield* this.#renderToFit(unit, mode, limit, keepEnd)
    return step.tokens !== undefined && step.tokens <= maxTokens
      ? yield* this.#getOrRender(unit, mode, `fit ${step.tokens}`, () => this.#renderToFit(unit, mode, limit))
      : yield* this.#renderToFit(unit, mode, limit)
  }

  /**
   * Renders passages of a message, in their order, as one line of a block with `…` for each part left out. Returns null
   * if they need more than `maxTokens`.
   */
  renderPassages(
    message: Message,
    passages: readonly PassageRange[],
    mode: RenderMode,
    maxTokens: Tokens,
  ): Rendering | null {
    const characters = passages.reduce((sum, [start, end]) => sum + end - start, 0)
    // Counting costs more than most passages are worth that clearly do not fit.
    if (message.lineTokens * (characters / message.content.length) * 0.7 > maxTokens) return null
    const unit = singleUnit(message)
    const name = `passages ${passages.join(' ')}`
    const render = () => this.#render(unit, mode, (content) => joinPassages(content, passages))
    return ifFits(runSync(this.#getOrRender(unit, mode, name, render)), maxTokens)
  }

  /** Renders an excerpt of a message as one line of a block, or returns null. */
  renderExcerpt(unit: Unit, excerpt: string, mode: RenderMode, maxTokens: Tokens): Rendering | null {
    return ifFits(runSync(this.#render(unit, mode, () => excerpt)), maxTokens)
  }

  /** Returns the cheapest rendering of a unit that still shows part of it. */
  *renderShortest(unit: Unit, mode: RenderMode): Work<Rendering | null> {
    return yield* this.#getOrRender(unit, mode, 'shortest', () => this.#findShortest(unit, mode))
  }

  *#findShortest(unit: Unit, mode: RenderMode): Work<Rendering | null> {
    let best = yield* this.#render(unit, mode, (content) => clip(content.trim(), 1))
    // No token is long enough for another form of these to be shorter.
    if (unit.messages.some(({ content }) => content.length > maxShortestCharacters)) return best
    for (const as of ['whole', 'squeeze'] as const) {
      const rendering = yield* this.#renderStep(unit, mode, { as })
      if (best !== null && rendering !== null && rendering.tokens <= best.tokens) best = rendering
    }
    return best
  }

  /** Renders a derived entry with one render step in at most `maxTokens`, or returns null. Interruptible work. */
  *renderDerived(entry: DerivedEntry, step: RenderStep, maxTokens: Tokens): Work<Rendering | null> {
    if (step.as === 'whole') return ifFits(this.#renderWholeDerived(entry), maxTokens)
    const text = textOfDerived(entry)
    const shortened =
      step.as === 'sections'
        ? yield* this.#selectSentences(text, maxTokens - memoryLineOverheadTokens)
        : yield* shortenInSteps(text, step, entry.kind)
    return ifFits(
      this.#renderDerivedText(
        entry,
        formatDerived(entry, () => shortened),
      ),
      maxTokens,
    )
  }

  /** Returns the tokens of a derived entry shown whole; 0 if it has no text. */
  tokenCostOf(entry: DerivedEntry): Tokens {
    return this.#renderWholeDerived(entry)?.tokens ?? 0
  }

  #renderWholeDerived(entry: DerivedEntry): Rendering | null {
    return getOrCompute(this.#wholeDerived, entry, () =>
      this.#renderDerivedText(entry, formatDerived(entry, unchanged)),
    )
  }

  #renderDerivedText(entry: DerivedEntry, text: string): Rendering | null {
    if (isBlank(text)) return null
    const line = toMemoryLine(text)
    const renderings = getOrCompute(this.#derivedRenderings, entry, () => new Map<string, Rendering>())
    return getOrCompute(renderings, line, () => ({
      text: line,
      chat: [],
      tokens: this.tokenizer.count(line),
      shortened: text !== formatDerived(entry, unchanged),
      exact: this.tokenizer.isExact(line),
    }))
  }

  *#renderStep(unit: Unit, mode: RenderMode, step: RenderStep): Work<Rendering | null> {
    const isWhole = step.as === 'whole'
    const message = unit.messages[0] as Message
    for (const each of unit.messages) if (isLong(each)) yield* findMemoryTag(each)
    // Most messages are sent verbatim at their stored cost. That rendering is as cheap to create as to look up, so it
    // is not cached.
    if (
      isWhole &&
      mode === turnMode &&
      isSingle(unit) &&
      message.content.isWellFormed() &&
      this.#hasStoredCost(message)
    )
      return new VerbatimRendering(message, this.tokenizer)
    const name = step.as === 'clip' ? `clip ${step.characters}` : step.as
    return yield* this.#getOrRender(unit, mode, name, () =>
      this.#render(unit, mode, isWhole ? unchanged : (content, role) => shortenInSteps(content, step, role)),
    )
  }

  *#getOrRender(
    unit: Unit,
    mode: RenderMode,
    step: string,
    render: () => Work<Rendering | null>,
  ): Work<Rendering | null> {
    const renderings = getOrCompute(
      this.#unitRenderings,
      unit.messages[0] as Message,
      () => new Map<string, Rendering | null>(),
    )
    const group = isSingle(unit) ? '' : `${unit.messages.length}${unit.fault}`
    const name = `${step}${mode.show}${mode.separator}${mode.label}${group}`
    const known = renderings.get(name)
    if (known !== undefined) return known
    const rendering = yield* render()
    renderings.set(name, rendering)
    return rendering
  }

  *#render(unit: Unit, mode: RenderMode, shortenContent: Shorten): Work<Rendering | null> {
    const sendable = sendableMessages(unit)
    if (sendable.length === 0) return null
    const contents: string[] = []
    for (const { content, role } of sendable) {
      const shortened = isBlank(content) ? content : shortenContent(content, role)
      contents.push(typeof shortened === 'string' ? shortened : yield* shortened)
    }
    const messages = sendable.map((message, at) => withContent(message, contents[at] as string))
    const escaped: string[] = []
    for (const { content } of messages)
      escaped.push(
        content.length > minPausedCharacters ? yield* escapeMemoryTagsInSteps(content) : escapeMemoryTags(content),
      )
    const withCalls = unit.fault === undefined
    const lines = messages.map((message, at) => ({ message, escaped: escaped[at] as string }))
    const text = formatLines({ lines, withCalls, mode })
    const isChanged =
      sendable.length < unit.messages.length ||
      unit.fault !== undefined ||
      sendable.some((message, at) => message.content !== contents[at])
    const chat =
      mode.show === 'turns' ? messages.map((message, at) => toChatMessage(message, withCalls, escaped[at])) : []
    const isOriginal = !isChanged && !sendable.some(hasMemoryTag)
    const tokens =
      (isChanged ? undefined : this.#storedCost(unit, mode)) ?? (yield* countRendering(this.tokenizer, text, chat))
    if (text.length > minPausedCharacters) yield text.length
    return createRendering(
      { lines, withCalls, mode },
      isOriginal ? chat.map((message, at) => withSource(message, sendable[at] as Message)) : chat,
      { tokens, shortened: isChanged },
      this.tokenizer,
    )
  }

  /**
   * True if long messages certainly do not fit whole, so that they need not be rendered to find out. Escaped memory
   * tags change the stored cost a little.
   */
  #isFarOver(unit: Unit, maxTokens: Tokens): boolean {
    if (unit.fault !== undefined || !unit.messages.some(isLong)) return false
    const isMeasured = unit.messages.every(({ tokenizer }) => tokenizer === this.tokenizer.name)
    return isMeasured && unit.messages.reduce((sum, { lineTokens }) => sum + lineTokens, 0) > 2 * maxTokens
  }

  /** Returns the cost that was computed when the messages were stored, if it applies to this mode. */
  #storedCost({ messages }: Unit, mode: RenderMode): Tokens | undefined {
    if (!messages.every((message) => this.#hasStoredCost(message))) return undefined
    if (mode.show === 'turns') return messages.reduce((sum, message) => sum + message.tokens, 0)
    return mode.label === '' && mode.separator === '\n'
      ? messages.reduce((sum, message) => sum + message.lineTokens, 0)
      : undefined
  }

  /** False if the message contains a memory tag: it is rendered differently from the text that was counted. */
  #hasStoredCost(message: Message): boolean {
    return message.tokenizer === this.tokenizer.name && !hasMemoryTag(message)
  }

  /**
   * Keeps the start and end of each message, as much as fits. Probes a few lengths around the one the token count
   * suggests.
   */
  *#renderToFit(unit: Unit, mode: RenderMode, maxTokens: Tokens, keep = keepEnds): Work<Rendering | null> {
    const shortest = ifFits(yield* this.renderShortest(unit, mode), maxTokens)
    if (shortest === null) return null
    const longest = unit.messages.reduce((max, { content }) => Math.max(max, content.length), 0)
    let best: Rendering | null = null
    let [low, high] = [0, longest]
    let characters = Math.min(longest - 1, maxTokens * 4)
    for (let probe = 0; probe < 12 && characters > low && characters < high; probe++) {
      const rendering: Rendering | null = yield* this.#render(unit, mode, (content) => keep(content, characters))
      if (rendering === null) return null
      if (rendering.tokens <= maxTokens) {
        best = rendering
        low = characters
        if (rendering.tokens >= maxTokens * 0.97) break
      } else high = characters
      const scaled = Math.floor((characters * maxTokens) / rendering.tokens)
      characters = scaled > low && scaled < high && probe < 6 ? scaled : (low + high) >> 1
    }
    return best ?? shortest
  }

  *#renderSections(unit: Unit, mode: RenderMode, maxTokens: Tokens): Work<Rendering | null> {
    if (!this.#isFarOver(unit, maxTokens)) {
      const whole = yield* this.#renderStep(unit, mode, { as: 'whole' })
      if (whole === null || whole.tokens <= maxTokens) return whole
    }
    const tokensPerMessage = Math.floor(maxTokens / unit.messages.length) - 16
    const selectSentences = (text: string): Work<string> => this.#selectSentences(text, tokensPerMessage)
    return yield* this.#render(unit, mode, function* (content) {
      return (yield* selectSentences(content)) || clip(content, 1)
    })
  }

  #selectSentences(text: string, maxTokens: Tokens): Work<string> {
    return selectSentencesInSteps(text, (candidate) => this.tokenizer.count(candidate) <= maxTokens)
  }
}

/** Messages, and their contents with escaped memory tags, before they are one text. */
type Lines = {
  readonly lines: readonly { readonly message: Message; readonly escaped: string }[]
  readonly withCalls: boolean
  readonly mode: RenderMode
}

const formatLines = ({ lines, withCalls, mode: { label, separator } }: Lines): string =>
  lines.map(({ message, escaped }) => `${label}${formatLine(message, withCalls, escaped)}${separator}`).join('')

/** Writes the text when it is asked for: renderings are kept for their token counts, and few of them are shown. */
const createRendering = (
  lines: Lines,
  chat: readonly ChatMessage[],
  { tokens, shortened }: Pick<Rendering, 'tokens' | 'shortened'>,
  tokenizer: Tokenizer,
): Rendering => ({
  get text() {
    return formatLines(lines)
  },
  chat,
  tokens,
  shortened,
  get exact() {
    return tokenizer.isExact(formatLines(lines))
  },
})

const isRewriting = ({ as }: RenderStep): boolean => as === 'json' || as === 'uncomment'
const isSingle = (unit: Unit): boolean => unit.messages.length === 1 && unit.fault === undefined
const unchanged = (content: string): string => content

const ifFits = (rendering: Rendering | null, maxTokens: Tokens): Rendering | null =>
  rendering !== null && rendering.tokens <= maxTokens ? rendering : null

/** Returns the messages of a unit that a provider accepts. */
function sendableMessages(unit: Unit): readonly Message[] {
  if (!isSendable(unit)) return []
  return unit.fault === undefined ? unit.messages : unit.messages.slice(0, 1)
}
