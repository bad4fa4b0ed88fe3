import { describe, expect, it } from 'vitest'
import type { ExportOptions } from '../../src/domain/bundle.ts'
import { MemoryError } from '../../src/domain/error.ts'
import { chainStart, createChainLine } from '../../src/portable/chain.ts'
import { exportBundle } from '../../src/portable/export.ts'
import { importBundle } from '../../src/portable/import.ts'
import { ramStore } from '../../src/stores/ram.ts'
import { verifies } from '../requirements/verifies.ts'
import { openChunks, readAll } from './byteStreams.ts'
import { conversation, createStoreWith, type History } from './histories.ts'

const passphrase = 'correct horse'
const lock = { passphrase, cost: 2, randomBytes: (length: number) => new Uint8Array(length).fill(7) }

const createBundle = async (histories: readonly History[], options: ExportOptions = {}): Promise<Buffer> =>
  readAll(exportBundle(await createStoreWith(...histories), options))

/** Imports the bytes and returns `imported` or the error code; a failed import must write nothing. */
async function importOutcome(bytes: Uint8Array): Promise<string> {
  const store = ramStore()
  try {
    await importBundle(store, openChunks(bytes, 4_096), { passphrase })
    return 'imported'
  } catch (error) {
    expect(await store.list({ limit: 9 })).toEqual([])
    return error instanceof MemoryError ? error.code : String(error)
  }
}

async function importMessage(bytes: Uint8Array | string): Promise<string> {
  return importBundle(ramStore(), openChunks(Buffer.from(bytes)), { passphrase }).then(
    () => 'imported',
    (error: Error) => error.message,
  )
}

/** Returns the distinct outcomes of all variants. */
async function distinctOutcomes(variants: Iterable<Uint8Array>): Promise<string[]> {
  const outcomes = new Set<string>()
  for (const variant of variants) outcomes.add(await importOutcome(variant))
  return [...outcomes]
}

function* flipBits(bytes: Buffer, bitsOf: (index: number) => readonly number[]): Generator<Buffer> {
  for (let index = 0; index < bytes.length; index++) {
    for (const bit of bitsOf(index)) {
      const copy = Buffer.from(bytes)
      copy[index] = (copy[index] as number) ^ (1 << bit)
      yield copy
    }
  }
}

function* truncate(bytes: Buffer): Generator<Buffer> {
  for (let length = 0; length < bytes.length; length++) yield bytes.subarray(0, length)
}

const smallHistory = [
  conversation(
    'acme:ann',
    ['ü\n\u001f', 'gone'],
    [2],
    [{ kind: 'encrypted', id: 's', at: 1, ciphertext: 'AAAA', sources: [] }],
  ),
]

describe('importBundle with a damaged bundle', () => {
  verifies('X-12', 'with any flipped bit › throws bad-bundle', async () => {
    const bundle = await createBundle(smallHistory)
    expect(await importOutcome(bundle)).toBe('imported')
    expect(await distinctOutcomes(flipBits(bundle, () => [0, 1, 2, 3, 4, 5, 6, 7]))).toEqual(['bad-bundle'])
  })

  verifies('X-12', 'with a flipped bit in any byte of an encrypted bundle › throws bad-bundle', async () => {
    const bundle = await createBundle(smallHistory, { encryption: lock })
    expect(await importOutcome(bundle)).toBe('imported')
    expect(await distinctOutcomes(flipBits(bundle, (index) => [index % 8]))).toEqual(['bad-bundle'])
  })

  it('with a bundle truncated at any byte › throws bad-bundle', async () => {
    expect(await distinctOutcomes(truncate(await createBundle(smallHistory)))).toEqual(['bad-bundle'])
    expect(await distinctOutcomes(truncate(await createBundle(smallHistory, { encryption: lock })))).toEqual([
      'bad-bundle',
    ])
  })

  it('with lines removed, swapped, repeated or added › throws bad-bundle', async () => {
    const lines = (await createBundle([conversation('acme:ann', ['a', 'a', 'a']), conversation('acme:bob', ['a'])]))
      .toString()
      .split(/(?<=\n)/)
    const variants: string[][] = []
    for (const [i, line] of lines.entries()) {
      variants.push(lines.toSpliced(i, 1), lines.toSpliced(i, 0, line), [...lines, line])
      for (const [j, other] of lines.entries()) if (i !== j) variants.push(lines.with(i, other).with(j, line))
    }
    expect(await distinctOutcomes(variants.map((variant) => Buffer.from(variant.join(''))))).toEqual(['bad-bundle'])
  })

  it('with encrypted parts removed, swapped or repeated › throws bad-bundle', async () => {
    const bundle = await createBundle([conversation('acme:ann', ['x'.repeat(250_000)])], { encryption: lock })
    const start = bundle.indexOf('\n') + 1
    const size = 65_536 + 16
    const parts = Array.from({ length: Math.ceil((bundle.length - start) / size) }, (_, index) =>
      bundle.subarray(start + index * size, start + (index + 1) * size),
    )
    expect(parts.length).toBe(4)
    const variants: Buffer[][] = []
    for (const [i, part] of parts.entries()) {
      variants.push(parts.toSpliced(i, 1), parts.toSpliced(i, 0, part))
      for (const [j, other] of parts.entries()) if (i !== j) variants.push(parts.with(i, other).with(j, part))
    }
    expect(
      await distinctOutcomes(variants.map((variant) => Buffer.concat([bundle.subarray(0, start), ...variant]))),
    ).toEqual(['bad-bundle'])
    expect(await importMessage(Buffer.concat([bundle.subarray(0, start), ...parts.slice(0, 3)]))).toBe(
      'Part 3 of the encrypted bundle was changed, moved or cut off. Fetch the bundle again, or export it again.',
    )
  })

  it('with each kind of damage › names the line, the problem and the remedy', async () => {
    const text = (await createBundle(smallHistory)).toString()
    const lines = text.split(/(?<=\n)/)
    const remedy = ' Fetch the bundle again, or export it again.'
    expect(await importMessage('')).toBe(`Line 1 of the bundle is not the first line of a Threadkeep bundle.${remedy}`)
    expect(await importMessage('x'.repeat(9_000))).toBe(
      `Line 1 of the bundle is not the first line of a Threadkeep bundle.${remedy}`,
    )
    expect(await importMessage(text.replace('AAAA', 'AAAB'))).toBe(
      `Line 4 of the bundle does not continue the lines before it: something was changed, removed, added or moved.${remedy}`,
    )
    expect(await importMessage(text.replace('\\u001f', '\\u001F'))).toBe(
      `Line 3 of the bundle is not written as an export writes it.${remedy}`,
    )
    expect(await importMessage(text.replace('{"hash"', '{hash'))).toBe(
      `Line 2 of the bundle is not a JSON object.${remedy}`,
    )
    expect(await importMessage(text.replace('"AAAA"', `${'['.repeat(50_000)}${']'.repeat(50_000)}`))).toBe(
      `Line 4 of the bundle is nested too deeply.${remedy}`,
    )
    expect(await importMessage(lines.slice(0, -1).join(''))).toBe(
      `Line 5 of the bundle is missing: the end of the bundle was cut off.${remedy}`,
    )
    expect(await importMessage(text.slice(0, -1))).toBe(
      `Line 5 of the bundle is cut off: it does not end with a newline.${remedy}`,
    )
    expect(
      await importMessage(
        Buffer.from(text.replace('ü', '\u0001'), 'latin1').fill(0xff, text.indexOf('ü'), text.indexOf('ü') + 1),
      ),
    ).toBe(`Line 3 of the bundle is not UTF-8.${remedy}`)
  })
})

describe('importBundle', () => {
  it('however it ends › closes the source', async () => {
    const bundle = await createBundle(smallHistory)
    const counts: number[] = []
    for (const bytes of [
      bundle,
      bundle.subarray(0, 300),
      Buffer.from('no bundle'.repeat(1_000)),
      Buffer.concat([bundle, bundle]),
    ]) {
      let openSources = 0
      const open = async function* () {
        openSources++
        try {
          yield* openChunks(bytes, 100)()
        } finally {
          openSources--
        }
      }
      await importBundle(ramStore(), open).catch(() => undefined)
      counts.push(openSources)
    }
    expect(counts).toEqual([0, 0, 0, 0])
  })
})

describe('importBundle with a forged bundle', () => {
  const header = { bundle: 'threadkeep', version: 1 }
  const session = { key: 'acme:ann', startedAt: 1, touchedAt: 1, expiresAt: 9, last: 2, messages: 1, entries: 0 }
  const message = {
    at: 1,
    role: 'user',
    content: 'x',
    tokens: 1,
    lineTokens: 1,
    tokenizer: 't',
    weight: 1,
    sequence: 1,
    offset: 0,
  }
  const item = {
    kind: 'item',
    id: 'i',
    at: 1,
    category: 'task',
    content: 'x',
    importance: 1,
    marked: true,
    sources: [],
  }
  const end = { sessions: 1, messages: 1, entries: 0 }

  /** Creates a bundle of these lines with valid hashes. */
  function forgeBundle(...bodies: readonly Record<string, unknown>[]): string {
    let previous = chainStart
    return bodies
      .map((body) => {
        const { line, hash } = createChainLine(previous, body)
        previous = hash
        return `${line}\n`
      })
      .join('')
  }
  const importForged = async (...bodies: readonly Record<string, unknown>[]) =>
    (await importMessage(forgeBundle(...bodies)))
      .replace(/^Line (\d+) of the bundle /, '$1 ')
      .replace('. Fetch the bundle again, or export it again.', '')

  it('with valid records › imports it', async () =>
    expect(await importForged(header, { session }, { message }, { end })).toBe('imported'))

  it('with invalid records › throws an error that names the field', async () => {
    const unreadable = (problem: string) => expect.stringMatching(new RegExp(`^\\d cannot be read: ${problem}`))
    expect(await importForged({ ...header, version: 2 })).toBe(
      'The bundle is of version 2, this Threadkeep reads version 1. Update Threadkeep.',
    )
    expect(await importForged({ ...header, more: 1 })).toBe('1 has the unknown field more')
    expect(await importForged(header, { session: { ...session, key: 'a b' } })).toEqual(
      unreadable('The scope of key "a b" may hold only'),
    )
    expect(await importForged(header, { session: { ...session, last: -1 } })).toEqual(
      unreadable('session.last is -1; it must be a whole number from 0 to'),
    )
    expect(await importForged(header, { session }, { message: { ...message, role: 'god' } })).toEqual(
      unreadable('message.role is "god"'),
    )
    expect(await importForged(header, { session }, { message: { ...message, secret: 1 } })).toEqual(
      unreadable('Unknown field message.secret'),
    )
    expect(await importForged(header, { session }, { message }, { entry: { ...item, kind: 'x' } })).toEqual(
      unreadable('entry.kind is "x"'),
    )
    expect(await importForged(header, { session, end })).toBe(
      '2 must hold one of session, message, entry, record, graph, row, end, signature',
    )
    expect(await importForged(header, { cipher: {} })).toBe(
      '2 must hold one of session, message, entry, record, graph, row, end, signature',
    )
    expect(await importForged({ ...header, cipher: { name: 'rot13' } })).toEqual(
      unreadable('cipher.name is "rot13"; it must be one of aes-256-gcm'),
    )
  })

  it('with records out of order or wrong counts › throws', async () => {
    expect(await importForged(header, { message })).toBe('2 is a message outside the messages of a session')
    expect(await importForged(header, { entry: item })).toBe('2 is an entry outside a session')
    expect(await importForged(header, { session }, { message }, { message })).toBe(
      '4 has the message number 1, which is out of order',
    )
    expect(await importForged(header, { session }, { message: { ...message, sequence: 3 } })).toBe(
      '3 has the message number 3, which is out of order',
    )
    expect(await importForged(header, { session }, { entry: item }, { message })).toBe(
      '4 is a message outside the messages of a session',
    )
    expect(await importForged(header, { session }, { entry: item }, { entry: item })).toBe(
      '4 has the entry "i", which is out of order',
    )
    expect(await importForged(header, { session }, { end })).toBe(
      '3 comes too early: session acme:ann should have 1 messages and 0 entries',
    )
    expect(await importForged(header, { session }, { message }, { session })).toBe(
      '4 has the session acme:ann, which is out of order',
    )
    expect(await importForged(header, { session }, { message }, { end: { ...end, sessions: 2 } })).toBe(
      '4 counts other lines than there are',
    )
    expect(await importForged(header, { session }, { message }, { end }, { end })).toBe(
      '5 follows the end of the bundle',
    )
  })
})
