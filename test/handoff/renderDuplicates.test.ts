import { describe, expect, it } from 'vitest'
import { renderHandoff } from '../../src/handoff/render/render.ts'
import { omitShown, ShownText } from '../../src/handoff/render/shownText.ts'
import { extractItems } from '../../src/handoff/save/extract.ts'
import { deriveTitle } from '../../src/handoff/sessions.ts'
import { tokenizerNamed } from '../../src/tokenizers/tokenizers.ts'
import { verifies } from '../requirements/verifies.ts'
import { conversation, type Turn } from './renderFixtures.ts'

const tokenizer = await tokenizerNamed('exact')
const opening = 'The import of order BK-20418 stops at row 1,200 with error E-77, please find the reason.'
const decision = 'We decided to read the file in pages of 500 rows instead of at once.'
const turns: readonly Turn[] = [
  ['user', opening],
  ['assistant', decision],
  ...Array.from(
    { length: 60 },
    (_, index): Turn => [
      index % 2 === 0 ? 'user' : 'assistant',
      `Page ${index} of the import took ${index * 7 + 300} ms and left ${index * 3} rows for worker-${index} to check.`,
    ],
  ),
]
const messages = conversation(...turns)
const countIn = (text: string, part: string): number => text.replace(/\s+/g, ' ').split(part).length - 1

describe('renderHandoff', () => {
  for (const budget of [400, 800, 1_600, 20_000])
    verifies('H-05', `with ${budget} tokens › shows no sentence of the conversation twice`, () => {
      const { text } = renderHandoff(
        {
          title: deriveTitle(messages)?.title ?? '',
          messages,
          items: extractItems(messages, { tokenizer }),
          files: [],
          summaries: [`User: ${opening}\nAssistant: ${decision}`, turns.map(([, content]) => content).join('\n')],
          earlier: [],
          provided: [],
        },
        { budget, tokenizer },
      )
      const repeated = turns.map(([, content]) => content).filter((content) => countIn(text, content) > 1)
      expect(repeated).toEqual([])
      expect(countIn(text, opening.slice(0, 60))).toBe(1)
    })
  it('with a title of its own › shows the title', () => {
    const material = { title: 'Slow import', messages, items: [], files: [], summaries: [], earlier: [], provided: [] }
    expect(renderHandoff(material, { budget: 2_000, tokenizer }).text.startsWith('# Slow import\n')).toBe(true)
  })
})

describe('omitShown', () => {
  it('with a speaker whose first sentence is shown › names the speaker at the next line', () => {
    const summary = 'Ann: I live in Porto. I work at the harbour.\nI have two cats.\nBob: Thanks!'
    const shown = new ShownText('I live in\nPorto. I work at the harbour.')
    expect(omitShown(summary, shown, new Set(['Ann', 'Bob']))).toBe('Ann: I have two cats.\nBob: Thanks!')
  })
  it('with a line that only looks labelled › keeps it with its text', () => {
    const summary = 'Goal: read pages.\nDone.'
    expect(omitShown(summary, new ShownText('nothing'), new Set(['Ann']))).toBe(summary)
  })
})
