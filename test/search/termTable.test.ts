import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { PostingTable } from '../../src/search/postingTable.ts'
import { TermTable } from '../../src/search/termTable.ts'
import { verifies } from '../requirements/verifies.ts'

const firstState = 2_166_136_261
const prime = 16_777_619
const step = (state: number, code: number): number => Math.imul(state ^ code, prime)

/** Words with equal FNV-1a hashes: blocks of two letters, of which each pair leads to the same state. */
function createCollidingWords(blocks: number): readonly string[] {
  let words = ['']
  let state = firstState
  for (let block = 0; block < blocks; block++) {
    const [one, other] = findCollidingBlocks(state)
    state = step(step(state, one.charCodeAt(0)), one.charCodeAt(1))
    words = words.flatMap((word) => [word + one, word + other])
  }
  return words
}

function findCollidingBlocks(state: number): readonly [string, string] {
  const seen = new Map<number, number>()
  for (let code = 0; ; code++) {
    const after = step(state, code)
    const earlier = seen.get(after >>> 16)
    seen.set(after >>> 16, code)
    if (earlier === undefined) continue
    // The second letter makes up for the lower half.
    const second = (after ^ step(state, earlier)) & 0xffff
    return [String.fromCharCode(code, 0), String.fromCharCode(earlier, second)]
  }
}

/** Words of six letters whose mixed hashes begin with ten zeros. */
function createWordsOfShard(count: number): readonly string[] {
  const words: string[] = []
  for (let number = 10_000; ; number++) {
    const start = `${number}`
    let state = firstState
    for (const letter of start) state = step(state, letter.charCodeAt(0))
    for (let code = 0; code <= 0xffff; code++) {
      let hash = step(state, code)
      hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d)
      if ((hash ^ (hash >>> 13)) >>> 22 === 0 && words.push(start + String.fromCharCode(code)) === count) return words
    }
  }
}

describe('a table of terms', () => {
  it('with any terms › numbers them in order and finds them, as a map does', () => {
    const term = fc.oneof(fc.string({ unit: 'binary' }), fc.integer({ min: 0, max: 50 }).map(String))
    fc.assert(
      fc.property(fc.array(term, { maxLength: 300 }), (terms) => {
        const [table, model] = [new TermTable(), new Map<string, number>()]
        for (const term of terms) {
          if (!model.has(term)) expect(table.find(term)).toBeUndefined()
          model.set(term, model.get(term) ?? model.size)
          expect(table.findOrAdd(term)).toBe(model.get(term))
        }
        expect([...model.keys()].map((term) => [table.find(term), table.termAt(model.get(term) as number)])).toEqual(
          [...model].map(([term, number]) => [number, term]),
        )
        expect(table.size).toBe(model.size)
      }),
    )
  })

  it('with more terms than one shard and one chunk have › finds all of them', () => {
    const table = new TermTable()
    const terms = Array.from({ length: 200_000 }, (_, number) => `term ${number.toString(36)}`)
    for (const [number, term] of terms.entries()) expect(table.findOrAdd(term)).toBe(number)
    expect(terms.every((term, number) => table.find(term) === number && table.termAt(number) === term)).toBe(true)
    expect(table.find('term')).toBeUndefined()
  })

  it('with terms of up to 65,535 characters › finds all of them, and cuts longer ones', () => {
    const table = new TermTable()
    const lengths = [1_000, 65_534, 65_535, 1, 65_536, 70_000, 2]
    const terms = lengths.map((length) => 'x'.repeat(length))
    expect(terms.map((term) => table.findOrAdd(term))).toEqual([0, 1, 2, 3, 2, 2, 4])
    expect(terms.map((term) => table.find(term))).toEqual([0, 1, 2, 3, 2, 2, 4])
    expect([0, 1, 2, 3, 4].map((number) => table.termAt(number).length)).toEqual([1_000, 65_534, 65_535, 1, 2])
  })

  it('with words of equal hashes among others › finds all of them after it has grown', () => {
    const table = new TermTable()
    const terms = [...createCollidingWords(6), ...Array.from({ length: 30_000 }, (_, number) => `term ${number}`)]
    for (const term of terms) table.findOrAdd(term)
    expect(terms.filter((term, number) => table.findOrAdd(term) !== number)).toEqual([])
  })

  // Without the limit of probes, this takes minutes.
  verifies('R-03', 'words of a text › with equal hashes › are found, and cost little', () => {
    const table = new TermTable()
    const words = createCollidingWords(17)
    expect(new Set(words).size).toBe(2 ** 17)
    for (const [number, word] of words.entries()) if (table.findOrAdd(word) !== number) expect.unreachable()
    expect(words.every((word, number) => table.find(word) === number)).toBe(true)
    expect(table.find(`${words[0]}x`)).toBeUndefined()
  })

  verifies('R-03', 'words of one shard › do not make it grow without end', () => {
    const words = createWordsOfShard(40_000)
    const others = Array.from(words, (_, number) => `${number}`.padStart(6, 'x'))
    const [table, other] = [new TermTable(), new TermTable()]
    for (const word of words) table.findOrAdd(word)
    for (const word of others) other.findOrAdd(word)
    expect(words.filter((word, number) => table.find(word) !== number)).toEqual([])
    expect(table.bytes - other.bytes).toBeLessThan(100_000)
  })

  it('words of equal hashes › count with the memory of their map', () => {
    const bytesOf = (words: readonly string[]): number => {
      const table = new TermTable()
      for (const word of words) table.findOrAdd(word)
      return table.bytes
    }
    const words = createCollidingWords(14)
    const others = Array.from(words, (_, number) => `${number}`.padStart(28, 'x'))
    expect(bytesOf(words) - bytesOf(others)).toBeGreaterThan(100 * words.length)
  })
})

describe('a table of postings', () => {
  it('with any occurrences › lists the passages and frequencies of each term', () => {
    const occurrence = fc.tuple(fc.integer({ min: 0, max: 8 }).map(String), fc.integer({ min: 0, max: 1 }))
    fc.assert(
      fc.property(fc.array(occurrence, { maxLength: 400 }), (occurrences) => {
        const [table, model] = [new PostingTable(), new Map<string, Map<number, number>>()]
        let passage = 0
        for (const [term, advance] of occurrences) {
          passage += advance
          table.add(term, passage)
          const counts = model.get(term) ?? new Map<number, number>()
          model.set(term, counts.set(passage, (counts.get(passage) ?? 0) + 1))
        }
        const restored = new PostingTable()
        for (const [term, { rows, counts }] of table) restored.restore(term, rows.used, counts.used)
        for (const postings of [table, restored])
          expect(
            [...postings].map(([term, { rows, counts }]) => [
              term,
              [...rows.used].map((row, at) => [row, counts.used[at]]),
            ]),
          ).toEqual([...model].map(([term, counts]) => [term, [...counts]]))
        for (const term of model.keys())
          expect([...(restored.get(term)?.rows.used ?? [])]).toEqual([...(model.get(term)?.keys() ?? [])])
      }),
    )
  })

  it('restored from a snapshot › holds nothing of its memory', () => {
    const table = new PostingTable()
    const [places, frequencies] = [Uint32Array.from({ length: 100 }, (_, at) => at), new Uint16Array(100).fill(1)]
    table.restore('seal', places.subarray(0, 50), frequencies.subarray(0, 50))
    const { rows, counts } = table.get('seal') ?? {}
    expect([rows?.values, counts?.values]).toEqual([places.slice(0, 50), frequencies.slice(0, 50)])
    expect([rows?.values.buffer.byteLength, counts?.values.buffer.byteLength]).toEqual([200, 100])
  })
})
