import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Role } from '../../src/domain/entry.ts'
import type { Tokenizer } from '../../src/domain/ports.ts'
import { LineAnalyzer } from '../../src/selection/conversationLines.ts'
import { type SelectableMessage, selectPassages } from '../../src/selection/selectPassages.ts'
import { splitFencedLines } from '../../src/text/fences.ts'
import { tokenizerNamed } from '../../src/tokenizers/tokenizers.ts'

const tokenizer = await tokenizerNamed('exact')
const analyzer = new LineAnalyzer(tokenizer)
const select = (messages: readonly SelectableMessage[], budget: number, question = '') =>
  selectPassages(messages, { budget, question }, analyzer)
const user = (text: string): SelectableMessage => ({ role: 'user', text })
const assistant = (text: string): SelectableMessage => ({ role: 'assistant', text })

/** Numbered lines of prose without names. */
const filler = (count: number): string =>
  Array.from({ length: count }, () => 'and so it went on for a while without news').join('\n')
const sumTokens = (excerpts: readonly { readonly tokens: number }[]): number =>
  excerpts.reduce((sum, { tokens }) => sum + tokens, 0)

describe('selectPassages', () => {
  it('with a conversation that fits › returns every message whole', () => {
    const messages = [user('Fix src/app.ts\n\nplease.'), assistant('---\nDone.\n```ts\nrun()\n```')]
    const excerpts = select(messages, 1_000)
    expect(excerpts.map(({ message, text, isWhole }) => [message, text, isWhole])).toEqual(
      messages.map((message) => [message, message.text, true]),
    )
    expect(excerpts[1]?.passages).toEqual([{ start: 0, end: messages[1]?.text.length }])
  })

  it('with a long conversation › shows its newest lines and older lines with names, and marks the gaps', () => {
    const messages = [
      user('Start.'),
      assistant(`${filler(30)}\nThe limit is set in src/limits.ts today\n${filler(30)}`),
      assistant(`${filler(40)}\nThese are the last words`),
    ]
    const excerpts = select(messages, 200)
    const [older, newest] = excerpts.slice(-2)
    expect(older?.text).toContain('…\nThe limit is set in src/limits.ts today\n…')
    expect(newest?.text).toMatch(/^…\nand so [^…]*\nThese are the last words$/)
    expect(newest?.index).toBe(2)
  })

  it('with several lines for a name › shows the newest one', () => {
    const line = (value: number): string => `The value of maxRetries is ${value} now`
    const text = [line(3), filler(30), line(7), filler(60)].join('\n')
    const shown = select([assistant(text)], 150)[0]?.text ?? ''
    expect(shown).toContain(line(7))
    expect(shown).not.toContain(line(3))
  })

  it('with a question › prefers the lines that match it', () => {
    const facts = Array.from({ length: 60 }, (_, index) => `The service part_${index} listens on port ${9_000 + index}`)
    const old = 'The invoice of customer_7 is paid on Mondays'
    const messages = [assistant([old, ...facts].join('\n'))]
    expect(select(messages, 200)[0]?.text).not.toContain(old)
    expect(select(messages, 200, 'When is the invoice of a customer paid?')[0]?.text).toContain(old)
  })

  it('with lines of a code block › puts them between its fences', () => {
    const code = Array.from({ length: 80 }, (_, index) => `step${index}(valueOf${index})`).join('\n')
    const shown = select([assistant(`Look:\n~~~ts\n${code}\n~~~\n${filler(40)}`)], 300)[0]?.text ?? ''
    const fences = splitFencedLines(shown).filter(({ fence }) => fence === 'open' || fence === 'close')
    expect(fences.map(({ start, end }) => shown.slice(start, end))).toEqual(['~~~ts', '~~~'])
    expect(shown).toMatch(/\nstep\d+\(valueOf\d+\)\n/)
  })

  it('with a very long line › shows parts of it and joins those that follow each other', () => {
    const words = Array.from({ length: 400 }, (_, index) => `word${index}`).join(' ')
    const [excerpt] = select([assistant(words)], 150)
    expect(excerpt?.text.startsWith('…\n')).toBe(true)
    const shown = excerpt?.text.slice(2) ?? ''
    expect(words.endsWith(shown)).toBe(true)
    expect(excerpt?.passages).toEqual([{ start: words.length - shown.length, end: words.length }])
  })

  it('with arbitrary messages › stays within the budget, is deterministic and returns ranges of the text', () => {
    const text = fc.array(
      fc.constantFrom(
        '',
        '```ts',
        '```',
        'const userName = load(src/a/b.ts)',
        '---',
        'Hello there: 4711',
        '}',
        'é😀'.repeat(200),
      ),
      { maxLength: 60 },
    )
    const message = fc.record({
      role: fc.constantFrom<Role>('user', 'assistant', 'tool'),
      text: text.map((lines) => lines.join('\n')),
    })
    fc.assert(
      fc.property(fc.array(message, { maxLength: 8 }), fc.integer({ min: 1, max: 600 }), (messages, budget) => {
        const excerpts = select(messages, budget, 'userName')
        expect(sumTokens(excerpts)).toBeLessThanOrEqual(budget)
        expect(selectPassages(messages, { budget, question: 'userName' }, new LineAnalyzer(tokenizer))).toEqual(
          excerpts,
        )
        for (const { message: source, passages, text: shown } of excerpts)
          for (const { start, end } of passages)
            for (const line of source.text.slice(start, end).split('\n'))
              if (/\w/.test(line) && !line.startsWith('```')) expect(shown).toContain(line.trim())
      }),
      { numRuns: 30 },
    )
  })

  it('with more text than the budget › uses more than 95 % of it', () => {
    const messages = Array.from({ length: 40 }, (_, index) =>
      assistant(`Step ${index} changes src/part${index}/file.ts\n${filler(10)}`),
    )
    for (const budget of [500, 1_000, 4_000]) expect(sumTokens(select(messages, budget))).toBeGreaterThan(0.95 * budget)
  })

  it('with a name at the edge of a line and inside another › prefers the line that shows its context', () => {
    const inside = 'the check verifyToken comes first'
    const text = [filler(10), inside, filler(30), 'first comes the check verifyToken', filler(60)].join('\n')
    expect(select([assistant(text)], 110)[0]?.text).toContain(inside)
  })

  it('with a line without words between shown lines › keeps it instead of an omission mark', () => {
    const [excerpt] = select([assistant(`${filler(60)}\n\`\`\`\nrun()\n\`\`\`\n---\nSecond part`)], 100)
    expect(excerpt?.isWhole).toBe(false)
    expect(excerpt?.text).toMatch(/\nrun\(\)\n```\n---\nSecond part$/)
  })

  it('with more names than fit › keeps part of the budget for the newest lines', () => {
    const facts = Array.from({ length: 90 }, (_, index) => `The service part_${index} listens on port ${9_000 + index}`)
    const last = Array.from({ length: 6 }, (_, index) => `then we went on for ${index} more`).join('\n')
    const shown = select([assistant(facts.join('\n')), assistant(last)], 300)
    expect(shown.at(-1)).toMatchObject({ index: 1, isWhole: true })
    expect(shown[0]?.text).toContain('part_')
  })

  it('with text older than 64,000 tokens › considers only the newer text', () => {
    const old = user('Look at src/ancient.ts for the reason')
    const newer = Array.from({ length: 8 }, () => assistant(filler(900)))
    const shownIndexes = (messages: readonly SelectableMessage[]) =>
      select(messages, 1_000, 'What about src/ancient.ts?').map(({ index }) => index)
    expect(shownIndexes([old, ...newer.slice(2)])).toContain(0)
    expect(shownIndexes([old, ...newer])).not.toContain(0)
  })
})

describe('LineAnalyzer', () => {
  it('analyses each message once while it is cached', () => {
    let counted = 0
    const counting: Tokenizer = {
      ...tokenizer,
      isExact: () => true,
      count: (text) => ++counted && tokenizer.count(text),
    }
    const texts = ['first line\nsecond line', 'third line']
    const cached = new LineAnalyzer(counting)
    cached.analyze(texts)
    expect(counted).toBe(3)
    cached.analyze([...texts, 'fourth line'])
    expect(counted).toBe(4)
    const small = new LineAnalyzer(counting, { maxCachedBytes: 600 })
    small.analyze(texts)
    small.analyze(texts)
    expect(counted).toBe(10)
  })

  it('gives a message the same lines in every conversation', () => {
    const text = 'Read:\n```ts\nrun(userName)\n}\n```'
    const alone = analyzer.analyze([text])
    const later = analyzer.analyze(['Before it.', text])
    expect(later.lines.slice(1)).toEqual(alone.lines.map((line) => ({ ...line, message: 1 })))
    expect(later.dependencies.slice(1)).toEqual(
      alone.dependencies.map(
        (found) =>
          found && { required: found.required.map((at) => at + 1), neighbours: found.neighbours.map((at) => at + 1) },
      ),
    )
  })
})
