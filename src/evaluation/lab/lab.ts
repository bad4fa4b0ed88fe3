import { mkdir, mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openGraph } from '../../graph/graph.ts'
import type { StoreGraph } from '../../graph/types.ts'
import { Handoff } from '../../handoff/handoff.ts'
import { measurePreservation } from '../../handoff/restore/preservation.ts'
import { sessionKey } from '../../handoff/sessions.ts'
import { type Memory, openMemory } from '../../index.ts'
import { type ProfileName, profiles } from '../../profiles/index.ts'
import { joinTexts } from '../clip.ts'
import { type DatasetConversation, type DatasetMessage, toMessageInput } from '../dataset.ts'
import { loadTokenCounter } from '../evaluate.ts'
import { createEvidenceScorer } from '../evidence.ts'
import { type ConversationKind, generateConversation } from '../generate/generate.ts'
import { mean } from '../statistics.ts'
import { resolveSystems } from '../systems/resolve.ts'

export const compressions = ['none', 'zstd'] as const
export type Compression = (typeof compressions)[number]

/** Algorithms that choose the restored text: `handoff` restores a saved session, the others are systems under test. */
export const algorithms: readonly string[] = [
  'handoff',
  ...Object.keys(profiles).filter((name) => name !== 'handoff'),
  'window',
  'bm25',
]

export type LabOptions = {
  /** Sizes of the conversations in tokens. */
  readonly sizes: readonly number[]
  readonly types: readonly ConversationKind[]
  readonly compressions: readonly Compression[]
  readonly algorithms: readonly string[]
  /** Budget of the restored text in tokens; default: a quarter of the conversation. */
  readonly budget?: number | undefined
  readonly seed: number
  readonly onProgress?: (done: number, total: number, label: string) => void
}

/** One combination of the parameters. */
export type LabRow = {
  readonly size: number
  readonly type: ConversationKind
  readonly compression: Compression
  readonly algorithm: string
  readonly messages: number
  readonly tokens: number
  readonly budget: number
  readonly restoredTokens: number
  /** True if the transcript read back from the restored store is the saved one. */
  readonly isLossless: boolean
  /** TF-IDF cosine of the restored text and the conversation. */
  readonly similarity: number
  /** Share of the names, numbers and constraints of the conversation that the restored text contains. */
  readonly factSurvival: number
  /** Share of the words of planted facts that the restored text contains. */
  readonly plantedFacts: number
  /** Size of the SQLite file and of the exported directory. */
  readonly storeBytes: number
  readonly exportBytes: number
  readonly saveMs: number
  readonly exportMs: number
  readonly importMs: number
  readonly restoreMs: number
}

const workspace = 'lab'
/** Share of a conversation that the default budget allows. */
const budgetShare = 0.25
const minBudget = 200

/**
 * Generates conversations of every size and type, saves and exports them with every compression, imports them into a
 * new store, restores a text with every algorithm and compares it with the original.
 */
export async function runLab(options: LabOptions): Promise<LabRow[]> {
  const { sizes, types, seed, onProgress } = options
  const total = sizes.length * types.length * options.compressions.length * options.algorithms.length
  const rows: LabRow[] = []
  const folder = await mkdtemp(join(tmpdir(), 'threadkeep-lab-'))
  try {
    for (const size of sizes)
      for (const type of types)
        for (const compression of options.compressions) {
          const conversation = generateConversation({ kind: type, tokens: size, seed })
          const trial = { size, type, compression, conversation, folder: join(folder, `${rows.length}`) }
          for await (const row of runTrial(trial, options)) {
            rows.push(row)
            onProgress?.(rows.length, total, `${size} tokens, ${type}, ${compression}, ${row.algorithm}`)
          }
        }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
  return rows
}

type Trial = Pick<LabRow, 'size' | 'type' | 'compression'> & {
  readonly conversation: DatasetConversation
  readonly folder: string
}

/** Saves, exports and imports one conversation, then restores it with every algorithm. */
async function* runTrial(trial: Trial, { algorithms: names, budget: wanted }: LabOptions): AsyncGenerator<LabRow> {
  const { conversation, folder, size, type, compression } = trial
  const countTokens = await loadTokenCounter()
  await mkdir(folder)
  const saved = await saveAndExport(trial)
  const target = await openWorkspace(join(folder, 'restored.db'))
  try {
    const importMs = await measureMs(() => target.handoff.import({ directory: join(folder, 'export') }))
    const messages = await readTranscript(target.memory, saved.sessionId, conversation)
    const tokens = conversation.messages.reduce((sum, { text }) => sum + countTokens(text), 0)
    const budget = wanted ?? Math.max(minBudget, Math.round(budgetShare * tokens))
    const score = createEvidenceScorer(conversation, countTokens)
    for (const algorithm of names) {
      const source = { ...target, sessionId: saved.sessionId, messages, path: join(folder, 'restored.db') }
      const { text, milliseconds } = await restore(algorithm, source, budget)
      const { similarity, facts } = measurePreservation(joinTexts(conversation.messages), text)
      const sample = { text, budget, milliseconds }
      yield {
        ...{ size, type, compression, algorithm, messages: messages.length, tokens, budget },
        restoredTokens: countTokens(text),
        isLossless: isSameTranscript(conversation.messages, messages),
        similarity,
        factSurvival: facts,
        plantedFacts: mean(conversation.questions.map((question) => score(question, sample).byWord)),
        ...{ storeBytes: saved.storeBytes, exportBytes: saved.exportBytes },
        ...{ saveMs: saved.saveMs, exportMs: saved.exportMs, importMs, restoreMs: milliseconds },
      }
    }
  } finally {
    await target.close()
  }
}

type Workspace = {
  readonly memory: Memory
  readonly graph: StoreGraph
  readonly handoff: Handoff
  close(): Promise<void>
}

async function openWorkspace(path: string): Promise<Workspace> {
  const memory = await openMemory({ store: `sqlite:${path}` })
  const graph = await openGraph(`sqlite:${path}`)
  return {
    memory,
    graph,
    handoff: new Handoff({ memory, graph, clock: Date.now }),
    close: async () => {
      await graph.close()
      await memory.close()
    },
  }
}

async function saveAndExport({ conversation, compression, folder }: Trial) {
  const path = join(folder, 'saved.db')
  const directory = join(folder, 'export')
  const source = await openWorkspace(path)
  let sessionId = ''
  let saveMs = 0
  let exportMs = 0
  try {
    saveMs = await measureMs(async () => {
      const messages = conversation.messages.map(toMessageInput)
      sessionId = (await source.handoff.save(workspace, { messages })).sessionId
    })
    const compress = compression === 'zstd'
    exportMs = await measureMs(() => source.handoff.export(workspace, { directory, compress }))
  } finally {
    await source.close()
  }
  return { sessionId, saveMs, exportMs, storeBytes: (await stat(path)).size, exportBytes: await folderBytes(directory) }
}

async function folderBytes(folder: string): Promise<number> {
  const files = (await readdir(folder, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile())
  const sizes = await Promise.all(files.map(async (file) => (await stat(join(file.parentPath, file.name))).size))
  return sizes.reduce((sum, size) => sum + size, 0)
}

/** Reads the imported messages with the ids of the original ones. */
async function readTranscript(
  memory: Memory,
  sessionId: string,
  { messages }: DatasetConversation,
): Promise<DatasetMessage[]> {
  const stored = await memory.transcript(sessionKey(workspace, sessionId))
  return stored.map(({ role, name, content, at }, index) => ({
    id: messages[index]?.id ?? `extra${index}`,
    at,
    speaker: name ?? role,
    role: role === 'assistant' ? 'assistant' : 'user',
    text: content,
    group: messages[index]?.group ?? null,
  }))
}

const isSameTranscript = (original: readonly DatasetMessage[], restored: readonly DatasetMessage[]): boolean =>
  original.length === restored.length &&
  original.every(({ role, speaker, text, at }, index) => {
    const other = restored[index]
    return other?.role === role && other.speaker === speaker && other.text === text && other.at === at
  })

type RestoreSource = Workspace & {
  readonly sessionId: string
  readonly messages: readonly DatasetMessage[]
  readonly path: string
}

/** Restores a text without knowing the next question; algorithms that need a query get the last user message. */
async function restore(
  algorithm: string,
  { handoff, sessionId, messages, path }: RestoreSource,
  budget: number,
): Promise<{ readonly text: string; readonly milliseconds: number }> {
  if (algorithm === 'handoff') {
    let text = ''
    const milliseconds = await measureMs(async () => {
      text = (await handoff.restore(workspace, { sessionId, budget })).context
    })
    return { text, milliseconds }
  }
  const query = messages.findLast(({ role }) => role === 'user')?.text ?? ''
  if (Object.hasOwn(profiles, algorithm)) {
    // The session is in a file, so a RAM-only profile must accept a durable store.
    const profile = { ...profiles[algorithm as ProfileName], durability: 'durable' as const }
    await using memory = await openMemory({ store: `sqlite:${path}`, profile })
    return await timeText(async () => (await memory.context(sessionKey(workspace, sessionId), { query, budget })).text)
  }
  const [system] = await resolveSystems([algorithm])
  const memory = await system?.open({ id: sessionId, messages })
  try {
    return await timeText(async () => (await memory?.context(query, budget)) ?? '')
  } finally {
    await memory?.close()
  }
}

async function timeText(build: () => Promise<string>) {
  let text = ''
  const milliseconds = await measureMs(async () => {
    text = await build()
  })
  return { text, milliseconds }
}

async function measureMs(operation: () => Promise<unknown>): Promise<number> {
  const start = performance.now()
  await operation()
  return performance.now() - start
}
