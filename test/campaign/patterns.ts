import { Worker } from 'node:worker_threads'
import { type AttackPattern, check } from 'recheck'
import type { Json } from '../../src/domain/entry.ts'
import { collectPatterns, type Pattern } from '../shape/patterns/collect.ts'
import { isFalseFinding, maxCharactersOf } from '../shape/patterns/rule.ts'
import { readSources } from '../shape/source.ts'
import type { Finding, Part, Replayer, RunOptions } from './part.ts'
import { Random } from './random.ts'

/** Characters of an attack on a pattern that is applied to texts of any length. */
const maxAttackCharacters = 100_000
/** Linear patterns take some milliseconds for as many characters, quadratic ones seconds. */
const maxCpuMs = 200
const maxSearchMs = 30_000
const maxMatchMs = 10_000

/** Repeats the parts of an attack until it has a number of characters. */
function createAttack({ pumps, suffix }: AttackPattern, characters: number): string {
  const fixed = pumps.reduce((sum, { prefix }) => sum + prefix.length, suffix.length)
  const repeated = pumps.reduce((sum, { pump }) => sum + pump.length, 0)
  const count = Math.max(1, Math.floor((characters - fixed) / repeated))
  return pumps.map(({ prefix, pump }) => prefix + pump.repeat(count)).join('') + suffix
}

const matcher = `
const { parentPort, workerData: { source, flags, text } } = require('node:worker_threads')
const pattern = new RegExp(source, flags)
const before = process.threadCpuUsage()
if (pattern.global) text.match(pattern)
else pattern.test(text)
parentPort.postMessage(process.threadCpuUsage(before).user / 1_000)
`

/** Measures the processor time of a match in milliseconds; gives up after `maxMatchMs`. */
async function measureMatch({ source, flags }: Pattern, text: string): Promise<number> {
  const worker = new Worker(matcher, { eval: true, workerData: { source, flags, text } })
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  const timer = setTimeout(() => resolve(maxMatchMs), maxMatchMs)
  worker.on('message', resolve).on('error', reject)
  try {
    return await promise
  } finally {
    clearTimeout(timer)
    await worker.terminate()
  }
}

/** Searches for an attack on a pattern; undefined if none takes long. */
async function attack(pattern: Pattern, count?: (status: string) => void): Promise<Finding | undefined> {
  // The flags d and g do not change a match, and the checker does not know the first.
  const found = await check(pattern.source, pattern.flags.replace(/[dg]/g, ''), { timeout: maxSearchMs })
  count?.(found.status)
  if (found.status !== 'vulnerable' || isFalseFinding(pattern)) return undefined
  const text = createAttack(found.attack, Math.min(maxAttackCharacters, maxCharactersOf(pattern)))
  const milliseconds = await measureMatch(pattern, text)
  if (milliseconds < maxCpuMs) return undefined
  const { at, source, flags } = pattern
  const detail = `${at} ${found.complexity.summary}: ${Math.round(milliseconds)} ms for ${text.length} characters like ${found.attack.pattern}: /${source}/${flags}`
  return { kind: `superlinear pattern in ${at}`, detail, input: { at, source, flags } }
}

async function run({ seed, inputs, isOver, counter, onProgress, onFinding }: RunOptions): Promise<number> {
  const { patterns } = await collectPatterns(readSources('src', 'inspector/src'))
  const random = new Random(seed)
  const shuffled = patterns
    .map((pattern) => ({ pattern, rank: random.next() }))
    .sort((a, b) => a.rank - b.rank)
    .slice(0, inputs)
  let done = 0
  for (const { pattern } of shuffled) {
    if (isOver()) break
    const finding = await attack(pattern, (status) => counter.add(status))
    if (finding !== undefined) onFinding(finding)
    onProgress(++done)
  }
  return done
}

const openReplayer = async (): Promise<Replayer> => ({
  async replay(input: Json) {
    const finding = await attack(input as unknown as Pattern)
    return finding === undefined ? [] : [finding]
  },
  async [Symbol.asyncDispose]() {},
})

/** Searches for texts for which a regular expression of the sources takes superlinear time. */
export const patterns: Part = {
  name: 'patterns',
  unit: 'patterns',
  description: 'attacks on every regular expression of the sources',
  fullCount: 2_500,
  sliceCount: 5,
  maxWorkers: 1,
  maxShrinkTries: 0,
  run,
  openReplayer,
}
