import type { Json } from '../../../src/domain/entry.ts'
import { isObject } from '../../../src/domain/error.ts'
import { chainStart, createChainLine } from '../../../src/portable/chain.ts'
import { hostileText } from '../hostile.ts'
import type { Random } from '../random.ts'
import { mutate } from '../schemaValues.ts'
import { attacks, type Format } from './samples.ts'

/** A hostile version of a sample: changed in its structure or its bytes, or an attack on the format. */
export function createHostileFile(format: Format, sample: string, random: Random): string {
  const attack = attacks[format]
  return random.weighted<() => string>([
    [attack === undefined ? 0 : 1.5, () => random.pick(attack ?? [])(random)],
    [4, () => mutateStructure(format, sample, random)],
    [2, () => mutateBytes(sample, random)],
    [1, () => sample.slice(0, random.int(0, sample.length))],
  ])()
}

function mutateBytes(sample: string, random: Random): string {
  const at = random.int(0, sample.length)
  return random.pick([
    () => sample.slice(0, at) + toBytes(hostileText(random)) + sample.slice(at),
    () => sample.slice(0, at) + sample.slice(at + random.int(1, 40)),
    () => flipBytes(sample, random),
    () => sample.slice(0, at) + sample.slice(random.int(0, at)),
    () =>
      sample.replaceAll(/\d+/g, (digits) =>
        random.chance(0.1) ? random.pick(['0', '-1', '4294967295', '1e308', '99999999999999999999']) : digits,
      ),
  ])()
}

function flipBytes(text: string, random: Random): string {
  const bytes = Buffer.from(text, 'latin1')
  if (bytes.length === 0) return text
  for (let count = random.int(1, 12); count > 0; count--) bytes[random.int(0, bytes.length - 1)] = random.int(0, 255)
  return bytes.toString('latin1')
}

const toBytes = (text: string): string => Buffer.from(text).toString('latin1')
const toText = (bytes: string): string => Buffer.from(bytes, 'latin1').toString()

const jsonFormats: ReadonlySet<Format> = new Set([
  ...(['json', 'chatgpt', 'claude', 'client keys', 'configuration', 'prices'] as const),
])

/** Changes values inside the format's own structure, so that its checks pass and the contents are read. */
function mutateStructure(format: Format, sample: string, random: Random): string {
  if (format === 'bundle') return mutateBundle(sample, random)
  if (format === 'encrypted bundle') return mutateHeader(sample, random)
  if (format === 'layout') return mutateSession(sample, random)
  if (format === 'openai' || format === 'server-memory') return toBytes(mutateLines(toText(sample), random))
  if (jsonFormats.has(format)) return toBytes(JSON.stringify(mutate(JSON.parse(toText(sample)) as Json, random)))
  return mutateTokens(sample, random)
}

const mutateLines = (text: string, random: Random): string =>
  text
    .split('\n')
    .map((line) =>
      line === '' || random.chance(0.5) ? line : JSON.stringify(mutate(JSON.parse(line) as Json, random)),
    )
    .join('\n')

/** Changes records and computes the hash chain again. */
function mutateBundle(sample: string, random: Random): string {
  // Nothing else changes then, so that the records are still valid and are read.
  const isForged = random.chance(0.4)
  const changed = isForged ? -1 : random.int(0, 3)
  const bodies = toText(sample)
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, Json>)
  for (let count = 0; count <= changed; count++) {
    const at = random.int(0, bodies.length - 1)
    const body = mutate(bodies[at] as Json, random)
    if (isObject(body)) bodies[at] = body as Record<string, Json>
  }
  if (isForged) forgeNumbers(bodies, random)
  else if (random.chance(0.1)) bodies.splice(random.int(0, bodies.length - 1), 1)
  let previous = chainStart
  return bodies
    .map(({ hash: _, ...body }) => {
      const { line, hash } = createChainLine(previous, body)
      previous = hash
      return `${toBytes(line)}\n`
    })
    .join('')
}

/** Changes the parameters of an encrypted bundle, or its encrypted part, and computes the hash of the header again. */
function mutateHeader(sample: string, random: Random): string {
  const end = sample.indexOf('\n')
  const { hash: _, ...header } = JSON.parse(sample.slice(0, end)) as Record<string, Json>
  const encrypted = sample.slice(end)
  if (random.chance(0.4)) return sample.slice(0, end) + mutateBytes(encrypted, random)
  const changed = mutate(header as Json, random)
  return `${toBytes(createChainLine(chainStart, isObject(changed) ? changed : header).line)}${encrypted}`
}

/** Numbers that a reader could trust: too small ones let a context exceed its budget, too large ones end a session. */
const forgedNumbers = [0, 0, 1, -1, 0.5, 1e9, 2 ** 53 - 1]

/** Sets all numbers of some names in all records to the same value, at any depth. */
function forgeNumbers(bodies: Record<string, Json>[], random: Random): void {
  const names = new Set<string>()
  const visit = (value: Json, change: (name: string, number: number) => number): Json => {
    if (Array.isArray(value)) return value.map((child) => visit(child, change))
    if (!isObject(value)) return value
    return Object.fromEntries(
      Object.entries(value as Record<string, Json>).map(([name, child]) => [
        name,
        typeof child === 'number' ? change(name, child) : visit(child, change),
      ]),
    )
  }
  const collect = (name: string, number: number): number => {
    names.add(name)
    return number
  }
  for (const body of bodies) visit(body, collect)
  const value = random.pick(forgedNumbers)
  const isSize = random.chance(0.6)
  const forged = new Set([...names].filter((name) => (isSize ? /tokens|weight/i.test(name) : random.chance(0.15))))
  for (const [at, body] of bodies.entries())
    bodies[at] = visit(body, (name, number) => (forged.has(name) ? value : number)) as Record<string, Json>
}

/** Changes one file of a saved session; the hashes are computed when it is written. */
function mutateSession(sample: string, random: Random): string {
  const files = JSON.parse(toText(sample)) as Record<string, string>
  const name = random.pick(Object.keys(files))
  const text = files[name] ?? ''
  const change = (): string => {
    try {
      return name.endsWith('.jsonl')
        ? mutateLines(text, random)
        : JSON.stringify(mutate(JSON.parse(text) as Json, random))
    } catch {
      return text.slice(0, random.int(0, text.length))
    }
  }
  return toBytes(JSON.stringify({ ...files, [name]: change() }))
}

/** Drops, repeats, swaps or replaces tokens of a text format. */
function mutateTokens(sample: string, random: Random): string {
  const tokens = sample.split(/(?<=[\s<>/[\](),"'])/)
  for (let count = random.int(1, 6); count > 0; count--) {
    const at = random.int(0, tokens.length - 1)
    const token = tokens[at] ?? ''
    tokens[at] = random.pick([
      '',
      token.repeat(2),
      token.repeat(random.int(2, 300)),
      random.pick(tokens),
      toBytes(hostileText(random, 30)),
    ])
  }
  return tokens.join('')
}
