import { describe, expect } from 'vitest'
import { compressTexts } from '../../src/handoff/render/budget.ts'
import { renderHandoff } from '../../src/handoff/render/render.ts'
import { MetadataSections } from '../../src/handoff/render/sections.ts'
import { tokenizerNamed } from '../../src/tokenizers/tokenizers.ts'
import { verifies } from '../requirements/verifies.ts'
import { conversation, material } from './renderFixtures.ts'

const tokenizer = await tokenizerNamed('exact')

describe('compression', () => {
  const text = 'Look:   here.\n\n\n```ts\n// the reason\nrun()\n```'
  const compressTo = (maxChars: number) => compressTexts([text], ([result = '']) => result.length <= maxChars)

  verifies('H-13', 'removes whitespace, then comments, and stops as soon as the text fits', () => {
    expect(compressTo(text.length)).toEqual({ texts: [text], compression: 'none' })
    expect(compressTo(text.length - 1)).toEqual({
      texts: ['Look: here.\n\n```ts\n// the reason\nrun()\n```'],
      compression: 'whitespace',
    })
    expect(compressTo(text.length - 4)).toEqual({
      texts: ['Look: here.\n\n```ts\nrun()\n```'],
      compression: 'comments',
    })
    expect(compressTo(10)).toEqual({ texts: ['Look: here.\n\n```ts\nrun()\n```'], compression: 'sections' })
  })
  verifies('R-03', 'of a summary without spaces between its words › selects from its beginning', () => {
    const render = (sentences: number): string => {
      const summary = `${'漢字の文章は長いです。 '.repeat(sentences)}My flight is on 3 May 2026 at 10:45.`
      return new MetadataSections(material({ summaries: [summary] }), [], tokenizer).render(60)
    }
    expect(render(1_000)).toContain('3 May 2026')
    expect(render(10_000)).not.toContain('3 May 2026')
    expect(render(10_000)).toContain('漢字の文章')
  })
  verifies('H-13', 'removes the oldest comments first, and only as many as needed', () => {
    const block = (name: string): string => `\`\`\`ts\n/* why\n   ${name} */\n${name}() // now\n// then\nend()\n\`\`\``
    const bare = (name: string): string => `\`\`\`ts\n${name}()\nend()\n\`\`\``
    const both = [block('one'), block('two')]
    const compressTo = (maxChars: number) => compressTexts(both, (texts) => texts.join('').length <= maxChars).texts
    const all = both.join('').length
    expect(compressTo(all - 1)).toEqual([block('one').replace('/* why\n   one */\n', ''), block('two')])
    expect(compressTo(all - 23)).toEqual([bare('one').replace('end()', '// then\nend()'), block('two')])
    expect(compressTo(all - 40)).toEqual([bare('one'), block('two').replace('/* why\n   two */\n', '')])
    expect(compressTo(bare('one').length + bare('two').length)).toEqual([bare('one'), bare('two')])
  })
  verifies('H-13', 'of comments uses most of the budget', () => {
    const code = Array.from(
      { length: 30 },
      (_, index) => `// note ${index} on what is done here and why\nrun${index}()`,
    ).join('\n')
    const messages = conversation(['user', `\`\`\`ts\n${code}\n\`\`\``])
    for (const budget of [200, 300, 400]) {
      const { tokens, compression, text } = renderHandoff(material({ messages }), { budget, tokenizer })
      expect([compression, text.includes('run0()'), text.includes('// note 29'), tokens > budget - 20]).toEqual([
        'comments',
        true,
        true,
        true,
      ])
    }
  })
  verifies('H-13', 'is the lowest level at which the conversation fits the budget', () => {
    const comments = Array.from(
      { length: 30 },
      (_, index) => `// note ${index} on what is done here \t \n \t \n \t \nrun${index}()`,
    ).join('\n')
    const messages = conversation(['user', `Look:${' '.repeat(40)}here.\n\`\`\`ts\n${comments}\n\`\`\``])
    const summarise = (budget: number) => {
      const { text, compression } = renderHandoff(material({ messages }), { budget, tokenizer })
      return [compression, text.includes('note 7'), text.includes('run7()'), text.includes('run29()')]
    }
    expect([1_000, 500, 300, 50].map(summarise)).toEqual([
      ['none', true, true, true],
      ['whitespace', true, true, true],
      ['comments', false, true, true],
      ['sections', false, false, true],
    ])
  })
})
