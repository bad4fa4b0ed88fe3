import type { Json } from '../../src/domain/entry.ts'
import { createText, fillText } from '../server/stalls/hostileTexts.ts'
import { encodingOf, splittingEndpoints, stallEndpoints } from '../server/stalls/stallEndpoints.ts'
import { type StallProbe, startStallProbe } from '../server/stalls/stallProbe.ts'
import { hostileFragments } from './hostile.ts'
import type { Finding, Part, Replayer, RunOptions } from './part.ts'
import { Random, seedOf } from './random.ts'

/** A text made of fragments, and the endpoint that it is sent through. */
type StallInput = {
  readonly endpoint: string
  /** Size of the request. */
  readonly bytes: number
  readonly fragments: readonly string[]
  readonly separator: string
  /** The fragments follow each other in random order instead of in turn. */
  readonly isShuffled: boolean
}
type SizeClass = { readonly name: string; readonly maxBytes: number; readonly maxMs: number }

const small: SizeClass = { name: 'up to 1 MB', maxBytes: 1_000_000, maxMs: 50 }
const large: SizeClass = { name: 'up to 8 MB', maxBytes: 8_000_000, maxMs: 250 }
/** Just below the limit of a request's body, because the size of a text is estimated from its start. */
const largest: SizeClass = { name: 'up to 33 MB', maxBytes: 33_000_000, maxMs: 250 }
const sizeClasses = [small, large, largest]
const largeShare = 0.1
/** One text in this many is of the largest class. The slice of the test suite ends before the first. */
const textsPerLargest = 33
const minBytes = 100_000
/** These take seconds of processor time per megabyte. */
const slowEndpoints = /^mcp save/
const maxSlowBytes = 2_000_000
/** A stall repeats; compilation and a collection of garbage do not. */
const maxAttempts = 3
/** Texts after which a new server starts. */
const textsPerServer = 150

/** Fragments that stand for words; each occurrence becomes another one. */
const wordPattern = /%([wNd])/g
const frames = [
  ...['%w', '%N', '%d', '%w ', '%N ', 'My %w is %w. ', 'I prefer %w over %w. ', '%N said that %N likes %w. '],
  ...['- %w: %d\n', '| %w | %d ', '"%w": "%w", ', '%w=%d&', '%w.%w(', '/%w/%w', 'https://%w.example/%w ', '#%d '],
  ...['User: %w\n', '%d-%d-%d ', '$%d.%d ', 'never %w ', 'No, not %w but %w. ', 'remember that %w ', '%w@%w.com '],
  ...['def %w(%w):\n', '%w_%w ', '%N%N%N ', "'%w' ", '“%w” ', '> %w\n', '```\n%w\n```\n', '## %w\n', '%d %w, '],
  ...['seit %d jahren ', 'password: %w%d ', '<%w>', '&lt;%w&gt;', '\\n%w', '一%w', '、', 'é%w', '\u200b', 'ß'],
]

const generate = (random: Random, index: number): StallInput => {
  const isLargest = index % textsPerLargest === textsPerLargest - 1
  const sizeClass = isLargest ? largest : random.chance(largeShare) ? large : small
  const endpoint = random.pick(Object.keys(isLargest ? splittingEndpoints : stallEndpoints))
  const from = sizeClasses[sizeClasses.indexOf(sizeClass) - 1]?.maxBytes ?? minBytes
  const bytes = Math.round(from * (sizeClass.maxBytes / from) ** random.next())
  return {
    endpoint,
    bytes: slowEndpoints.test(endpoint) ? Math.min(bytes, maxSlowBytes) : bytes,
    fragments: random.list(1, 5, () => random.pick(random.chance(0.7) ? frames : hostileFragments)),
    separator: random.pick(['', '', '', ' ', '\n', ', ', '\t']),
    isShuffled: random.chance(0.5),
  }
}

const createWord = (random: Random): string => String.fromCharCode(...random.list(2, 9, () => random.int(0x61, 0x7a)))

const sizeClassOf = ({ bytes }: StallInput): SizeClass =>
  sizeClasses.find(({ maxBytes }) => bytes <= maxBytes) ?? largest

function buildText({ endpoint, bytes, fragments, separator, isShuffled }: StallInput): string {
  const words: Readonly<Record<string, (random: Random) => string>> = {
    w: createWord,
    N: (random) => createWord(random).replace(/^./, (first) => first.toUpperCase()),
    d: (random) => String(random.int(0, 9_999)),
  }
  const create = (size: number): string => {
    const random = new Random(bytes)
    let at = 0
    return fillText(size, separator, () => {
      const fragment = isShuffled ? random.pick(fragments) : (fragments[at++ % fragments.length] as string)
      return fragment.replace(wordPattern, (_, kind: string) => words[kind]?.(random) ?? '')
    })
  }
  return createText(create, bytes, encodingOf(endpoint))
}

/** Measures up to three attempts, each in a tenant of its own. */
async function measure(probe: StallProbe, input: StallInput, tenant: string) {
  const run = stallEndpoints[input.endpoint]
  const text = buildText(input)
  const { maxMs } = sizeClassOf(input)
  const attempts: number[] = []
  let isRefused = false
  while (run !== undefined && attempts.length < maxAttempts && Math.min(...attempts) > maxMs) {
    const session = `${tenant}a${attempts.length}:s`
    const { longestMs, refusals } = await probe.measure((client) => run(client, text, session))
    attempts.push(longestMs)
    isRefused ||= refusals.length > 0
  }
  return { firstMs: attempts[0] ?? 0, shortestMs: Math.min(...attempts), isRefused }
}

const describeStall = (input: StallInput, ms: number): Finding => ({
  kind: `stall ${input.endpoint} ${sizeClassOf(input).name}`,
  detail: `${Math.round(ms)} ms, ${input.bytes} bytes of ${JSON.stringify(input.fragments)}`,
  input: input as unknown as Json,
})

async function run({ seed, inputs, isOver, counter, onProgress, onFinding }: RunOptions): Promise<number> {
  let done = 0
  while (done < inputs && !isOver()) {
    await using probe = await startStallProbe()
    const end = Math.min(inputs, done + textsPerServer)
    while (done < end && !isOver()) {
      const input = generate(new Random(seedOf(seed, done)), done)
      const { name, maxMs } = sizeClassOf(input)
      try {
        const { firstMs, shortestMs, isRefused } = await measure(probe, input, `t${done}`)
        counter.add(`${name}: texts`)
        if (isRefused) counter.add(`${name}: refused`)
        counter.max(`${name}: longest (ms)`, Math.round(shortestMs))
        if (firstMs > maxMs) counter.add(`${name}: ${shortestMs > maxMs ? 'over the limit' : 'not repeated'}`)
        if (shortestMs > maxMs) onFinding(describeStall(input, shortestMs))
      } catch (error) {
        onFinding({ ...describeStall(input, 0), kind: `error ${input.endpoint}`, detail: String(error).slice(0, 300) })
        break
      } finally {
        onProgress(++done)
      }
    }
  }
  return done
}

/** Shrinking may have removed required fields; such inputs have no findings. */
const isComplete = (input: Partial<StallInput> | null): input is StallInput =>
  typeof input?.endpoint === 'string' &&
  input.endpoint in stallEndpoints &&
  typeof input.bytes === 'number' &&
  typeof input.separator === 'string' &&
  Array.isArray(input.fragments) &&
  input.fragments.join('') !== ''

async function openReplayer(): Promise<Replayer> {
  const probe = await startStallProbe()
  let count = 0
  return {
    replay: async (value) => {
      const input = value as unknown as Partial<StallInput> | null
      if (!isComplete(input)) return []
      const { shortestMs } = await measure(probe, input, `r${count++}`)
      return shortestMs > sizeClassOf(input).maxMs ? [describeStall(input, shortestMs)] : []
    },
    [Symbol.asyncDispose]: () => probe[Symbol.asyncDispose](),
  }
}

/** Searches for long texts that hold the event loop, through every way to send a text. */
export const stalls: Part = {
  name: 'stalls',
  unit: 'texts',
  description: 'long texts of random hostile fragments through every way to send a text, with a model for upkeep',
  fullCount: 2_000,
  sliceCount: 3,
  maxWorkers: 4,
  maxShrinkTries: 40,
  run,
  openReplayer,
}
