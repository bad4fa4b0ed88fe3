import { type Run, type Source, sequenceOf } from '../domain/entry.ts'
import type { Degradation } from '../domain/ledger.ts'
import { withGap } from '../domain/session.ts'
import { anchorsIn } from '../text/anchors.ts'
import { repairJson } from '../text/repair.ts'
import { type Asking, ask } from './ask.ts'
import { extractFacts, type Found } from './extract.ts'
import { groundFacts } from './ground.ts'
import { extractionPrompt, type Material, summaryPrompt } from './prompts.ts'
import { type Summarised, summarise, type Target, type Told } from './summarise.ts'
import { lossesOf, mend, verify } from './verify.ts'

/** What a summary is made of. */
export type Stretch = { readonly messages: readonly Told[]; readonly previous: (Summarised & { readonly lost: readonly Run[] }) | undefined }

/** A summary that may stand, who made it, what it lost, and what did not go as it should. */
export type Drafted = Summarised & { readonly by: string; readonly lost: readonly Run[]; readonly faults: readonly Degradation[] }

/** More than this is not put before a model: what says least of it is left out first. */
const longest = 48_000

/** Makes a summary: by the model if there is one and what it says holds, else by the built-in rules. */
export async function draftSummary(stretch: Stretch, target: Target, words: number, asking: Asking | undefined, signal: AbortSignal): Promise<Drafted> {
  const baseline = summarise(stretch.messages, stretch.previous, target)
  const builtin = { ...baseline, by: 'builtin', lost: lostIn(baseline.text, stretch), faults: [] }
  if (asking === undefined) return builtin
  const prompt = summaryPrompt(materialOf(stretch), words)
  const answer = await ask(asking, prompt, 4_000 + 32 * words, signal)
  if ('fault' in answer) return { ...builtin, faults: [{ step: 'summary', why: answer.fault }] }
  const instructions = prompt.map(({ content }) => content ?? '')[0] ?? ''
  const given = { messages: stretch.messages, previous: stretch.previous?.text, baseline: baseline.text, prompt: instructions, target }
  const text = mend(answer.text, given)
  const checked = verify(text, given)
  if (!checked.ok) return { ...builtin, faults: [{ step: 'summary', why: `refused, ${checked.why}` }] }
  return { text, sources: sourcesOf(text, stretch), by: asking.model.name, lost: lostIn(text, stretch), faults: [] }
}

/** Takes important data out of messages: by the model as far as a user has said what it finds, else by the built-in rules. */
export async function draftFacts(
  messages: readonly Told[],
  asking: Asking | undefined,
  signal: AbortSignal,
): Promise<{ readonly found: readonly Found[]; readonly faults: readonly Degradation[] }> {
  const builtin = extractFacts(messages)
  if (asking === undefined || !messages.some(({ role }) => role === 'user')) return { found: builtin, faults: [] }
  const answer = await ask(asking, extractionPrompt(materialOf({ messages, previous: undefined })), 64_000, signal)
  if ('fault' in answer) return { found: builtin, faults: [{ step: 'facts', why: answer.fault }] }
  const json = repairJson(answer.text)
  if (typeof json !== 'object' || json === null) return { found: builtin, faults: [{ step: 'facts', why: 'refused, not JSON' }] }
  const { found, refused } = groundFacts(json, messages)
  if (found.length === 0 && refused > 0) return { found: builtin, faults: [{ step: 'facts', why: 'refused, nobody said it' }] }
  // Addresses need no model to be found, and are easily left out by one.
  return { found: [...found, ...builtin.filter(({ field }) => field === 'source_urls')], faults: [] }
}

function materialOf({ messages, previous }: Stretch): Material {
  const length = messages.reduce((sum, { content }) => sum + content.length, 0)
  if (length <= longest) return { messages, previous: previous?.text }
  const { text } = summarise(messages, undefined, { fits: (candidate) => candidate.length <= longest })
  return { messages: [{ role: 'user', name: 'excerpt', content: text }], previous: previous?.text }
}

/** Where a model's words come from: for each name or number in them, the first message that has it. */
function sourcesOf(text: string, { messages, previous }: Stretch): readonly Source[] {
  const wanted = new Set(anchorsIn(text).map((anchor) => anchor.text))
  const cited = new Set<string>(previous?.sources.map(({ message }) => message))
  for (const { id, content } of messages) {
    for (const anchor of anchorsIn(content)) if (wanted.delete(anchor.text)) cited.add(id)
  }
  return [...cited].map((message) => ({ message }))
}

/** Messages that hold something a text does not; if it leaves out some of an earlier summary, all that one came from too. */
export function lostIn(text: string, { messages, previous }: Stretch): readonly Run[] {
  const kept = new Set(anchorsIn(text).map((anchor) => anchor.text))
  const isForgetful = previous !== undefined && anchorsIn(previous.text).some((anchor) => !kept.has(anchor.text))
  const earlier = isForgetful ? previous.sources : []
  return runsWith(previous?.lost ?? [], [...earlier, ...lossesOf(text, messages).map(({ source }) => source)])
}

function runsWith(runs: readonly Run[], sources: readonly Source[]): readonly Run[] {
  const sequences = new Set(sources.map(({ message }) => sequenceOf(message) ?? 0).filter((sequence) => sequence > 0))
  return [...sequences].reduce((all, sequence) => (all.some(([from, to]) => from <= sequence && sequence <= to) ? all : withGap(all, sequence)), runs)
}
