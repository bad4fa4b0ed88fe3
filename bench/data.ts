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

/** The evaluation data is not part of the project: it is read from a folder the user names. */
const obtain = `Give the folder with --data DIR or THREADKEEP_BENCH_DATA. It holds locomo-dev.json.gz, beam-100k.json.gz and transcripts-dev.json.gz:
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

export function load(name: 'locomo-dev' | 'beam-100k' | 'transcripts-dev'): Conversation[] {
  const folder = flags.data ?? process.env.THREADKEEP_BENCH_DATA
  const file = folder === undefined ? undefined : join(folder, `${name}.json.gz`)
  if (file === undefined || !existsSync(file)) {
    console.error(`There is no ${name} data${file === undefined ? '' : ` at ${file}`}. ${obtain}`)
    process.exit(2)
  }
  return JSON.parse(gunzipSync(readFileSync(file)).toString())
}

/** A message as the library takes it. */
export const incoming = ({ role, speaker, text, at }: BenchMessage) => ({
  role,
  content: text,
  ...(speaker === role ? {} : { name: speaker }),
  ...(at === null ? {} : { at }),
})

export const percentile = (sorted: readonly number[], part: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? Number.NaN
export const percent = (value: number): string => (100 * value).toFixed(1)
