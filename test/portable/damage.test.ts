import { describe, expect, it } from 'vitest'
import type { ExportOptions } from '../../src/domain/bundle.ts'
import { MemoryError } from '../../src/domain/error.ts'
import { link, origin } from '../../src/portable/chain.ts'
import { exportBundle } from '../../src/portable/export.ts'
import { importBundle } from '../../src/portable/import.ts'
import { ramStore } from '../../src/stores/ram.ts'
import { verifies } from '../requirements/verifies.ts'
import { file, gathered } from './bytes.ts'
import { type History, storeWith, talk } from './memories.ts'

const passphrase = 'correct horse'
const lock = { passphrase, cost: 2, randomBytes: (length: number) => new Uint8Array(length).fill(7) }

const bundleOf = async (histories: readonly History[], options: ExportOptions = {}): Promise<Buffer> =>
  gathered(exportBundle(await storeWith(...histories), options))

/** How an import of these bytes ends; whatever is refused must have left nothing behind. */
async function outcome(bytes: Uint8Array): Promise<string> {
  const store = ramStore()
  try {
    await importBundle(store, file(bytes, 4_096), { passphrase })
    return 'imported'
  } catch (error) {
    expect(await store.list({ limit: 9 })).toEqual([])
    return error instanceof MemoryError ? error.code : String(error)
  }
}

async function message(bytes: Uint8Array | string): Promise<string> {
  return importBundle(ramStore(), file(Buffer.from(bytes)), { passphrase }).then(
    () => 'imported',
    (error: Error) => error.message,
  )
}

/** The outcomes of all variants, each once. */
async function outcomes(variants: Iterable<Uint8Array>): Promise<string[]> {
  const found = new Set<string>()
  for (const variant of variants) found.add(await outcome(variant))
  return [...found]
}

function* flipped(bytes: Buffer, bitsOf: (at: number) => readonly number[]): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at++) {
    for (const bit of bitsOf(at)) {
      const copy = Buffer.from(bytes)
      copy[at] = (copy[at] as number) ^ (1 << bit)
      yield copy
    }
  }
}

function* cutOff(bytes: Buffer): Generator<Buffer> {
  for (let length = 0; length < bytes.length; length++) yield bytes.subarray(0, length)
}

const small = [
  talk('acme:ann', ['ü\n\u001f', 'gone'], [2], [{ kind: 'sealed', id: 's', at: 1, box: 'AAAA', sources: [] }]),
]

describe('a damaged bundle', () => {
  verifies('X-12', 'is found out by any single flipped bit', async () => {
    const bundle = await bundleOf(small)
    expect(await outcome(bundle)).toBe('imported')
    expect(await outcomes(flipped(bundle, () => [0, 1, 2, 3, 4, 5, 6, 7]))).toEqual(['bad-bundle'])
  })

  verifies('X-12', 'is found out by a flipped bit in any byte when it is encrypted', async () => {
    const bundle = await bundleOf(small, { lock })
    expect(await outcome(bundle)).toBe('imported')
    expect(await outcomes(flipped(bundle, (at) => [at % 8]))).toEqual(['bad-bundle'])
  })

  it('is found out wherever it is cut off, plain or encrypted', async () => {
    expect(await outcomes(cutOff(await bundleOf(small)))).toEqual(['bad-bundle'])
    expect(await outcomes(cutOff(await bundleOf(small, { lock })))).toEqual(['bad-bundle'])
  })

  it('is found out when lines are removed, swapped, repeated or added', async () => {
    const lines = (await bundleOf([talk('acme:ann', ['a', 'a', 'a']), talk('acme:bob', ['a'])]))
      .toString()
      .split(/(?<=\n)/)
    const variants: string[][] = []
    for (const [at, one] of lines.entries()) {
      variants.push(lines.toSpliced(at, 1), lines.toSpliced(at, 0, one), [...lines, one])
      for (const [other, two] of lines.entries()) if (at !== other) variants.push(lines.with(at, two).with(other, one))
    }
    expect(await outcomes(variants.map((variant) => Buffer.from(variant.join(''))))).toEqual(['bad-bundle'])
  })

  it('is found out when encrypted parts are removed, swapped or repeated', async () => {
    const bundle = await bundleOf([talk('acme:ann', ['x'.repeat(250_000)])], { lock })
    const start = bundle.indexOf('\n') + 1
    const size = 65_536 + 16
    const parts = Array.from({ length: Math.ceil((bundle.length - start) / size) }, (_, at) =>
      bundle.subarray(start + at * size, start + (at + 1) * size),
    )
    expect(parts.length).toBe(4)
    const variants: Buffer[][] = []
    for (const [at, one] of parts.entries()) {
      variants.push(parts.toSpliced(at, 1), parts.toSpliced(at, 0, one))
      for (const [other, two] of parts.entries()) if (at !== other) variants.push(parts.with(at, two).with(other, one))
    }
    expect(await outcomes(variants.map((variant) => Buffer.concat([bundle.subarray(0, start), ...variant])))).toEqual([
      'bad-bundle',
    ])
    expect(await message(Buffer.concat([bundle.subarray(0, start), ...parts.slice(0, 3)]))).toBe(
      'Part 3 of the encrypted bundle was changed, moved or cut off. Fetch the bundle again, or export it again.',
    )
  })

  it('is told by the line at fault and what to do', async () => {
    const text = (await bundleOf(small)).toString()
    const lines = text.split(/(?<=\n)/)
    const again = ' Fetch the bundle again, or export it again.'
    expect(await message('')).toBe(`Line 1 of the bundle is not the first line of a Threadkeep bundle.${again}`)
    expect(await message('x'.repeat(9_000))).toBe(
      `Line 1 of the bundle is not the first line of a Threadkeep bundle.${again}`,
    )
    expect(await message(text.replace('AAAA', 'AAAB'))).toBe(
      `Line 4 of the bundle does not continue the lines before it: something was changed, removed, added or moved.${again}`,
    )
    expect(await message(text.replace('\\u001f', '\\u001F'))).toBe(
      `Line 3 of the bundle is not written as an export writes it.${again}`,
    )
    expect(await message(text.replace('{"hash"', '{hash'))).toBe(`Line 2 of the bundle is not a JSON object.${again}`)
    expect(await message(text.replace('"AAAA"', `${'['.repeat(50_000)}${']'.repeat(50_000)}`))).toBe(
      `Line 4 of the bundle is nested too deeply.${again}`,
    )
    expect(await message(lines.slice(0, -1).join(''))).toBe(
      `Line 5 of the bundle is missing: the end of the bundle was cut off.${again}`,
    )
    expect(await message(text.slice(0, -1))).toBe(
      `Line 5 of the bundle is cut off: it does not end with a newline.${again}`,
    )
    expect(
      await message(
        Buffer.from(text.replace('ü', '\u0001'), 'latin1').fill(0xff, text.indexOf('ü'), text.indexOf('ü') + 1),
      ),
    ).toBe(`Line 3 of the bundle is not UTF-8.${again}`)
  })
})

describe('a bundle that is being read', () => {
  it('is let go of however it ends', async () => {
    const bundle = await bundleOf(small)
    const counts: number[] = []
    for (const bytes of [
      bundle,
      bundle.subarray(0, 300),
      Buffer.from('no bundle'.repeat(1_000)),
      Buffer.concat([bundle, bundle]),
    ]) {
      let held = 0
      const open = async function* () {
        held++
        try {
          yield* file(bytes, 100)()
        } finally {
          held--
        }
      }
      await importBundle(ramStore(), open).catch(() => undefined)
      counts.push(held)
    }
    expect(counts).toEqual([0, 0, 0, 0])
  })
})

describe('a forged bundle', () => {
  const header = { bundle: 'threadkeep', version: 1 }
  const session = { key: 'acme:ann', startedAt: 1, touchedAt: 1, expiresAt: 9, last: 2, messages: 1, entries: 0 }
  const said = {
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

  /** A bundle of these lines with hashes that fit. */
  function forged(...bodies: readonly Record<string, unknown>[]): string {
    let previous = origin
    return bodies
      .map((body) => {
        const { line, hash } = link(previous, body)
        previous = hash
        return `${line}\n`
      })
      .join('')
  }
  const fault = async (...bodies: readonly Record<string, unknown>[]) =>
    (await message(forged(...bodies)))
      .replace(/^Line (\d+) of the bundle /, '$1 ')
      .replace('. Fetch the bundle again, or export it again.', '')

  it('is imported if it says what an export could say', async () =>
    expect(await fault(header, { session }, { message: said }, { end })).toBe('imported'))

  it('is refused when a line says what cannot be', async () => {
    const cannot = (what: string) => expect.stringMatching(new RegExp(`^\\d cannot be read: ${what}`))
    expect(await fault({ ...header, version: 2 })).toBe(
      'The bundle is of version 2, this Threadkeep reads version 1. Update Threadkeep.',
    )
    expect(await fault({ ...header, more: 1 })).toBe('1 has the unknown field more')
    expect(await fault(header, { session: { ...session, key: 'a b' } })).toEqual(
      cannot('The scope of key "a b" may hold only'),
    )
    expect(await fault(header, { session: { ...session, last: -1 } })).toEqual(
      cannot('session.last is -1; it must be a whole number, 0 or more'),
    )
    expect(await fault(header, { session }, { message: { ...said, role: 'god' } })).toEqual(
      cannot('message.role is "god"'),
    )
    expect(await fault(header, { session }, { message: { ...said, secret: 1 } })).toEqual(
      cannot('message.secret is 1; it must be left out'),
    )
    expect(await fault(header, { session }, { message: said }, { entry: { ...item, kind: 'x' } })).toEqual(
      cannot('entry.kind is "x"'),
    )
    expect(await fault(header, { session, end })).toBe('2 must hold one of session, message, entry, graph, end')
    expect(await fault(header, { cipher: {} })).toBe('2 must hold one of session, message, entry, graph, end')
    expect(await fault({ ...header, cipher: { name: 'rot13' } })).toEqual(
      cannot('cipher.name is "rot13"; it must be one of aes-256-gcm'),
    )
  })

  it('is refused when its lines are out of order or do not add up', async () => {
    expect(await fault(header, { message: said })).toBe('2 is a message outside the messages of a session')
    expect(await fault(header, { entry: item })).toBe('2 is an entry outside a session')
    expect(await fault(header, { session }, { message: said }, { message: said })).toBe(
      '4 has the message number 1, which is out of order',
    )
    expect(await fault(header, { session }, { message: { ...said, sequence: 3 } })).toBe(
      '3 has the message number 3, which is out of order',
    )
    expect(await fault(header, { session }, { entry: item }, { message: said })).toBe(
      '4 is a message outside the messages of a session',
    )
    expect(await fault(header, { session }, { entry: item }, { entry: item })).toBe(
      '4 has the entry "i", which is out of order',
    )
    expect(await fault(header, { session }, { end })).toBe(
      '3 comes too early: session acme:ann should have 1 messages and 0 entries',
    )
    expect(await fault(header, { session }, { message: said }, { session })).toBe(
      '4 has the session acme:ann, which is out of order',
    )
    expect(await fault(header, { session }, { message: said }, { end: { ...end, sessions: 2 } })).toBe(
      '4 counts other lines than there are',
    )
    expect(await fault(header, { session }, { message: said }, { end }, { end })).toBe(
      '5 follows the end of the bundle',
    )
  })
})
