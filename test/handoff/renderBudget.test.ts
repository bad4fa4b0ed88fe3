import fc from 'fast-check'
import { describe, expect } from 'vitest'
import type { Role } from '../../src/domain/entry.ts'
import { renderHandoff } from '../../src/handoff/render/render.ts'
import { extractItems } from '../../src/handoff/save/extract.ts'
import { splitFencedLines } from '../../src/text/fences.ts'
import { upperBound } from '../../src/text/upperBound.ts'
import { tokenizerNamed } from '../../src/tokenizers/tokenizers.ts'
import { isCampaign } from '../context/campaign.ts'
import { verifies } from '../requirements/verifies.ts'
import { hostileText } from '../text/hostileTexts.ts'
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
const input = fc.record({
  turns: fc.array(fc.tuple(role, text), { maxLength: 8 }),
  marked: fc.boolean(),
  title: hostileText,
  clientItems: fc.array(text, { maxLength: 3 }),
  files: fc.array(
    fc.record({
      path: hostileText,
      status: fc.constantFrom('changed' as const, 'missing' as const, 'unchanged' as const),
    }),
    { maxLength: 4 },
  ),
  summaries: fc.array(text, { maxLength: 3 }),
  earlier: fc.array(
    fc.record({ session: hostileText, summary: text, turns: fc.array(fc.tuple(role, text), { maxLength: 4 }) }),
    { maxLength: 2 },
  ),
  closing: hostileText,
  provided: fc.array(fc.record({ from: hostileText, text }), { maxLength: 2 }),
})
const budget = fc.oneof(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 1, max: 1_500 }))

describe('renderHandoff budget', () => {
  verifies(['H-05', 'H-13'], 'with arbitrary input is never exceeded, and the result is deterministic', () =>
    fc.assert(
      fc.property(
        input,
        budget,
        fc.constantFrom(exact, upperBound),
        ({ turns, marked, clientItems, closing, earlier, ...rest }, tokens, tokenizer) => {
          const messages = conversation(...turns)
          const extracted = extractItems(messages, { tokenizer, marked: new Set(marked ? ['m1'] : []) })
          const items = [
            ...extracted,
            ...clientItems.map((content, index) => item({ id: `g${index}`, category: 'code', content, importance: 8 })),
          ]
          const earlierSessions = earlier.map(({ turns: earlierTurns, ...session }) => ({
            ...session,
            messages: conversation(...earlierTurns),
          }))
          const all = material({ ...rest, messages, items, earlier: earlierSessions })
          const rendered = renderHandoff(all, { budget: tokens, tokenizer, closing })
          expect(tokenizer.count(rendered.text)).toBeLessThanOrEqual(tokens)
          expect(rendered.tokens).toBe(tokenizer.count(rendered.text))
          expect(rendered.parts.code + rendered.parts.conversation + rendered.parts.metadata).toBe(rendered.tokens)
          expect([...rendered.shownItems, ...rendered.omittedItems].sort()).toEqual(items.map(({ id }) => id).sort())
          expect(renderHandoff(all, { budget: tokens, tokenizer, closing })).toEqual(rendered)
          // Every fence is closed.
          if (rendered.text.includes('## Conversation'))
            expect(splitFencedLines(rendered.text).at(-1)?.fence).toMatch(/^(?:none|close)$/)
        },
      ),
      { numRuns: isCampaign ? 150 : 50 },
    ),
  )
  verifies('H-05', 'of a few tokens shared by marked and requested lines is not exceeded', () => {
    const messages = conversation(['user', '// why\n- [ ] call Ann'])
    const items = extractItems(messages, { tokenizer: exact, marked: new Set(['m1']) })
    for (let tokens = 1; tokens <= 40; tokens++)
      expect(
        renderHandoff(material({ messages, items }), { budget: tokens, tokenizer: exact }).tokens,
      ).toBeLessThanOrEqual(tokens)
  })
  verifies('H-05', 'with a long conversation is used to more than 95 %', () => {
    const messages = conversation(
      ...Array.from(
        { length: 200 },
        (_, index) => ['user', `In step ${index} we looked at src/part${index}.ts and found value${index}.`] as const,
      ),
    )
    for (const tokens of [500, 2_000, 4_000])
      expect(renderHandoff(material({ messages }), { budget: tokens, tokenizer: exact }).tokens).toBeGreaterThan(
        0.95 * tokens,
      )
  })
  verifies('H-12', 'with code that is too large for its share is used to more than 95 %', () => {
    const text = Array.from({ length: 200 }, (_, index) => `In step ${index} we looked at part ${index}.`).join('\n')
    const messages = conversation(['user', text], ['assistant', `${'`'.repeat(4_000)}\nrun()`])
    for (const tokens of [500, 1_000])
      expect(renderHandoff(material({ messages }), { budget: tokens, tokenizer: exact }).tokens).toBeGreaterThan(
        0.95 * tokens,
      )
  })
  verifies('H-05', 'with long speaker names and short messages is used to more than 95 %', () => {
    const messages = conversation(...Array.from({ length: 300 }, (_, index) => ['tool', `ok ${index}`] as const))
    const named = messages.map((message, index) => ({
      ...message,
      name: `a_tool_with_a_name_that_costs_many_tokens_${index}_xyzzy_plugh`,
    }))
    for (const tokens of [200, 1_000, 4_000])
      expect(renderHandoff(material({ messages: named }), { budget: tokens, tokenizer: exact }).tokens).toBeGreaterThan(
        0.95 * tokens,
      )
  })
})
