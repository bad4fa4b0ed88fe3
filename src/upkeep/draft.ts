import { isObject } from '../domain/checks.ts'
import { isBlank, type Run, type Source, sequenceOf } from '../domain/entry.ts'
import type { Degradation } from '../domain/ledger.ts'
import { anchorsIn } from '../text/anchors.ts'
import { repairJson } from '../text/repair.ts'
import { type Asking, ask } from './ask.ts'
import { extracting, type Found, fields } from './extract.ts'
import { groundFacts } from './ground.ts'
import { extractionPrompt, type Material, summaryPrompt } from './prompts.ts'
import { smuggledIn } from './summarise/smuggled.ts'
import { isWithin } from './summarise/told.ts'
import { type Summarised, summarising, type Target, type Told } from './summarise.ts'
import { findingLosses, mending, saysNothing, verifying } from './verify.ts'
import { finished, type Pause, paced, type Work } from './work.ts'

/** What a summary is made of. */
export type Stretch = {
  readonly messages: readonly Told[]
  readonly previous: (Summarised & { readonly lost: readonly Run[] }) | undefined
}

/** A summary that may stand, who made it, what it lost, and what did not go as it should. */
export type Drafted = Summarised & {
  readonly by: string
  readonly lost: readonly Run[]
  readonly faults: readonly Degradation[]
}

/** More than this is not put before a model: what says least of it is left out first. */
const longest = 48_000
/** A summary cites at most so many messages. */
const mostSources = 256
/** What stands behind so many characters of a message was pasted: it is not looked at here, and counts as lost. */
const looked = 65_536

/** What a draft is made with: a model, if there is one, and how others are let have their turn meanwhile. */
export type Desk = { readonly asking: Asking | undefined; readonly signal: AbortSignal; readonly pause: Pause }

/** Makes a summary: by the model if there is one and what it says holds, else by the built-in rules. */
export async function draftSummary(
  given: Stretch,
  target: Target,
  words: number,
  { asking, signal, pause }: Desk,
): Promise<Drafted> {
  const stretch = { ...given, messages: legible(given.messages) }
  const made = await paced(summarising(stretch.messages, stretch.previous, target), pause)
  const isPoor = made.text === ''
  const baseline = isPoor ? beginning(stretch, target) : made
  const builtin = {
    ...baseline,
    by: 'builtin',
    lost: await paced(findingLost(baseline.text, given), pause),
    faults: [],
  }
  if (asking === undefined || isPoor) return builtin
  const prompt = summaryPrompt(await paced(materialOf(stretch), pause), words)
  const answer = await ask(asking, prompt, 4_000 + 32 * words, signal)
  if ('fault' in answer) return { ...builtin, faults: [{ step: 'summary', why: answer.fault }] }
  const instructions = prompt.map(({ content }) => content ?? '')[0] ?? ''
  const against = {
    messages: stretch.messages,
    previous: stretch.previous?.text,
    baseline: baseline.text,
    prompt: instructions,
    target,
  }
  // What says next to nothing is not mended: it would be the built-in summary under another name.
  const text = saysNothing(answer.text, against) ? answer.text : await paced(mending(answer.text, against), pause)
  const checked = await paced(verifying(text, against), pause)
  if (!checked.ok) return { ...builtin, faults: [{ step: 'summary', why: `refused, ${checked.why}` }] }
  const sources = await paced(sourcesOf(text, stretch), pause)
  // What is no longer cited must be found in another way.
  const lost = runsWith(await paced(findingLost(text, given), pause), sources.slice(0, -mostSources))
  return { text, sources: sources.slice(-mostSources), by: asking.model.name, lost, faults: [] }
}

/** Where not even a sentence fits, the beginning of the first; where nobody says anything, how many say it. */
export function beginning({ messages, previous }: Stretch, target: Target): Summarised {
  const [first] = messages
  const words = (previous?.text ?? first?.content ?? '').split(/\s+/).filter((word) => word !== '')
  let count = Math.min(words.length, 40)
  while (count > 0 && !isWithin(`${words.slice(0, count).join(' ')} …`, target)) count--
  const text = `${words.slice(0, count).join(' ')} …`
  if (count === 0 || smuggledIn(text).length > 0)
    return { text: messages.length === 0 ? '(earlier messages)' : `(${messages.length} messages)`, sources: [] }
  return { text, sources: previous?.sources ?? (first === undefined ? [] : [{ message: first.id }]) }
}

/** Takes important data out of messages: by the model as far as a user has said what it finds, else by the built-in rules. */
export async function draftFacts(
  given: readonly Told[],
  { asking, signal, pause }: Desk,
): Promise<{ readonly found: readonly Found[]; readonly faults: readonly Degradation[] }> {
  const messages = legible(given)
  const builtin = await factsByRules(messages, pause)
  if (asking === undefined || !messages.some(({ role, content }) => role === 'user' && !isBlank(content)))
    return { found: builtin, faults: [] }
  const material = await paced(materialOf({ messages, previous: undefined }), pause)
  const answer = await ask(asking, extractionPrompt(material), 64_000, signal)
  if ('fault' in answer) return { found: builtin, faults: [{ step: 'facts', why: answer.fault }] }
  const json = repairJson(answer.text)
  if (!isRecord(json)) return { found: builtin, faults: [{ step: 'facts', why: 'refused, not what was asked for' }] }
  const { found, refused } = groundFacts(json, messages)
  if (found.length === 0 && refused > 0)
    return { found: builtin, faults: [{ step: 'facts', why: 'refused, nobody said it' }] }
  // What the rules find and the model says nothing about is no less true.
  return { found: [...found, ...builtin.filter((one) => !found.some((other) => isSameThing(one, other)))], faults: [] }
}

/** Important data by the built-in rules alone. */
export const factsByRules = (messages: readonly Told[], pause: Pause): Promise<readonly Found[]> =>
  paced(extracting(legible(messages)), pause)

/** Messages as far as they are looked at. */
const legible = (messages: readonly Told[]): readonly Told[] =>
  messages.map((message) =>
    message.content.length > looked
      ? { ...message, content: message.content.slice(0, looked).toWellFormed() }
      : message,
  )

/** Whether both are about one thing: the same key, or the same place in what was said. */
function isSameThing(one: Found, other: Found): boolean {
  if (one.field !== other.field) return false
  if (one.key !== '' && one.key === other.key) return true
  const [[from, to], [start, end]] = [one.source.span ?? [0, 0], other.source.span ?? [0, 0]]
  return one.source.message === other.source.message && one.field !== 'source_urls' && from < end && start < to
}

/** The fields that were asked for, or none of them. */
function isRecord(json: unknown): boolean {
  if (!isObject(json)) return false
  const names = Object.keys(isObject(json.important_data) ? json.important_data : json)
  return names.length === 0 || names.some((name) => fields.some((field) => field === name))
}

function* materialOf({ messages, previous }: Stretch): Work<Material> {
  const length = messages.reduce((sum, { content }) => sum + content.length, 0)
  if (length <= longest) return { messages, previous: previous?.text }
  const { text } = yield* summarising(messages, undefined, { fits: (candidate) => candidate.length <= longest })
  return { messages: [{ role: 'user', name: 'excerpt', content: text }], previous: previous?.text }
}

/** Where a model's words come from: for each name or number in them, the first message that has it. */
function* sourcesOf(text: string, { messages, previous }: Stretch): Work<readonly Source[]> {
  const wanted = new Set(anchorsIn(text).map((anchor) => anchor.text))
  const cited = new Set<string>(previous?.sources.map(({ message }) => message))
  for (const { id, content } of messages) {
    for (const anchor of anchorsIn(content)) if (wanted.delete(anchor.text)) cited.add(id)
    yield content.length
  }
  return [...cited].map((message) => ({ message }))
}

/** Messages that hold something a text does not; if it leaves out some of an earlier summary, all that one came from too. */
export const lostIn = (text: string, stretch: Stretch): readonly Run[] => finished(findingLost(text, stretch))

/** The same as work that may be interrupted. */
function* findingLost(text: string, { messages, previous }: Stretch): Work<readonly Run[]> {
  const kept = new Set(anchorsIn(text).map((anchor) => anchor.text))
  const isForgetful = previous !== undefined && anchorsIn(previous.text).some((anchor) => !kept.has(anchor.text))
  const earlier = isForgetful ? previous.sources : []
  const losses = yield* findingLosses(text, legible(messages))
  const unseen = messages.filter(({ content }) => content.length > looked).map(({ id }) => ({ message: id }))
  return runsWith(previous?.lost ?? [], [...earlier, ...losses.map(({ source }) => source), ...unseen])
}

function runsWith(runs: readonly Run[], sources: readonly Source[]): readonly Run[] {
  const sequences = sources.map(({ message }) => sequenceOf(message) ?? 0).filter((sequence) => sequence > 0)
  const joined: [first: number, last: number][] = []
  for (const [from, to] of [...runs, ...sequences.map((sequence) => [sequence, sequence] as const)].sort(
    (left, right) => left[0] - right[0],
  )) {
    const last = joined.at(-1)
    if (last !== undefined && from <= last[1] + 1) last[1] = Math.max(last[1], to)
    else joined.push([from, to])
  }
  return joined
}
