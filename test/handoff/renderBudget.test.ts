import fc from 'fast-check'
import { describe, expect } from 'vitest'
import type { Role } from '../../src/domain/entry.ts'
import { extractItems } from '../../src/handoff/extract.ts'
import { weave } from '../../src/handoff/render.ts'
import { linesOf } from '../../src/text/fences.ts'
import { upperBound } from '../../src/text/upperBound.ts'
import { tokenizerNamed } from '../../src/tokenizers/tokenizers.ts'
import { verifies } from '../requirements/verifies.ts'
import { hostileText } from '../text/hostile.ts'
import { conversation, item, material } from './renderFixtures.ts'

const exact = await tokenizerNamed('exact')
const role = fc.constantFrom<Role>('user', 'assistant', 'system', 'tool')
const line = fc.oneof(
  hostileText,
  fc.constantFrom(
    '```ts',
    '```',
    '~~~~',
    '// why',
    'const a = loadUser(src/a.ts)',
    '| a | b |',
    '- [ ] call Ann',
    '[user]',
    '## Conversation',
    '$ ls',
    '</memory>',
    `${'word '.repeat(150)}. \`\`\` and on`,
    '',
  ),
)
const text = fc.array(line, { maxLength: 30 }).map((lines) => lines.join('\n'))
const scene = fc.record({
  said: fc.array(fc.tuple(role, text), { maxLength: 8 }),
  marked: fc.boolean(),
  title: hostileText,
  given: fc.array(text, { maxLength: 3 }),
  files: fc.array(
    fc.record({
      path: hostileText,
      status: fc.constantFrom('changed' as const, 'missing' as const, 'unchanged' as const),
    }),
    { maxLength: 4 },
  ),
  summaries: fc.array(text, { maxLength: 3 }),
  earlier: fc.array(
    fc.record({ session: hostileText, summary: text, said: fc.array(fc.tuple(role, text), { maxLength: 4 }) }),
    { maxLength: 2 },
  ),
  closing: hostileText,
  provided: fc.array(fc.record({ from: hostileText, text }), { maxLength: 2 }),
})
const budget = fc.oneof(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 1, max: 1_500 }))

describe('the budget', () => {
  verifies(
    ['H-05', 'H-13'],
    'is never exceeded, whatever was said and however small it is; the same always gives the same',
    () =>
      fc.assert(
        fc.property(
          scene,
          budget,
          fc.constantFrom(exact, upperBound),
          ({ said, marked, given, closing, earlier, ...rest }, tokens, tokenizer) => {
            const messages = conversation(...said)
            const found = extractItems(messages, { tokenizer, marked: new Set(marked ? ['m1'] : []) })
            const items = [
              ...found,
              ...given.map((content, at) => item({ id: `g${at}`, category: 'code', content, importance: 8 })),
            ]
            const before = earlier.map(({ said: words, ...one }) => ({ ...one, messages: conversation(...words) }))
            const all = material({ ...rest, messages, items, earlier: before })
            const woven = weave(all, { budget: tokens, tokenizer, closing })
            expect(tokenizer.count(woven.text)).toBeLessThanOrEqual(tokens)
            expect(woven.tokens).toBe(tokenizer.count(woven.text))
            expect(woven.shares.code + woven.shares.conversation + woven.shares.metadata).toBe(woven.tokens)
            expect([...woven.items, ...woven.left].sort()).toEqual(items.map(({ id }) => id).sort())
            expect(weave(all, { budget: tokens, tokenizer, closing })).toEqual(woven)
            // what is fenced is closed again, whoever has said it
            if (woven.text.includes('## Conversation'))
              expect(linesOf(woven.text).at(-1)?.fence).toMatch(/^(?:none|close)$/)
          },
        ),
        { numRuns: 150 },
      ),
  )
  verifies('H-05', 'is not exceeded either where what is marked and what is asked share a few tokens', () => {
    const messages = conversation(['user', '// why\n- [ ] call Ann'])
    const items = extractItems(messages, { tokenizer: exact, marked: new Set(['m1']) })
    for (let tokens = 1; tokens <= 40; tokens++)
      expect(weave(material({ messages, items }), { budget: tokens, tokenizer: exact }).tokens).toBeLessThanOrEqual(
        tokens,
      )
  })
  verifies('H-05', 'is used: of a long conversation, all but one token in twenty', () => {
    const messages = conversation(
      ...Array.from(
        { length: 200 },
        (_, at) => ['user', `In step ${at} we looked at src/part${at}.ts and found value${at}.`] as const,
      ),
    )
    for (const tokens of [500, 2_000, 4_000])
      expect(weave(material({ messages }), { budget: tokens, tokenizer: exact }).tokens).toBeGreaterThan(0.95 * tokens)
  })
  verifies('H-12', 'is used also where nothing of one kind is small enough for its share', () => {
    const talk = Array.from({ length: 200 }, (_, at) => `In step ${at} we looked at part ${at}.`).join('\n')
    const messages = conversation(['user', talk], ['assistant', `${'`'.repeat(4_000)}\nrun()`])
    for (const tokens of [500, 1_000])
      expect(weave(material({ messages }), { budget: tokens, tokenizer: exact }).tokens).toBeGreaterThan(0.95 * tokens)
  })
  verifies('H-05', 'is used also where those who speak have long names and say little', () => {
    const messages = conversation(...Array.from({ length: 300 }, (_, at) => ['tool', `ok ${at}`] as const))
    const named = messages.map((message, at) => ({
      ...message,
      name: `a_tool_with_a_name_that_costs_many_tokens_${at}_xyzzy_plugh`,
    }))
    for (const tokens of [200, 1_000, 4_000])
      expect(weave(material({ messages: named }), { budget: tokens, tokenizer: exact }).tokens).toBeGreaterThan(
        0.95 * tokens,
      )
  })
})
