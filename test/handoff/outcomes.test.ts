import { describe, expect, it } from 'vitest'
import { extractItems } from '../../src/handoff/save/extract.ts'
import { findOutcomes } from '../../src/handoff/save/outcomes.ts'
import { tokenizerNamed } from '../../src/tokenizers/tokenizers.ts'
import { verifies } from '../requirements/verifies.ts'
import { measureCpu } from '../text/hostileTexts.ts'
import { conversation, type Turn } from './renderFixtures.ts'

const tokenizer = await tokenizerNamed('exact')
const contentsOf = (...turns: readonly Turn[]) =>
  extractItems(conversation(...turns), { tokenizer })
    .filter(({ category }) => category === 'data' || category === 'task')
    .map(({ content }) => content)
    .sort()

const passed = [
  '33 pass, 0 fail',
  '# tests 33\n# pass 33\n# fail 0',
  '===== 33 passed in 2.1s =====',
  'All tests pass now.',
]

describe('extractItems', () => {
  for (const result of passed)
    verifies('H-03', `with failures before "${result.slice(0, 20)}" › lists no failure that was settled`, () => {
      const items = contentsOf(
        ['tool', '✗ login with an umlaut\n3 failed, 30 passed'],
        ['assistant', 'I fixed the encoder.'],
        ['tool', result],
      )
      expect(items.filter((content) => /umlaut|3 failed/.test(content))).toEqual([])
      expect(items).toContain(result.split('\n').find((line) => /pass/.test(line)))
    })
  verifies('H-03', 'with two failing runs › lists the failures of the newest one only', () => {
    const items = contentsOf(
      ['tool', '✗ login with an umlaut\n✗ logout\nTest Suites: 2 failed\nTests: 2 failed, 31 passed'],
      ['tool', '✗ logout\nTest Suites: 1 failed\nTests: 1 failed, 32 passed'],
    )
    expect(items).toEqual(['Test Suites: 1 failed', 'Tests: 1 failed, 32 passed', '✗ logout'])
  })
  verifies('H-03', 'with a failure after the newest run › lists it', () => {
    expect(contentsOf(['tool', '33 pass, 0 fail'], ['tool', 'FAIL src/a.test.ts'])).toContain('FAIL src/a.test.ts')
  })
  it('with a test that passes later by name › lists it no more, but the others', () => {
    const items = contentsOf(['tool', '✗ first (3 ms)\n✗ second (4 ms)'], ['tool', '✓ first (2 ms)'])
    expect(items).toEqual(['✗ second (4 ms)'])
  })
  it('with tasks checked off later › lists those that are open', () => {
    const items = contentsOf(['assistant', '- [ ] Fix login\n- [ ] Add docs'], ['assistant', '- [x] Fix login'])
    expect(items).toEqual(['- [ ] Add docs'])
  })
  it('with failures that are no test runs › does not take them for one', () => {
    expect(contentsOf(['tool', '✗ login'], ['user', 'There were 0 failed logins, 12 failed payments.'])).toContain(
      '✗ login',
    )
  })
})

describe('findOutcomes', () => {
  it('of hostile text › takes linear time', () => {
    for (const text of ['1 '.repeat(200_000), '✗ '.repeat(120_000), '- [ ] '.repeat(60_000)]) {
      expect(measureCpu(() => void findOutcomes([text, text.replaceAll(' ', '\n')]))).toBeLessThan(5_000)
    }
  })
})
