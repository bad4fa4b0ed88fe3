import { isBlank, type Message, type Summary, sequenceOf, type Tokens } from '../domain/entry.ts'
import type { Degradation } from '../domain/ledger.ts'
import type { Store, Tokenizer } from '../domain/ports.ts'
import type { Profile } from '../domain/profile.ts'
import type { Head } from '../domain/session.ts'
import { type Desk, type Drafted, draftFacts, draftSummary, factsByRules, type Stretch } from './draft.ts'
import { type Outcome, runsIn } from './fold.ts'
import { optimised } from './optimise.ts'
import { hourId, hourOf, roomOf, type Step, summariesIn } from './plan.ts'
import type { Target } from './summarise.ts'

/** What a step is done with. */
export type Means = Desk & { readonly profile: Profile; readonly store: Store; readonly tokenizer: Tokenizer }

type StepOf<K extends Step['do']> = Extract<Step, { do: K }>

/** Does a step and tells what should become of it; undefined when there is nothing to do after all. Writes nothing. */
export function perform(step: Step, head: Head, means: Means, now: number): Promise<Outcome | undefined> {
  if (step.do === 'compact') return compact(step, head, means, now)
  if (step.do === 'hour') return hourly(step, head, means, now)
  if (step.do === 'session') return overall(step, head, means, now)
  return step.do === 'refind' ? refind(step, head, means) : optimise(head, means, now)
}

/** By the rules alone: what a model found once is not worth asking it again for the whole conversation. */
async function refind({ until }: StepOf<'refind'>, head: Head, { store, pause }: Means): Promise<Outcome> {
  const found: Outcome['found'][number][] = []
  for (let after = 0; after < until; ) {
    const page = await store.page(head.key, { after, before: until + 1, limit: 500 })
    found.push(...(await factsByRules(page, pause)))
    after = page.at(-1)?.sequence ?? until
  }
  const messages = [...new Set(found.map(({ source }) => sequenceOf(source.message) ?? 0))]
  return { basis: { epoch: head.epoch, messages, summaries: [] }, put: [], drop: [], found, notes: {} }
}

async function compact(step: StepOf<'compact'>, head: Head, means: Means, now: number): Promise<Outcome | undefined> {
  const { task, previous, until } = step
  const messages = await windowBefore(means.store, head, previous?.covers[1] ?? 0, until)
  if (messages.every(({ content }) => isBlank(content))) return undefined
  const version = (previous?.version ?? 0) + 1
  const words = task.words[Math.min(version, task.words.length) - 1] as readonly [number, number]
  const [draft, facts] = await Promise.all([
    draftSummary(
      { messages, previous },
      { words, fits: fitting(means.tokenizer, roomOf(means.profile)) },
      words[0],
      means,
    ),
    task.facts ? draftFacts(messages, means) : { found: [], faults: [] },
  ])
  const made = summaryOf('progressive', 'summary', {
    messages,
    draft,
    replaced: previous === undefined ? [] : [previous],
    now,
  })
  return outcome(head, messages, [made], previous === undefined ? [] : [previous], {
    found: facts.found,
    faults: [...draft.faults, ...facts.faults],
  })
}

async function hourly(
  { task, after }: StepOf<'hour'>,
  head: Head,
  means: Means,
  now: number,
): Promise<Outcome | undefined> {
  const page = await means.store.page(head.key, { after, limit: task.batch + task.keep + 1 })
  const messages = batchOf(page, task.batch)
  const last = messages.at(-1)
  if (last === undefined) return undefined
  const newest = summariesIn(head.derived, 'hour').at(-1)
  // Clocks go back: what comes later in the conversation never goes into an earlier hour.
  const own = hourId(Math.min(last.at, now))
  const id = newest !== undefined && hourOf(own) <= hourOf(newest.id) ? newest.id : own
  const previous = newest?.id === id ? newest : undefined
  const limit = costOf(means.tokenizer, previous) + task.share * messages.reduce((sum, { tokens }) => sum + tokens, 0)
  const draft = await shortened({ messages, previous }, limit, means)
  const replaced = previous === undefined ? [] : [previous]
  return outcome(head, messages, [summaryOf('hour', id, { messages, draft, replaced, now })], replaced, {
    found: [],
    faults: draft.faults,
  })
}

/** The first so many messages, in whole units; the first unit, if it has more. */
function batchOf(page: readonly Message[], many: number): readonly Message[] {
  const batch = wholeUnits(page.slice(0, many), page[many])
  if (batch.length > 0) return batch
  const next = page.findIndex(({ role }, at) => at > 0 && role !== 'tool')
  return next < 0 ? page : page.slice(0, next)
}

async function overall(
  { task, hours, previous }: StepOf<'session'>,
  head: Head,
  means: Means,
  now: number,
): Promise<Outcome | undefined> {
  const replaced = previous === undefined ? hours : [previous, ...hours]
  const before = {
    text: replaced.map(({ text }) => text).join('\n'),
    sources: replaced.flatMap(({ sources }) => sources),
    lost: replaced.flatMap(({ lost }) => lost),
  }
  const limit =
    costOf(means.tokenizer, previous) + task.share * hours.reduce((sum, one) => sum + costOf(means.tokenizer, one), 0)
  const draft = await shortened({ messages: [], previous: before }, limit, means)
  return outcome(head, [], [summaryOf('session', 'session', { messages: [], draft, replaced, now })], replaced, {
    found: [],
    faults: draft.faults,
  })
}

async function optimise(head: Head, { store, profile, tokenizer }: Means, now: number): Promise<Outcome | undefined> {
  const messages = await store.page(head.key, { limit: reviewed, newest: true })
  const { items, notes } = optimised(messages, head, { budget: profile.budget, tokenizer, now })
  const basis = {
    epoch: head.epoch,
    messages: items.map(({ id }) => sequenceOf(id.slice(1)) ?? 0),
    summaries: [],
    runs: runsIn(head),
  }
  return { basis, put: items, drop: [], found: [], notes }
}

/** So many of the newest messages the optimizer looks at. */
const reviewed = 2_000

/** In at most `limit` tokens, and in a part of what summaries may take together, but never in fewer than something can be said with. */
function shortened(stretch: Stretch, limit: Tokens, means: Means): Promise<Drafted> {
  const most = Math.max(16, Math.floor(Math.min(limit, roomOf(means.profile) / 3)))
  const target: Target = { fits: fitting(means.tokenizer, most) }
  return draftSummary(stretch, target, Math.max(10, Math.floor(most * 0.6)), means)
}

const fitting =
  (tokenizer: Tokenizer, most: Tokens) =>
  (text: string): boolean =>
    tokenizer.count(text) <= most

const costOf = (tokenizer: Tokenizer, summary: Summary | undefined): Tokens =>
  summary === undefined ? 0 : tokenizer.count(summary.text)

type Made = {
  readonly messages: readonly Message[]
  readonly draft: Drafted
  readonly replaced: readonly Summary[]
  readonly now: number
}

function summaryOf(tier: Summary['tier'], id: string, { messages, draft, replaced, now }: Made): Summary {
  const last = messages.at(-1)
  const same = replaced.find((one) => one.id === id)
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
    reach: Math.max(...replaced.map(({ reach }) => reach), last === undefined ? 0 : last.offset + last.weight),
    version: (same?.version ?? 0) + 1,
    by: draft.by,
    sources: draft.sources,
    lost: draft.lost,
  }
}

function outcome(
  head: Head,
  messages: readonly Message[],
  put: readonly Summary[],
  replaced: readonly Summary[],
  { found, faults }: { readonly found: Outcome['found']; readonly faults: readonly Degradation[] },
): Outcome {
  const ids = new Set(put.map(({ id }) => id))
  return {
    basis: {
      epoch: head.epoch,
      messages: messages.map(({ sequence }) => sequence),
      summaries: replaced.map(({ id, version, text }) => ({ id, version, text })),
    },
    put,
    drop: replaced.map(({ id }) => id).filter((id) => !ids.has(id)),
    found,
    notes: { faults },
  }
}

/** So many characters are summed up at once, and the first message however long it is; what is left is due at once again. */
const mostAtOnce = 524_288

/** The messages after a sequence number that begin before an offset, but the newest, without tearing a call from its results. */
async function windowBefore(store: Store, head: Head, after: number, until: Tokens): Promise<readonly Message[]> {
  const messages: Message[] = []
  let characters = 0
  const isBeyond = ({ offset, sequence, role, content }: Message): boolean => {
    characters += Math.min(content.length, mostAtOnce)
    return offset >= until || sequence >= head.last || (characters > mostAtOnce && role !== 'tool')
  }
  for (let from = after; ; ) {
    const page = await store.page(head.key, { after: from, limit: 500 })
    const end = page.findIndex(isBeyond)
    messages.push(...(end < 0 ? page : page.slice(0, end)))
    if (end >= 0) return wholeUnits(messages, page[end])
    const last = page.at(-1)
    if (last === undefined) return messages
    from = last.sequence
  }
}

/** What is left when a call whose results come after stays with them. */
function wholeUnits(messages: readonly Message[], next: Message | undefined): readonly Message[] {
  let end = messages.length
  for (let after = next; after?.role === 'tool' && end > 0; after = messages[end]) end--
  return messages.slice(0, end)
}
