import type { Json, Message, Millis } from '../../domain/entry.ts'
import type { Embedder } from '../../domain/ports.ts'
import { type Pause, runInSlices } from '../../domain/work.ts'
import { cacheOf } from '../../memory/embeddingCache.ts'
import { throwIfAborted } from '../../portable/abort.ts'
import { yieldWhenLong } from '../../stores/yieldToEventLoop.ts'
import { formatCount } from '../../text/formatCount.ts'
import { summariseInSteps } from '../../upkeep/summarise/summarise.ts'
import { findNamedSessions } from '../chain.ts'
import { createFileReference, type FileReference, findPathsInSteps } from '../fileReferences.ts'
import type { ContextItem } from '../item.ts'
import { readWeights } from '../restore/preservation.ts'
import { itemId, type ProvidedContext, type SessionDraft, type Summary } from '../rows.ts'
import { deriveTitle, type SavedSession, toIsoTime } from '../sessions.ts'
import type { HandoffDeps, OperationContext } from '../settings.ts'
import { extractItemsInSteps } from './extract.ts'
import { type ClientFile, isClientItem, type ParsedSave } from './request.ts'

const maxFilesPerSession = 200
const stoppedMessage = 'Saving was stopped by the caller. Its messages are stored; save the session again to finish.'

/** Input of a draft: the request, the previously saved state and all messages. */
export type DraftInput = {
  readonly parsed: ParsedSave
  readonly before: SavedSession | undefined
  readonly messages: readonly Message[]
  readonly startedAt: Millis
}

/** Derives everything a save writes: summaries, items, file references and provided context. */
export async function buildDraft(
  deps: HandoffDeps,
  input: DraftInput,
  context: OperationContext,
): Promise<{ readonly draft: SessionDraft; readonly warnings: readonly string[] }> {
  const { parsed, before, messages } = input
  const { signal, progress } = context
  const warnings: string[] = []
  const files = await collectFiles(deps, input, context)
  progress?.(2, 5, `checked ${formatCount(files.length, 'file')}`)
  const summaries = deps.settings.summarise ? await summarise(messages, signal) : []
  progress?.(3, 5, 'summarised')
  const items = await collectItems(deps, input, warnings)
  throwIfAborted(signal, stoppedMessage)
  const provided = await gatherProvided(deps, parsed, summaries.at(-1)?.text ?? '', context, warnings)
  progress?.(4, 5, `found ${formatCount(items.length, 'item')}`)
  const workspaceState = parsed.workspaceState ?? before?.workspaceState
  const draft: SessionDraft = {
    ...buildMetadata(input),
    workspace: parsed.workspace,
    summaries,
    items,
    files,
    provided: provided ?? before?.provided ?? [],
    references: await findNamedSessions(deps, parsed.workspace, parsed.id, messages),
    ...(workspaceState === undefined ? {} : { workspaceState }),
  }
  return { draft, warnings }
}

/** Builds the session's own fields. `savedAt` changes only with the content: saving the same again writes nothing. */
function buildMetadata({ parsed, before, messages, startedAt }: DraftInput) {
  const { id, at, tokens, items, files, workspaceState, title } = parsed
  const isUnchanged =
    before !== undefined &&
    before.metadata.messageCount === messages.length &&
    items.length + files.length === 0 &&
    workspaceState === undefined &&
    title === undefined
  const continues = parsed.continues ?? before?.metadata.continuedFrom
  return {
    id,
    createdAt: before?.metadata.createdAt ?? toIsoTime(startedAt),
    savedAt: isUnchanged && before.metadata.savedAt !== '' ? before.metadata.savedAt : toIsoTime(at),
    ...chooseTitle(title, before, messages, startedAt),
    tokens: tokens ?? messages.reduce((sum, message) => sum + message.tokens, 0),
    messages: messages.length,
    ...(continues === undefined ? {} : { continues }),
    ...(before?.restoration === undefined ? {} : { restored: before.restoration as unknown as Json }),
  }
}

/** Chooses the title: given by the client now or before, else derived from the first user message. */
function chooseTitle(
  given: string | undefined,
  before: SavedSession | undefined,
  messages: readonly Message[],
  startedAt: Millis,
): Pick<SessionDraft, 'title' | 'titleSources'> {
  const derived = deriveTitle(messages)
  const known = given ?? before?.metadata.title ?? ''
  if (known !== '' && known !== derived?.title) return { title: known, titleSources: [] }
  if (derived === undefined) return { title: `Session of ${toIsoTime(startedAt).slice(0, 10)}`, titleSources: [] }
  return { title: derived.title, titleSources: [derived.source] }
}

/** Word ranges of the summaries, shortest first. */
const summaryWordRanges: readonly (readonly [min: number, max: number])[] = [
  [8, 40],
  [40, 160],
  [160, 600],
]

/** Summarises a conversation at several levels of detail, shortest first. Identical levels are merged. */
async function summarise(messages: readonly Message[], signal: AbortSignal | undefined): Promise<readonly Summary[]> {
  const pause: Pause = () => {
    throwIfAborted(signal, stoppedMessage)
    return yieldWhenLong()
  }
  const summaries: Summary[] = []
  for (const words of summaryWordRanges) {
    const { text, sources } = await runInSlices(summariseInSteps(messages, undefined, { words }), pause)
    if (text !== '' && text !== summaries.at(-1)?.text)
      summaries.push({ text, sources: [...new Set(sources.map(({ message }) => message))] })
  }
  return summaries
}

/** Extracts items from the messages and adds those that clients sent now or before. */
async function collectItems(
  deps: HandoffDeps,
  { parsed: { workspace, id, items }, before, messages }: DraftInput,
  warnings: string[],
): Promise<readonly ContextItem[]> {
  const { memory, embedder } = deps
  const options = {
    tokenizer: memory.tokenizer,
    weights: await readWeights(deps, workspace),
    marked: new Set(before?.markedMessages),
  }
  const extracted = await runInSlices(extractItemsInSteps(messages, options), yieldWhenLong)
  const similarity =
    embedder === undefined
      ? undefined
      : await measureSimilarity(embedder, messages, extracted).catch(
          (error: unknown) => void warnings.push(`items were not compared by meaning: ${errorMessage(error)}`),
        )
  const ranked =
    similarity === undefined
      ? extracted
      : await runInSlices(extractItemsInSteps(messages, { ...options, similarity }), yieldWhenLong)
  const all = new Map<string, ContextItem>()
  for (const item of before?.items ?? []) if (isClientItem(id, item)) all.set(item.id, item)
  for (const item of items) all.set(item.id, item)
  for (const item of ranked) all.set(itemId(id, item.id), { ...item, id: itemId(id, item.id) })
  return [...all.values()]
}

/** Newest messages that represent the current topic. */
const topicMessages = 6
const maxEmbeddedChars = 4_000
/** A save waits no longer for the embedder. */
const embedTimeoutMs = 10_000

/** Measures the similarity of each item to the newest messages, from 0 to 1, by embeddings. */
async function measureSimilarity(
  embedder: Embedder,
  messages: readonly Message[],
  items: readonly ContextItem[],
): Promise<((content: string) => number) | undefined> {
  if (items.length === 0) return undefined
  const topic = messages
    .slice(-topicMessages)
    .map(({ content }) => content)
    .join('\n')
    .slice(-maxEmbeddedChars)
  const texts = [topic, ...items.map(({ content }) => content.slice(0, maxEmbeddedChars))]
  const [topicVector, ...vectors] = await cacheOf(embedder).embed(texts, AbortSignal.timeout(embedTimeoutMs))
  if (topicVector === undefined) return undefined
  const similarities = new Map(
    items.map(({ content }, index) => [content, cosineSimilarity(topicVector, vectors[index] ?? topicVector)]),
  )
  return (content) => similarities.get(content) ?? 0
}

/** Cosine similarity clamped to 0..1: opposite vectors count as unrelated. */
function cosineSimilarity(left: Float32Array, right: Float32Array): number {
  let [dot, leftSquared, rightSquared] = [0, 0, 0]
  for (const [index, value] of left.entries()) {
    const other = right[index] ?? 0
    dot += value * other
    leftSquared += value * value
    rightSquared += other * other
  }
  if (leftSquared === 0 || rightSquared === 0) return 0
  return Math.max(0, Math.min(1, dot / Math.sqrt(leftSquared * rightSquared)))
}

/** Collects references to files that the client sent, that were known before, and that the messages mention. */
async function collectFiles(
  { files: inspector }: HandoffDeps,
  { parsed, before, messages }: DraftInput,
  { client = '' }: OperationContext,
): Promise<readonly FileReference[]> {
  const known = new Map((before?.files ?? []).map((file) => [file.path, file]))
  const sent = new Map(parsed.files.map((file) => [file.path, file]))
  const mentioned = inspector === undefined ? [] : await runInSlices(findPathsInSteps(messages), yieldWhenLong)
  const paths = [...new Set([...sent.keys(), ...known.keys(), ...mentioned])].slice(0, maxFilesPerSession)
  const references = await Promise.all(
    paths.map(
      async (path) =>
        (inspector && (await createFileReference(path, (file) => inspector.look(client, file)))) ??
        known.get(path) ??
        unverifiedReference(sent.get(path)),
    ),
  )
  return references.filter((reference) => reference !== undefined)
}

/** Reference to a file that could not be read, from the data the client sent. */
const unverifiedReference = (file: ClientFile | undefined): FileReference | undefined =>
  file && { path: file.path, hash: file.hash ?? '', last_modified: file.lastModified ?? '', size: 0, lines: '' }

/** Asks the context providers and masks secrets in their texts. Failed providers add a warning. */
async function gatherProvided(
  { providers, memory }: HandoffDeps,
  { workspace, id }: ParsedSave,
  summary: string,
  { signal }: OperationContext,
  warnings: string[],
): Promise<readonly ProvidedContext[] | undefined> {
  if (providers === undefined) return undefined
  const { provided, degraded } = await providers.gather('save', { workspace, session: id, text: summary }, signal)
  for (const { step, why } of degraded) warnings.push(`${step}: ${why}`)
  return Promise.all(
    provided.map(async ({ from, text }) => ({ from, text: await memory.mask(`${workspace}:${id}`, text) })),
  )
}

const errorMessage = (error: unknown): string => (error instanceof Error ? error.message : 'unknown')
