import { describe, expect, it } from 'vitest'
import { describeValue, shortenMessage, shortenText } from '../../src/domain/error.ts'
import { exceedsDepth, exceedsJsonLength, stringifyInSteps } from '../../src/domain/stringify.ts'
import { runInSlices, runSync } from '../../src/domain/work.ts'

const step = 65_536

describe('stringifyInSteps', () => {
  it.each<readonly [string, unknown]>([
    ['primitives', [null, true, 1.5, -0, 1e30, Number.NaN, 'a"b\\c\n\u2028']],
    ['empty values', { list: [], object: {}, text: '' }],
    ['undefined values', { a: undefined, b: [undefined, 1], c: { d: undefined } }],
    ['names to escape', { 'a"b': 1, '\ud83d': 2, 10: 3, 2: 4, __proto__x: 5 }],
    ['a long text', 'é"'.repeat(step)],
    ['lone surrogates', `\ud83d${'\ude00'.repeat(step)}`],
    ['pairs at the ends of steps', `${'a'.repeat(step - 1)}😀${'b'.repeat(step - 2)}😀😀`],
    ['lone surrogates at the ends of steps', `${'a'.repeat(step - 1)}\ud83d${'b'.repeat(step)}\ud83d`],
    ['many messages', Array.from({ length: 2_000 }, (_, at) => ({ role: 'user', content: [{ text: `m${at}` }] }))],
  ])('with %s writes what JSON.stringify writes, and measures it', (_, value) => {
    const json = JSON.stringify(value)
    expect(runSync(stringifyInSteps(value)) === json).toBe(true)
    expect([exceedsJsonLength(value, json.length), exceedsJsonLength(value, json.length - 1)]).toEqual([false, true])
  })

  it('pauses within a long text and between many values', async () => {
    for (const value of ['x'.repeat(1_000_000), Array.from({ length: 20_000 }, (_, at) => at)]) {
      let pauses = 0
      await runInSlices(stringifyInSteps(value), async () => void pauses++)
      expect(pauses).toBeGreaterThan(5)
    }
  })
})

describe('describeValue', () => {
  it.each<readonly [string, unknown]>([
    ['a text', `a"😀${'x'.repeat(100)}`],
    ['nested lists', Array.from({ length: 50 }, () => [[], {}])],
    ['a date', { at: new Date(0) }],
    ['fields without a form', { a: () => 1, b: undefined, c: 1 }],
    ['a sentence', `one two three ${'four '.repeat(20)}`],
  ])('of %s is the start of its JSON, cut between words', (_, value) => {
    for (let max = 1; max < 60; max++) expect(describeValue(value, max)).toBe(shortenText(JSON.stringify(value), max))
  })

  it('of a word that is cut › shows no part of it, so that a secret is masked as a whole or not shown', () => {
    const key = `gh${'p_'}${'aB3dE6'.repeat(6)}`
    expect(describeValue(key, 38)).toBe('…')
    expect(describeValue(`use ${key} here`, 20)).toBe('"use …')
    expect(describeValue(key, 42)).toBe(`"${key}"`)
  })

  it('names what JSON has no form for', () => {
    expect([undefined, () => 1, Symbol('x')].map((value) => describeValue(value, 20))).toEqual([
      'missing',
      'function',
      'symbol',
    ])
  })

  it('of a value that holds itself ends', () => {
    const value: Record<string, unknown> = {}
    value.self = value
    expect(describeValue(value, 20)).toBe('…')
  })
})

describe('shortenMessage', () => {
  it('cuts a long message between words and keeps others', () => {
    expect(shortenMessage('There is no such entity.')).toBe('There is no such entity.')
    const short = shortenMessage(`Entity ${'abc '.repeat(5_000)}not found`)
    expect(short.length).toBeLessThan(10_010)
    expect(short.endsWith('abc …')).toBe(true)
    expect(shortenMessage('x'.repeat(20_000))).toBe('…')
  })
})

describe('exceedsDepth', () => {
  it('with nested lists and objects › counts both', () => {
    const value = { a: [{ b: [] }] }
    expect([0, 1, 2, 3, 4].map((levels) => exceedsDepth(value, levels))).toEqual([true, true, true, true, false])
    expect(exceedsDepth('text', 0)).toBe(false)
  })
})
