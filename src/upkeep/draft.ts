import { isBlank, parseMessageId, type SequenceRange, type Source } from '../domain/entry.ts'
import { isObject } from '../domain/error.ts'
import { getOrCompute } from '../domain/keyed.ts'
import type { Degradation } from '../domain/ledger.ts'
import { type Pause, runInSlices, type Work } from '../domain/work.ts'
import { findAnchorsInSteps } from '../text/anchors.ts'
import { clip } from '../text/clip.ts'
import { repairJson } from '../text/json.ts'
import { extractFactsInSteps } from './extract/extract.ts'
import { type FactCandidate, factFields } from './extract/fields.ts'
import { groundFactsInSteps } from './extract/ground.ts'
import { callModel, type ModelCall } from './modelCall.ts'
import { correctionPrompt, extractionPrompt, formatMessages, summaryPrompt } from './prompts.ts'
import { addToRuns } from './runs.ts'
import { findInjections } from './summarise/injectionCheck.ts'
import { excerptInSteps, summariseInSteps } from './summarise/summarise.ts'
import { fitsTarget, type SummaryMessage, type SummaryTarget, type SummaryText } from './summarise/summary.ts'
import { findLossesInSteps, reviewReply, type VerifyInput } from './verify.ts'

/** Messages to summarise, the summary of the messages before them, and facts that are stored beside the summary. */
export type SummaryInput = {
  readonly messages: readonly SummaryMessage[]
  readonly previous: (SummaryText & { readonly lossyRanges: readonly SequenceRange[] }) | undefined
  readonly facts?: readonly FactCandidate[]
}

/** A usable summary with its author, the messages it lost content of, and the faults on the way. */
export type SummaryDraft = SummaryText & {
  readonly by: string
  readonly lossyRanges: readonly SequenceRange[]
  readonly faults: readonly Degradation[]
}

/** Longer conversations are reduced to their most relevant parts before they are sent to a model. */
const maxPromptChars = 48_000
const maxCitedMessages = 256
/** A refused summary is requested once more. */
const maxRequests = 2
/** Content beyond this many characters of one message is most likely pasted. It is not read and counts as lost. */
const maxMessageChars = 65_536
/** Longest name of a speaker that a provider accepts. */
const maxNameChars = 64

/** Fault of a step whose messages have no sentences, such as nothing but code, for a summary or an excerpt. */
const noSentences = 'not asked, no sentences'

export type DraftDeps = {
  /** Model to use; without one the built-in rules are used. */
  readonly modelCall: ModelCall | undefined
  readonly signal: AbortSignal
  readonly pause: Pause
}

/**
 * Drafts a summary with the model, if there is one and its text passes verification; otherwise with the built-in rules.
 */
export async function draftSummary(
  original: SummaryInput,
  target: SummaryTarget,
  words: number,
  { modelCall, signal, pause }: DraftDeps,
): Promise<SummaryDraft> {
  const input = { ...original, messages: truncateMessages(original.messages) }
  const summary = await runInSlices(summariseInSteps(input.messages, input.previous, target, input.facts), pause)
  const isEmpty = summary.text === ''
  const baseline = isEmpty ? fallbackSummary(input, target) : summary
  const builtin = {
    ...baseline,
    by: 'builtin',
    lossyRanges: await runInSlices(findLostRuns(baseline.text, original), pause),
    faults: [],
  }
  if (modelCall === undefined) return builtin
  const shown = isEmpty ? [] : await runInSlices(fitToPrompt(input.messages), pause)
  // A summary of summaries has no messages.
  if (isEmpty || (shown.length === 0 && input.messages.length > 0))
    return { ...builtin, faults: [{ step: 'summary', why: noSentences }] }
  const source = { messages: shown, previous: input.previous?.text }
  const written = await writeWithModel(source, baseline.text, target, words, { modelCall, signal, pause })
  if ('why' in written) return { ...builtin, faults: [{ step: 'summary', why: written.why }] }
  const { text } = written
  const sources = await runInSlices(findSources(text, input), pause)
  // Messages beyond the citation limit are added to the lost runs, so that they can still be found.
  const lossyRanges = addSourcesToRuns(
    await runInSlices(findLostRuns(text, original), pause),
    sources.slice(0, -maxCitedMessages),
  )
  return { text, sources: sources.slice(-maxCitedMessages), by: modelCall.model.name, lossyRanges, faults: [] }
}

/**
 * Asks the model for a summary, and once more with the faults of the first one if it has any. Returns the reason if
 * neither can be used.
 */
async function writeWithModel(
  source: Pick<VerifyInput, 'messages' | 'previous'>,
  baseline: string,
  target: SummaryTarget,
  words: number,
  { modelCall, signal, pause }: DraftDeps & { readonly modelCall: ModelCall },
): Promise<{ readonly text: string } | { readonly why: string }> {
  const prompt = summaryPrompt(source, words)
  const verifyInput = { ...source, baseline, prompt: prompt[0]?.content ?? '', target }
  const maxChars = 4_000 + 32 * words
  let request = prompt
  let why = ''
  for (let count = 0; count < maxRequests; count++) {
    const reply = await callModel(modelCall, request, maxChars, signal)
    // A fault of the second call leaves the first summary refused.
    if ('fault' in reply) return { why: why === '' ? reply.fault : why }
    const { text, faults } = await runInSlices(reviewReply(reply.text, verifyInput), pause)
    const [fault] = faults
    if (fault === undefined) return { text }
    why = `refused, ${fault.why}`
    request = correctionPrompt(prompt, reply.text, faults)
  }
  return { why }
}

/** Returns the first words of the input if not even one sentence fits, or the number of messages if there are none. */
export function fallbackSummary({ messages, previous }: SummaryInput, target: SummaryTarget): SummaryText {
  const [first] = messages
  const words = (previous?.text ?? first?.content ?? '').split(/\s+/).filter((word) => word !== '')
  let count = Math.min(words.length, 40)
  while (count > 0 && !fitsTarget(`${words.slice(0, count).join(' ')} …`, target)) count--
  const text = `${words.slice(0, count).join(' ')} …`
  if (count === 0 || findInjections(text).length > 0)
    return { text: messages.length === 0 ? '(earlier messages)' : `(${messages.length} messages)`, sources: [] }
  return { text, sources: previous?.sources ?? (first === undefined ? [] : [{ message: first.id }]) }
}

/** Extracts facts with the model, as far as a user has stated them, and with the built-in rules. */
export async function draftFacts(
  original: readonly SummaryMessage[],
  { modelCall, signal, pause }: DraftDeps,
): Promise<{ readonly facts: readonly FactCandidate[]; readonly faults: readonly Degradation[] }> {
  const messages = truncateMessages(original)
  const builtin = await factsByRules(messages, pause)
  if (modelCall === undefined) return { facts: builtin, faults: [] }
  const shown = await runInSlices(fitToPrompt(messages), pause)
  const fallback = (why: string) => ({ facts: builtin, faults: [{ step: 'facts', why }] })
  if (!shown.some(isUserText)) return messages.some(isUserText) ? fallback(noSentences) : { facts: builtin, faults: [] }
  const reply = await callModel(modelCall, extractionPrompt(shown), 64_000, signal)
  if ('fault' in reply) return fallback(reply.fault)
  const json = repairJson(reply.text)
  if (!isFactRecord(json)) return fallback('refused, not the requested JSON')
  const { facts, rejected } = await runInSlices(groundFactsInSteps(json, messages), pause)
  if (facts.length === 0 && rejected > 0) return fallback('refused, not said by the user')
  // Facts found by the rules and not mentioned by the model are kept.
  return { facts: [...facts, ...builtin.filter(createNewFactTest(facts))], faults: [] }
}

const isUserText = ({ role, content }: SummaryMessage): boolean => role === 'user' && !isBlank(content)

/** Extracts facts with the built-in rules only. */
export const factsByRules = (messages: readonly SummaryMessage[], pause: Pause): Promise<readonly FactCandidate[]> =>
  runInSlices(extractFactsInSteps(truncateMessages(messages)), pause)

/** Cuts what is most likely pasted from messages, and names that no provider accepts. */
export const truncateMessages = <T extends SummaryMessage>(messages: readonly T[]): readonly T[] =>
  messages.map((message) => {
    const { name, content } = message
    if (content.length <= maxMessageChars && (name ?? '').length <= maxNameChars) return message
    return {
      ...message,
      content: content.slice(0, maxMessageChars).toWellFormed(),
      ...(name !== undefined && { name: clip(name, maxNameChars, '…') }),
    }
  })

/** Returns a test for facts that have neither the key nor the passage of a known one. */
export function createNewFactTest(known: readonly FactCandidate[]): (fact: FactCandidate) => boolean {
  const slotOf = ({ field, key }: FactCandidate): string => `${field} ${key}`
  const placeOf = ({ field, source }: FactCandidate): string => `${field} ${source.message}`
  const slots = new Set(known.filter(({ key }) => key !== '').map(slotOf))
  const byPlace = new Map<string, FactCandidate[]>()
  for (const fact of known) getOrCompute(byPlace, placeOf(fact), () => []).push(fact)
  return (fact) => {
    if (slots.has(slotOf(fact))) return false
    if (fact.field === 'source_urls') return true
    const [from, to] = fact.source.span ?? [0, 0]
    return !byPlace.get(placeOf(fact))?.some(({ source: { span: [start, end] = [0, 0] } }) => from < end && start < to)
  }
}

/** True for an object that is empty or has at least one of the requested fields. */
function isFactRecord(json: unknown): boolean {
  if (!isObject(json)) return false
  const names = Object.keys(isObject(json.important_data) ? json.important_data : json)
  return names.length === 0 || names.some((name) => factFields.some((field) => field === name))
}

/** Messages as a model is shown them: of a long conversation, an excerpt. */
function* fitToPrompt(messages: readonly SummaryMessage[]): Work<readonly SummaryMessage[]> {
  if (measurePrompt(messages) <= maxPromptChars) return messages
  return yield* excerptInSteps(messages, maxPromptChars, measurePrompt)
}

/** Characters of messages in a prompt; a lower bound if they exceed the limit, so that no long text is formatted. */
function measurePrompt(messages: readonly SummaryMessage[]): number {
  const chars = messages.reduce((sum, { name, role, content }) => sum + (name ?? role).length + content.length, 0)
  return chars > maxPromptChars ? chars : formatMessages(messages).length
}

/** Finds the sources of a model's text: for each name or number in it, the first message that contains it. */
function* findSources(text: string, { messages, previous }: SummaryInput): Work<readonly Source[]> {
  const unsourced = new Set((yield* findAnchorsInSteps(text)).map((anchor) => anchor.text))
  const cited = new Set<string>(previous?.sources.map(({ message }) => message))
  for (const { id, content } of messages) {
    for (const anchor of yield* findAnchorsInSteps(content)) if (unsourced.delete(anchor.text)) cited.add(id)
    yield content.length
  }
  return [...cited].map((message) => ({ message }))
}

/**
 * Finds the messages with content that a text omits. If it omits content of the previous summary, all sources of that
 * are included.
 */
export function* findLostRuns(text: string, { messages, previous }: SummaryInput): Work<readonly SequenceRange[]> {
  const anchors = new Set((yield* findAnchorsInSteps(text)).map((anchor) => anchor.text))
  const earlierAnchors = previous === undefined ? [] : yield* findAnchorsInSteps(previous.text)
  const omitsPrevious = previous !== undefined && earlierAnchors.some((anchor) => !anchors.has(anchor.text))
  const earlier = omitsPrevious ? previous.sources : []
  const losses = yield* findLossesInSteps(text, truncateMessages(messages))
  const truncated = messages
    .filter(({ content }) => content.length > maxMessageChars)
    .map(({ id }) => ({ message: id }))
  return addSourcesToRuns(previous?.lossyRanges ?? [], [
    ...earlier,
    ...losses.map(({ source }) => source),
    ...truncated,
  ])
}

const addSourcesToRuns = (runs: readonly SequenceRange[], sources: readonly Source[]): readonly SequenceRange[] =>
  addToRuns(
    runs,
    sources.map(({ message }) => parseMessageId(message) ?? 0).filter((sequence) => sequence > 0),
  )
