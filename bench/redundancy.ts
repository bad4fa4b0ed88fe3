// Redundant entries: what ten times as many texts cost, side by side with the comparison of each with each.
// npm run bench -- redundancy [--only chat|short|near|drifting|unique|few|long|copies] [--limit ROUNDS]
import { wordsOf } from '../src/text/words.ts'
import { redundantOlder } from '../src/upkeep/optimizer/redundancy.ts'
import { seeded, sentences, vocabulary } from './corpus.ts'
import { flags } from './data.ts'
import { inTurn, report } from './rounds.ts'

const [less, more] = [2_000, 20_000]
const rounds = Number(flags.limit ?? 7)

type Random = () => number
/** Words as common as their rank makes them (Zipf). */
const word = (random: Random): string => vocabulary[Math.floor(vocabulary.length ** random()) - 1] as string
const below = (random: Random, count: number): number => Math.floor(random() * count)

/** Makes so many texts, others for another seed; what each text looks like does not depend on how many there are. */
type Mix = (count: number, seed: number) => string[]
const each =
  (make: (random: Random, place: number) => string): Mix =>
  (count, seed) => {
    const random = seeded(seed)
    return Array.from({ length: count }, (_, place) => make(random, place))
  }

/** A log line of some twenty fixed words, with fields filled in. */
const logLine = (fields: string): string =>
  `INFO the gateway has finished a request for ${fields} and wrote one record about it to main storage before closing its connection`

function nearCopies(count: number, seed: number): string[] {
  const random = seeded(seed)
  const originals = sentences(count / 20, seed + 100)
  return Array.from({ length: count }, () => {
    const words = (originals[below(random, originals.length)] as string).split(' ')
    for (let changes = below(random, 4); changes > 0; changes--) words[below(random, words.length)] = word(random)
    return words.join(' ')
  })
}

const mixes: Readonly<Record<string, readonly [what: string, Mix]>> = {
  chat: ['sentences of 10 to 40 words', sentences],
  short: [
    '1 to 12 words',
    each((random) => Array.from({ length: 1 + below(random, 12) }, () => word(random)).join(' ')),
  ],
  near: ['near copies: 20 of each sentence, with up to 3 words changed', nearCopies],
  drifting: ['one status line again and again, with another number', each((_, place) => logLine(`n${place}`))],
  unique: [
    'log lines with an id and a host of their own',
    each((random, place) => logLine(`r${place} on h${below(random, 1e6)} of v${below(random, 1e6)}`)),
  ],
  few: [
    'log lines with seven fields of 5 to 100 values',
    each((random) =>
      logLine([100, 10, 5, 50, 5, 100, 20].map((values, field) => `f${field}v${below(random, values)}`).join(' ')),
    ),
  ],
  long: ['tool results of 120 words', each((random) => Array.from({ length: 120 }, () => word(random)).join(' '))],
  copies: ['copies of one word', each(() => 'ok')],
}

/** Each with each, as the document has it. */
function scan(texts: readonly string[]): Set<number> {
  const sets = texts.map((text) => new Set(wordsOf(text)))
  const redundant = new Set<number>()
  for (const [place, older] of sets.entries())
    for (const newer of sets.slice(place + 1)) if (similarity(older, newer) >= 0.9) redundant.add(place)
  return redundant
}

function similarity(left: ReadonlySet<string>, right: ReadonlySet<string>): number {
  let both = 0
  for (const one of left) if (right.has(one)) both++
  return both / (left.size + right.size - both)
}

/** Where the redundant texts stand. */
const marked = (texts: readonly string[]): Set<number> =>
  new Set([...redundantOlder(texts).entries()].flatMap(([place, mark]) => (mark === 1 ? [place] : [])))

/** Processor time in milliseconds, with that of the threads that collect garbage: it does not count what others do on the machine. */
async function cost(work: () => unknown): Promise<number> {
  const before = process.cpuUsage()
  work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1_000
}

for (const [name, [what, mix]] of Object.entries(mixes)) {
  if (flags.only !== undefined && flags.only !== name) continue
  // As many texts in all, in ten lots: so both collect the garbage they make, and neither is given the same texts twice in a row.
  const lots = Array.from({ length: more / less }, (_, lot) => mix(less, lot + 1))
  const all = mix(more, lots.length + 1)
  const names = { lot: `${less}`, all: `${more}`, scan: `${less}, each with each` }
  const figures = await inTurn(
    {
      [names.lot]: async () => (await cost(() => lots.map((lot) => redundantOlder(lot)))) / lots.length,
      [names.all]: () => cost(() => redundantOlder(all)),
    },
    rounds,
    2,
  )
  const [some] = lots as [string[]]
  let scanned = new Set<number>()
  const once = await cost(() => {
    scanned = scan(some)
  })
  // The smallest of each: the others were disturbed.
  const smallest = new Map([...figures].map(([contender, times]) => [contender, [Math.min(...times)]]))
  report(`${name}: ${what}, ms, the smallest of ${rounds}`, new Map([...smallest, [names.scan, [once]]]), [
    { ours: names.all, peer: names.lot, atMost: 12 },
  ])
  const found = marked(some)
  const isSame = found.size === scanned.size && [...found].every((place) => scanned.has(place))
  console.log(
    `  redundant: ${found.size} of ${less}${isSame ? ', the same as each with each' : `; EACH WITH EACH FINDS ${scanned.size}`}; ${marked(all).size} of ${more}`,
  )
}
