import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Category, ContextItem } from '../../src/handoff/item.ts'
import { extractItems } from '../../src/handoff/save/extract.ts'
import { tokenizerNamed } from '../../src/tokenizers/tokenizers.ts'
import { verifies } from '../requirements/verifies.ts'
import { hostileText } from '../text/hostileTexts.ts'
import { conversation, type Turn } from './renderFixtures.ts'

const tokenizer = await tokenizerNamed('exact')
const extract = (...turns: readonly Turn[]) => extractItems(conversation(...turns), { tokenizer })
const contents = (items: readonly ContextItem[], category: Category) =>
  items.filter((item) => item.category === category).map(({ content }) => content)

describe('extractItems', () => {
  it('finds fenced blocks and diffs as code', () => {
    const items = extract(['assistant', 'Try:\n```ts\nrun()\n```\nor\n@@ -1,2 +1,2 @@\n-old\n+new\n\nDone.'])
    expect(contents(items, 'code').sort()).toEqual(['@@ -1,2 +1,2 @@\n-old\n+new', '```ts\nrun()\n```'])
  })
  it('finds each path once as a file', () => {
    const items = extract(
      ['user', 'Look at src/login.ts and/or ./README.md.'],
      ['assistant', 'In src/login.ts nothing is wrong.'],
    )
    expect(contents(items, 'file').sort()).toEqual(['./README.md', 'src/login.ts'])
    expect(items.find(({ content }) => content === 'src/login.ts')?.sources).toEqual(['m1', 'm2'])
  })
  it('finds JSON, tables, commands with output, figures and URLs as data', () => {
    expect(contents(extract(['tool', '{ "port": 8080 }']), 'data')).toEqual(['{ "port": 8080 }'])
    expect(contents(extract(['assistant', '```json\n{ "a": 1 }\n```']), 'data')).toEqual(['```json\n{ "a": 1 }\n```'])
    expect(contents(extract(['assistant', 'So:\n| a | b |\n|---|---|\n| 1 | 2 |\nThat is all.']), 'data')).toEqual([
      '| a | b |\n|---|---|\n| 1 | 2 |',
    ])
    expect(contents(extract(['user', '$ npm test\n3 passed\n\nFine.']), 'data')).toEqual(['$ npm test\n3 passed'])
    expect(contents(extract(['user', 'ann@host src % npm test\n3 passed']), 'data')).toEqual([
      'ann@host src % npm test\n3 passed',
    ])
    expect(
      contents(extract(['user', 'It took 1,500ms.\nIt is quick.\nSee https://example.com/a.']), 'data').sort(),
    ).toEqual(['It took 1,500ms.', 'See https://example.com/a.'])
  })
  it('finds decisions, definitions and constraints of the user as concepts', () => {
    const constraint = 'Never push to main.'
    expect(contents(extract(['user', constraint]), 'concept')).toEqual([constraint])
    expect(contents(extract(['assistant', constraint]), 'concept')).toEqual([])
    expect(
      contents(
        extract(['assistant', 'We decided to keep the cache.\nIt is warm.\n- **Scope**: what a key belongs to']),
        'concept',
      ).sort(),
    ).toEqual(['- **Scope**: what a key belongs to', 'We decided to keep the cache.'])
  })
  it('finds open tasks and unanswered questions as tasks, and test failures as data', () => {
    const items = extract(
      ['user', 'Is it done?'],
      [
        'assistant',
        '- [ ] Write tests\n- [x] Write code\n\n## Next steps\n1. Ship it\n2. Rest\n\nThen:\n- nothing\n```\nFAIL test/a.test.ts\nok\n```\nShall I go on?',
      ],
    )
    expect(contents(items, 'task').sort()).toEqual(['- [ ] Write tests', '1. Ship it', '2. Rest', 'Shall I go on?'])
    expect(contents(items, 'data')).toContain('FAIL test/a.test.ts')
    expect(contents(extract(['tool', '✗ login > answers 401 [481.84ms]']), 'task')).toEqual([])
  })
  it('counts the tokens of an item and gives it a stable id', () => {
    const [first] = extract(['user', 'TODO: call Ann'])
    expect(first).toMatchObject({ category: 'task', content: 'TODO: call Ann', tokens: 4, sources: ['m1'] })
    expect(extract(['user', 'Hello.'], ['user', 'TODO: call Ann'])[0]?.id).toBe(first?.id)
  })
})

describe('importance of an extracted item', () => {
  const importance = (items: readonly ContextItem[], content: string): number =>
    items.find((item) => item.content === content)?.importance ?? 0

  verifies('H-03', 'falls with the tokens after it', () => {
    const long = 'We talk about something else for a while. '.repeat(400)
    const items = extract(['user', 'TODO: call Ann'], ['assistant', long], ['user', 'TODO: call Ben'])
    expect([importance(items, 'TODO: call Ann'), importance(items, 'TODO: call Ben')]).toEqual([4, 7])
    expect(items[0]?.content).toBe('TODO: call Ben')
  })
  verifies('H-03', 'grows with frequency, specificity and type', () => {
    const items = extract(
      ['user', 'In src/a.ts.'],
      ['assistant', 'In src/a.ts.'],
      ['user', 'In src/a.ts.'],
      ['assistant', 'In src/a.ts and src/b.ts.'],
    )
    expect(items.map(({ content, factors }) => [content, factors.frequency])).toEqual([
      ['src/a.ts', 2 / 3],
      ['src/b.ts', 0],
    ])
    const [vague, precise] = ['TODO: do it', 'TODO: move loadUser to src/user.ts'].map(
      (text) => extract(['user', text])[0]?.factors.specificity,
    )
    expect([vague, precise]).toEqual([0, expect.closeTo(2 / 3)])
    expect(extract(['user', '```ts\nrun()\n```\nNever run it.']).map(({ category }) => category)).toEqual([
      'code',
      'concept',
    ])
  })
  verifies('H-03', 'of a marked message is 10, regardless of category and age', () => {
    const messages = conversation(['user', 'We like tea.'], ['assistant', '```ts\nrun()\n```\nTODO: more'])
    const items = extractItems(messages, { tokenizer, marked: new Set(['m1']) })
    expect(items.map(({ content, importance, marked }) => [content, importance, marked])).toEqual([
      ['We like tea.', 10, true],
      ['```ts\nrun()\n```', 6, false],
      ['TODO: more', 6, false],
    ])
  })
  verifies('H-03', 'grows with similarity, and ignores a similarity of NaN', () => {
    const messages = conversation(['user', 'TODO: call Ann\nTODO: call Ben'])
    const mostSimilar = (name: string) =>
      extractItems(messages, { tokenizer, similarity: (text) => (text.includes(name) ? 1 : 0) })[0]?.content
    expect([mostSimilar('Ann'), mostSimilar('Ben')]).toEqual(['TODO: call Ann', 'TODO: call Ben'])
    const [unknown] = extractItems(messages, { tokenizer, similarity: () => Number.NaN })
    expect([unknown?.factors.similarity, unknown?.importance]).toEqual([0, 5])
  })
  verifies(['H-03', 'H-14'], 'grows with the weight of the category', () => {
    const messages = conversation(['user', '```ts\nrun()\n```\nTODO: more'])
    const weights = { code: 0.5, file: 1, data: 1, concept: 1, task: 1.5 }
    expect(
      extractItems(messages, { tokenizer, weights }).map(({ category, importance }) => [category, importance]),
    ).toEqual([
      ['task', 8],
      ['code', 4],
    ])
  })
})

describe('extractItems with arbitrary input', () => {
  it('is deterministic and sorted by importance, with integers from 1 to 10', () =>
    fc.assert(
      fc.property(fc.array(hostileText, { maxLength: 6 }), (texts) => {
        const messages = conversation(
          ...texts.map((text, index) => [index % 2 === 0 ? 'user' : 'assistant', text] as const),
        )
        const items = extractItems(messages, { tokenizer })
        expect(extractItems(messages, { tokenizer })).toEqual(items)
        expect(new Set(items.map(({ id }) => id)).size).toBe(items.length)
        const importances = items.map(({ importance }) => importance)
        expect(importances).toEqual([...importances].sort((left, right) => right - left))
        for (const importance of importances)
          expect(importance >= 1 && importance <= 10 && Number.isInteger(importance)).toBe(true)
      }),
      { numRuns: 60 },
    ))
  it('of unbounded length returns at most 300 items', () => {
    const unbounded = Array.from(
      { length: 100_000 },
      (_, index) => `TODO: number ${index} of src/file${index}.ts`,
    ).join('\n')
    expect(extract(['user', unbounded])).toHaveLength(300)
    for (const token of ['`', '[ ', '| ', '$ ', '*', 'a/'])
      expect(extract(['user', token.repeat(2_000_000)]).length).toBeLessThanOrEqual(2)
  })
})
