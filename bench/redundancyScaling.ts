// Redundancy detection: CPU time for 2,000 and 20,000 texts, compared with a pairwise scan.
// npm run bench -- redundancy [--only chat|short|near|drifting|unique|few|long|copies] [--limit ROUNDS]
import { splitWords } from '../src/text/words.ts'
import { markRedundant } from '../src/upkeep/optimizer/redundancy.ts'
import { createRandom, createSentences, vocabulary } from './corpus.ts'
import { flags } from './datasets.ts'
import { measureInterleaved, report } from './measure.ts'

const [smallCount, largeCount] = [2_000, 20_000]
const rounds = Number(flags.limit ?? 7)

type Random = () => number
/** Returns a word with Zipf-distributed frequency. */
const randomWord = (random: Random): string => vocabulary[Math.floor(vocabulary.length ** random()) - 1] as string
const randomBelow = (random: Random, count: number): number => Math.floor(random() * count)

/** Creates texts from a seed. The distribution does not depend on their number. */
type TextGenerator = (count: number, seed: number) => string[]
const forEach =
  (create: (random: Random, index: number) => string): TextGenerator =>
  (count, seed) => {
    const random = createRandom(seed)
    return Array.from({ length: count }, (_, index) => create(random, index))
  }

/** Creates a log line of about twenty fixed words and variable fields. */
const createLogLine = (fields: string): string =>
  `INFO the gateway has finished a request for ${fields} and wrote one record about it to main storage before closing its connection`

function createNearCopies(count: number, seed: number): string[] {
  const random = createRandom(seed)
  const originals = createSentences(count / 20, seed + 100)
  return Array.from({ length: count }, () => {
    const words = (originals[randomBelow(random, originals.length)] as string).split(' ')
    for (let changes = randomBelow(random, 4); changes > 0; changes--)
      words[randomBelow(random, words.length)] = randomWord(random)
    return words.join(' ')
  })
}

const generators: Readonly<Record<string, readonly [description: string, TextGenerator]>> = {
  chat: ['sentences of 10 to 40 words', createSentences],
  short: [
    '1 to 12 words',
    forEach((random) => Array.from({ length: 1 + randomBelow(random, 12) }, () => randomWord(random)).join(' ')),
  ],
  near: ['near copies: 20 of each sentence, with up to 3 words changed', createNearCopies],
  drifting: ['one status line repeated with another number', forEach((_, index) => createLogLine(`n${index}`))],
  unique: [
    'log lines with unique ids and hosts',
    forEach((random, index) =>
      createLogLine(`r${index} on h${randomBelow(random, 1e6)} of v${randomBelow(random, 1e6)}`),
    ),
  ],
  few: [
    'log lines with seven fields of 5 to 100 values',
    forEach((random) =>
      createLogLine(
        [100, 10, 5, 50, 5, 100, 20].map((values, field) => `f${field}v${randomBelow(random, values)}`).join(' '),
      ),
    ),
  ],
  long: [
    'tool results of 120 words',
    forEach((random) => Array.from({ length: 120 }, () => randomWord(random)).join(' ')),
  ],
  copies: ['copies of one word', forEach(() => 'ok')],
}

/** Compares every pair of texts, as the source document describes. */
function scanPairs(texts: readonly string[]): Set<number> {
  const sets = texts.map((text) => new Set(splitWords(text)))
  const redundant = new Set<number>()
  for (const [index, older] of sets.entries())
    for (const newer of sets.slice(index + 1)) if (similarity(older, newer) >= 0.9) redundant.add(index)
  return redundant
}

function similarity(left: ReadonlySet<string>, right: ReadonlySet<string>): number {
  let shared = 0
  for (const word of left) if (right.has(word)) shared++
  return shared / (left.size + right.size - shared)
}

/** Returns the indexes of redundant texts. */
const findRedundant = (texts: readonly string[]): Set<number> =>
  new Set([...markRedundant(texts).entries()].flatMap(([index, mark]) => (mark === 1 ? [index] : [])))

/**
 * Returns CPU time in milliseconds, including garbage collection threads. Unlike wall time, it excludes other
 * processes.
 */
async function measureCpuMs(operation: () => unknown): Promise<number> {
  const before = process.cpuUsage()
  operation()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1_000
}

for (const [name, [description, generate]] of Object.entries(generators)) {
  if (flags.only !== undefined && flags.only !== name) continue
  // Ten small batches hold as many texts as the large one, so that both collect the garbage they produce and neither
  // runs on the same texts twice in a row.
  const batches = Array.from({ length: largeCount / smallCount }, (_, batch) => generate(smallCount, batch + 1))
  const all = generate(largeCount, batches.length + 1)
  const names = { batch: `${smallCount}`, all: `${largeCount}`, scan: `${smallCount}, pairwise` }
  const measurements = await measureInterleaved(
    {
      [names.batch]: async () =>
        (await measureCpuMs(() => batches.map((batch) => markRedundant(batch)))) / batches.length,
      [names.all]: () => measureCpuMs(() => markRedundant(all)),
    },
    rounds,
    2,
  )
  const [firstBatch] = batches as [string[]]
  let scanned = new Set<number>()
  const scanMs = await measureCpuMs(() => {
    scanned = scanPairs(firstBatch)
  })
  // The minimum is least affected by other load.
  const minimums = new Map([...measurements].map(([contender, times]) => [contender, [Math.min(...times)]]))
  report(`${name}: ${description}, ms, minimum of ${rounds}`, new Map([...minimums, [names.scan, [scanMs]]]), [
    { ours: names.all, peer: names.batch, atMost: 12 },
  ])
  const found = findRedundant(firstBatch)
  const isSame = found.size === scanned.size && [...found].every((index) => scanned.has(index))
  console.log(
    `  redundant: ${found.size} of ${smallCount}${isSame ? ', same as pairwise' : `; PAIRWISE FINDS ${scanned.size}`}; ${findRedundant(all).size} of ${largeCount}`,
  )
}
