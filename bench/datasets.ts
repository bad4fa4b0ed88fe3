import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { gunzipSync } from 'node:zlib'

export type BenchMessage = {
  id: string
  at: number | null
  speaker: string
  role: 'user' | 'assistant'
  text: string
  group: number
}
export type BenchQuestion = { id: string; category: string; query: string; answer: unknown; evidence: string[] }
export type Conversation = { id: string; messages: BenchMessage[]; questions?: BenchQuestion[] }

/** Evaluation data is not part of the project. It is read from a folder that the user names. */
const instructions = `Set the folder with --data DIR or THREADKEEP_BENCH_DATA. It contains locomo-dev.json.gz, beam-100k.json.gz and transcripts-dev.json.gz:
  [{ id, messages: [{ id, at, speaker, role, text, group }], questions: [{ id, category, query, answer, evidence }] }]
LoCoMo is published as snap-research/LoCoMo (CC BY-NC 4.0), BEAM as mohammadtavakoli78/BEAM.`

export const flags = parseArgs({
  options: {
    data: { type: 'string' },
    only: { type: 'string' },
    budget: { type: 'string' },
    limit: { type: 'string' },
  },
  strict: false,
}).values as { data?: string; only?: string; budget?: string; limit?: string }

export function loadDataset(
  name: 'locomo-dev' | 'beam-100k' | 'friends-dev' | 'qmsum-dev' | 'realmem-dev' | 'transcripts-dev',
): Conversation[] {
  const folder = flags.data ?? process.env.THREADKEEP_BENCH_DATA
  const file = folder === undefined ? undefined : join(folder, `${name}.json.gz`)
  if (file === undefined || !existsSync(file)) {
    console.error(`No ${name} data${file === undefined ? '' : ` at ${file}`}. ${instructions}`)
    process.exit(2)
  }
  return JSON.parse(gunzipSync(readFileSync(file)).toString())
}

/** Converts a message of a dataset to the input of `memory.append`. */
export const toMessageInput = ({ role, speaker, text, at }: BenchMessage) => ({
  role,
  content: text,
  ...(speaker === role ? {} : { name: speaker }),
  ...(at === null ? {} : { at }),
})

export const percentile = (sorted: readonly number[], share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN
export const formatPercent = (value: number): string => (100 * value).toFixed(1)
