import type { Json } from '../../../src/domain/entry.ts'
import { MemoryError } from '../../../src/domain/error.ts'
import type { Finding, Part, RunOptions } from '../part.ts'
import { Random, seedOf } from '../random.ts'
import { createHostileFile } from './mutations.ts'
import { type FileInput, ImportProblem, Parsers } from './parsers.ts'
import { type Format, formats } from './samples.ts'

/** CPU time that a file may take in this process; its text is parsed in another one. */
const maxCpuMs = 5_000
const maxTimeMs = 60_000
/** Smaller files must not end the parser's process. */
const smallFileBytes = 200_000
const maxRssBytes = 3_000_000_000

/** Formats whose parsers run in a process of their own cost more. */
const weights = formats.map((format): readonly [number, Format] => [/pdf|docx/.test(format) ? 0.7 : 1, format])

/** Parses a file; a typed error is expected, anything else is a problem. */
async function tryFile(
  parsers: Parsers,
  input: FileInput,
): Promise<readonly { readonly kind: string; readonly detail: string }[]> {
  const problem = (kind: string, detail: string) => [{ kind: `${kind} ${input.format}`, detail }]
  const startedAt = performance.now()
  const cpu = process.threadCpuUsage()
  try {
    await parsers.parse(input)
  } catch (error) {
    if (error instanceof ImportProblem) return problem('import', error.message)
    if (!(error instanceof MemoryError))
      return problem(`untyped ${(error as Error)?.name}`, `${(error as Error)?.stack}`.slice(0, 700))
    if (input.bytes.length < smallFileBytes && /too much memory|took more than/.test(error.message))
      return problem('parser ended', error.message)
    if (error.code === 'corrupt' && error.message.includes('/')) return problem('path in error', error.message)
  }
  const { user, system } = process.threadCpuUsage(cpu)
  const cpuMs = (user + system) / 1_000
  if (cpuMs > maxCpuMs) return problem('CPU time', `${Math.round(cpuMs)} ms`)
  const timeMs = performance.now() - startedAt
  if (timeMs > maxTimeMs) return problem('time', `${Math.round(timeMs)} ms`)
  const rssBytes = process.memoryUsage.rss()
  return rssBytes > maxRssBytes ? problem('RSS', `${rssBytes} bytes`) : []
}

async function run({ seed, inputs, isOver, counter, onProgress, onFinding }: RunOptions): Promise<number> {
  await using parsers = await Parsers.open()
  let done = 0
  for (; done < inputs && !isOver(); done++) {
    const random = new Random(seedOf(seed, done))
    const format = random.weighted(weights)
    const input = { format, bytes: createHostileFile(format, parsers.samples[format], random) }
    counter.add(format)
    for (const problem of await tryFile(parsers, input)) onFinding({ ...problem, input: input as Json })
    if (done % 20 === 0) onProgress(done)
  }
  onProgress(done)
  return done
}

/** Hostile files for every parser. */
export const files: Part = {
  name: 'files',
  unit: 'files',
  description: 'damaged files, bombs and forged bundles for every parser',
  fullCount: 20_000,
  sliceCount: 25,
  maxWorkers: 16,
  maxShrinkTries: 250,
  run,
  openReplayer: async () => {
    const parsers = await Parsers.open()
    return {
      replay: async (input) => {
        const { format, bytes } = input as unknown as FileInput
        if (typeof bytes !== 'string' || !formats.includes(format)) return []
        return (await tryFile(parsers, { format, bytes })).map((problem): Finding => ({ ...problem, input }))
      },
      [Symbol.asyncDispose]: () => parsers[Symbol.asyncDispose](),
    }
  },
}
