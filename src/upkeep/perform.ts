import {
  isBlank,
  type Message,
  type Millis,
  parseMessageId,
  type Summary,
  type Tokens,
  type TuningParameters,
} from '../domain/entry.ts'
import type { Key } from '../domain/key.ts'
import type { Degradation } from '../domain/ledger.ts'
import type { Store, Tokenizer } from '../domain/ports.ts'
import type { Profile } from '../domain/profile.ts'
import type { SessionHead } from '../domain/session.ts'
import { runInSlices } from '../domain/work.ts'
import { combineCalls } from './combinedCall.ts'
import {
  type DraftDeps,
  draftFacts,
  draftSummary,
  factsByRules,
  type SummaryDraft,
  type SummaryInput,
} from './draft.ts'
import { proposeKnowledge } from './learn/learn.ts'
import { isModelFault } from './modelCall.ts'
import { optimizeInSteps } from './optimizer/optimizer.ts'
import { optimizerRuns, type StepOutcome } from './outcome.ts'
import { hourOfSummary, hourSummaryId, maxSummaryTokens, summariesOfTier, type UpkeepStep } from './plan.ts'
import { extractionInstructions } from './prompts.ts'

type PerformDeps = DraftDeps & {
  readonly profile: Profile
  readonly store: Store
  readonly tokenizer: Tokenizer
  /** Reads the optimizer parameters that sessions of the scope share. */
  readonly scopeTuning: (key: Key) => Promise<TuningParameters | undefined>
}

type StepOf<K extends UpkeepStep['kind']> = Extract<UpkeepStep, { kind: K }>

/** Number of newest messages that the optimizer reviews. */
const maxOptimizedMessages = 2_000
/** Characters summarised in one step; the first message is always included. The rest is due again at once. */
const maxCharsPerStep = 524_288

/** Performs a step and returns the changes to commit; undefined when there is nothing to do. Writes nothing. */
export function perform(
  step: UpkeepStep,
  head: SessionHead,
  deps: PerformDeps,
  now: Millis,
): Promise<StepOutcome | undefined> {
  switch (step.kind) {
    case 'compact':
      return compact(step, head, deps, now)
    case 'summariseHour':
      return summariseHour(step, head, deps, now)
    case 'summariseSession':
      return summariseSession(step, head, deps, now)
    case 'reextractFacts':
      return reextractFacts(step, head, deps)
    case 'optimize':
      return optimizeSession(head, deps, now)
    case 'learn':
      return learn(step, head, deps)
    case 'adoptTuning':
      return adoptTuning(head, deps)
  }
}

/** Uses the built-in rules only: sending the whole conversation to the model again is not worth its price. */
async function reextractFacts(
  { last }: StepOf<'reextractFacts'>,
  head: SessionHead,
  { store, pause }: PerformDeps,
): Promise<StepOutcome> {
  const facts: StepOutcome['facts'][number][] = []
  for (let after = 0; after < last; ) {
    const page = await store.readMessages(head.key, { after, before: last + 1, limit: 500 })
    facts.push(...(await factsByRules(page, pause)))
    after = page.at(-1)?.sequence ?? last
  }
  const messages = [...new Set(facts.map(({ source }) => parseMessageId(source.message) ?? 0))]
  return { basis: { epoch: head.epoch, messages, summaries: [] }, put: [], drop: [], facts, notes: {} }
}

async function compact(
  step: StepOf<'compact'>,
  head: SessionHead,
  deps: PerformDeps,
  now: Millis,
): Promise<StepOutcome | undefined> {
  const { task, previous } = step
  const { messages, isPartial } = await readMessagesBefore(deps.store, head, previous?.covers[1] ?? 0, step.endOffset)
  const hasText = messages.some(({ content }) => !isBlank(content))
  // Less than a portion is left when a tool call would have to be split from its results.
  if (!hasText || (!isPartial && endOf(messages) - step.startOffset < step.minTokens)) return undefined
  const version = (previous?.version ?? 0) + 1
  const words = task.words[Math.min(version, task.words.length) - 1] as readonly [number, number]
  const target = { words, fits: fitsTokens(deps.tokenizer, maxSummaryTokens(deps.profile)) }
  const { modelCall } = deps
  const combined = task.facts && modelCall ? combineCalls(modelCall, extractionInstructions) : undefined
  const draftDeps = combined ? { ...deps, modelCall: combined.summary } : deps
  // With a model, the built-in summary is what the model's one is checked against, so it has everything.
  const facts = task.facts && modelCall === undefined ? await factsByRules(messages, deps.pause) : []
  const draft = await draftSummary({ messages, previous, facts }, target, words[0], draftDeps)
  const extracted = combined
    ? await extractFacts(messages, draft, { ...deps, modelCall: combined.facts() })
    : { facts, faults: [] }
  const replaced = previous === undefined ? [] : [previous]
  const summary = buildSummary('progressive', 'summary', { messages, draft, replaced, now })
  return buildOutcome(head, messages, summary, replaced, {
    facts: extracted.facts,
    faults: [...draft.faults, ...extracted.faults],
  })
}

/** Extracts facts. A model that has not answered for the summary is not called again. */
async function extractFacts(
  messages: readonly Message[],
  { faults }: SummaryDraft,
  deps: PerformDeps,
): ReturnType<typeof draftFacts> {
  const fault = faults.find(({ why }) => isModelFault(why))
  if (fault === undefined) return draftFacts(messages, deps)
  return { facts: await factsByRules(messages, deps.pause), faults: [{ step: 'facts', why: fault.why }] }
}

async function summariseHour(
  { task, after }: StepOf<'summariseHour'>,
  head: SessionHead,
  deps: PerformDeps,
  now: Millis,
): Promise<StepOutcome | undefined> {
  const page = await deps.store.readMessages(head.key, { after, limit: task.batch + task.keep + 1 })
  const messages = takeBatch(page, task.batch)
  const last = messages.at(-1)
  if (last === undefined) return undefined
  const newest = summariesOfTier(head.derived, 'hour').at(-1)
  // A clock may have been set back: later messages never go into an earlier hour.
  const ownId = hourSummaryId(Math.min(last.at, now))
  const id = newest !== undefined && hourOfSummary(ownId) <= hourOfSummary(newest.id) ? newest.id : ownId
  const previous = newest?.id === id ? newest : undefined
  const limit = tokensOf(deps.tokenizer, previous) + task.share * messages.reduce((sum, { tokens }) => sum + tokens, 0)
  const [draft, facts] = await Promise.all([
    draftWithin({ messages, previous }, limit, deps),
    // Without the model: a second call for every batch is not worth its price.
    task.facts === true ? factsByRules(messages, deps.pause) : [],
  ])
  const replaced = previous === undefined ? [] : [previous]
  return buildOutcome(head, messages, buildSummary('hour', id, { messages, draft, replaced, now }), replaced, {
    facts,
    faults: draft.faults,
  })
}

/**
 * Takes up to `maxMessages` messages without splitting a tool call from its results; if the first unit is longer, all
 * of that.
 */
function takeBatch(page: readonly Message[], maxMessages: number): readonly Message[] {
  const batch = withoutSplitCall(page.slice(0, maxMessages), page[maxMessages])
  if (batch.length > 0) return batch
  const next = page.findIndex(({ role }, index) => index > 0 && role !== 'tool')
  return next < 0 ? page : page.slice(0, next)
}

async function summariseSession(
  { task, hours, previous }: StepOf<'summariseSession'>,
  head: SessionHead,
  deps: PerformDeps,
  now: Millis,
): Promise<StepOutcome | undefined> {
  const replaced = previous === undefined ? hours : [previous, ...hours]
  const combined = {
    text: replaced.map(({ text }) => text).join('\n'),
    sources: replaced.flatMap(({ sources }) => sources),
    lossyRanges: replaced.flatMap(({ lossyRanges }) => lossyRanges),
  }
  const hourTokens = hours.reduce((sum, summary) => sum + tokensOf(deps.tokenizer, summary), 0)
  const limit = tokensOf(deps.tokenizer, previous) + task.share * hourTokens
  const draft = await draftWithin({ messages: [], previous: combined }, limit, deps)
  return buildOutcome(head, [], buildSummary('session', 'session', { messages: [], draft, replaced, now }), replaced, {
    facts: [],
    faults: draft.faults,
  })
}

/** Newest messages that knowledge is learnt from, at most. */
const maxLearnedMessages = 200

async function learn(
  { after, usesModel }: StepOf<'learn'>,
  head: SessionHead,
  { modelCall, ...deps }: PerformDeps,
): Promise<StepOutcome> {
  const { lastSequence } = head
  const first = Math.max(after, lastSequence - maxLearnedMessages)
  const messages = await deps.store.readMessages(head.key, { after: first, limit: maxLearnedMessages })
  const draftDeps = { ...deps, modelCall: usesModel ? modelCall : undefined }
  const { knowledge, faults } = await proposeKnowledge(messages, deps.profile.knowledgePolicy, draftDeps)
  const basis = { epoch: head.epoch, messages: messages.map(({ sequence }) => sequence), summaries: [] }
  return { basis, put: [], drop: [], facts: [], notes: { learned: lastSequence, faults }, knowledge }
}

async function adoptTuning(head: SessionHead, { scopeTuning }: PerformDeps): Promise<StepOutcome | undefined> {
  const parameters = await scopeTuning(head.key)
  if (parameters === undefined) return undefined
  const basis = { epoch: head.epoch, messages: [], summaries: [], optimizerRuns: 0 }
  return { basis, put: [], drop: [], facts: [], notes: { tuning: { parameters, runs: 0, saved: 0, snapshots: [] } } }
}

async function optimizeSession(
  head: SessionHead,
  { store, profile, tokenizer, pause }: PerformDeps,
  now: Millis,
): Promise<StepOutcome | undefined> {
  const messages = await store.readMessages(head.key, { limit: maxOptimizedMessages, newest: true })
  const work = optimizeInSteps(messages, head, { budget: profile.budget, tokenizer, now })
  const { items, notes } = await runInSlices(work, pause)
  const basis = {
    epoch: head.epoch,
    messages: items.map(({ id }) => parseMessageId(id.slice(1)) ?? 0),
    summaries: [],
    optimizerRuns: optimizerRuns(head),
  }
  return { basis, put: items, drop: [], facts: [], notes }
}

/** Drafts a summary of at most `limit` tokens and a third of the room for summaries, but allows at least 16 tokens. */
function draftWithin(input: SummaryInput, limit: Tokens, deps: PerformDeps): Promise<SummaryDraft> {
  const maxTokens = Math.max(16, Math.floor(Math.min(limit, maxSummaryTokens(deps.profile) / 3)))
  const target = { fits: fitsTokens(deps.tokenizer, maxTokens) }
  return draftSummary(input, target, Math.max(10, Math.floor(maxTokens * 0.6)), deps)
}

const fitsTokens =
  (tokenizer: Tokenizer, maxTokens: Tokens) =>
  (text: string): boolean =>
    tokenizer.count(text) <= maxTokens

const tokensOf = (tokenizer: Tokenizer, summary: Summary | undefined): Tokens =>
  summary === undefined ? 0 : tokenizer.count(summary.text)

type SummaryParts = {
  readonly messages: readonly Message[]
  readonly draft: SummaryDraft
  readonly replaced: readonly Summary[]
  readonly now: Millis
}

function buildSummary(tier: Summary['tier'], id: string, { messages, draft, replaced, now }: SummaryParts): Summary {
  const last = messages.at(-1)
  const sameId = replaced.find((summary) => summary.id === id)
  return {
    kind: 'summary',
    id,
    at: now,
    tier,
    text: draft.text,
    covers: [
      Math.min(...replaced.map(({ covers }) => covers[0]), ...messages.slice(0, 1).map(({ sequence }) => sequence)),
      Math.max(...replaced.map(({ covers }) => covers[1]), last?.sequence ?? 0),
    ],
    endOffset: Math.max(...replaced.map(({ endOffset }) => endOffset), endOf(messages)),
    version: (sameId?.version ?? 0) + 1,
    by: draft.by,
    sources: draft.sources,
    lossyRanges: draft.lossyRanges,
  }
}

/** Sum of the weights up to the last of these messages. */
function endOf(messages: readonly Message[]): Tokens {
  const last = messages.at(-1)
  return last === undefined ? 0 : last.offset + last.weight
}

function buildOutcome(
  head: SessionHead,
  messages: readonly Message[],
  summary: Summary,
  replaced: readonly Summary[],
  { facts, faults }: { readonly facts: StepOutcome['facts']; readonly faults: readonly Degradation[] },
): StepOutcome {
  return {
    basis: {
      epoch: head.epoch,
      messages: messages.map(({ sequence }) => sequence),
      summaries: replaced.map(({ id, version, text }) => ({ id, version, text })),
    },
    put: [summary],
    drop: replaced.map(({ id }) => id).filter((id) => id !== summary.id),
    facts,
    notes: { faults },
  }
}

/**
 * Reads the messages after a sequence number that start before `endOffset`, except the newest, without splitting a tool
 * call from its results. The result is partial if there are more than one step summarises.
 */
async function readMessagesBefore(
  store: Store,
  head: SessionHead,
  after: number,
  endOffset: Tokens,
): Promise<{ readonly messages: readonly Message[]; readonly isPartial: boolean }> {
  const messages: Message[] = []
  let characters = 0
  const isTooMuch = ({ role }: Message): boolean => characters > maxCharsPerStep && role !== 'tool'
  const isBeyond = (message: Message): boolean => {
    characters += Math.min(message.content.length, maxCharsPerStep)
    return message.offset >= endOffset || message.sequence >= head.lastSequence || isTooMuch(message)
  }
  for (let from = after; ; ) {
    const page = await store.readMessages(head.key, { after: from, limit: 500 })
    const end = page.findIndex(isBeyond)
    messages.push(...(end < 0 ? page : page.slice(0, end)))
    const next = page[end]
    if (next !== undefined) return { messages: withoutSplitCall(messages, next), isPartial: isTooMuch(next) }
    const last = page.at(-1)
    if (last === undefined) return { messages, isPartial: false }
    from = last.sequence
  }
}

/** Removes a trailing tool call (and partial results) whose results continue in `next`. */
function withoutSplitCall(messages: readonly Message[], next: Message | undefined): readonly Message[] {
  let end = messages.length
  for (let after = next; after?.role === 'tool' && end > 0; after = messages[end]) end--
  return messages.slice(0, end)
}
