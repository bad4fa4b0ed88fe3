import { describe, expect } from 'vitest'
import { pressed } from '../../src/handoff/compression.ts'
import { weave } from '../../src/handoff/render.ts'
import { tokenizerNamed } from '../../src/tokenizers/tokenizers.ts'
import { verifies } from '../requirements/verifies.ts'
import { conversation, material } from './renderFixtures.ts'

const tokenizer = await tokenizerNamed('exact')

describe('adaptive compression', () => {
  const said = 'Look:   here.\n\n\n```ts\n// the reason\nrun()\n```'
  const upTo = (characters: number) => pressed([said], ([text = '']) => text.length <= characters)

  verifies('H-13', 'takes white space, then comments, and stops at the first that fits', () => {
    expect(upTo(said.length)).toEqual({ texts: [said], compression: 'none' })
    expect(upTo(said.length - 1)).toEqual({
      texts: ['Look: here.\n\n```ts\n// the reason\nrun()\n```'],
      compression: 'whitespace',
    })
    expect(upTo(said.length - 4)).toEqual({ texts: ['Look: here.\n\n```ts\nrun()\n```'], compression: 'comments' })
    expect(upTo(10)).toEqual({ texts: ['Look: here.\n\n```ts\nrun()\n```'], compression: 'sections' })
  })
  verifies('H-13', 'takes comments from the oldest on, and no more of them than it must', () => {
    const block = (name: string): string => `\`\`\`ts\n/* why\n   ${name} */\n${name}() // now\n// then\nend()\n\`\`\``
    const bare = (name: string): string => `\`\`\`ts\n${name}()\nend()\n\`\`\``
    const both = [block('one'), block('two')]
    const within = (characters: number) => pressed(both, (texts) => texts.join('').length <= characters).texts
    const all = both.join('').length
    expect(within(all - 1)).toEqual([block('one').replace('/* why\n   one */\n', ''), block('two')])
    expect(within(all - 23)).toEqual([bare('one').replace('end()', '// then\nend()'), block('two')])
    expect(within(all - 40)).toEqual([bare('one'), block('two').replace('/* why\n   two */\n', '')])
    expect(within(bare('one').length + bare('two').length)).toEqual([bare('one'), bare('two')])
  })
  verifies('H-13', 'leaves little of the budget unused when only comments had to go', () => {
    const code = Array.from({ length: 30 }, (_, at) => `// note ${at} on what is done here and why\nrun${at}()`).join(
      '\n',
    )
    const messages = conversation(['user', `\`\`\`ts\n${code}\n\`\`\``])
    for (const budget of [200, 300, 400]) {
      const { tokens, compressed, text } = weave(material({ messages }), { budget, tokenizer })
      expect([compressed, text.includes('run0()'), text.includes('// note 29'), tokens > budget - 20]).toEqual([
        'comments',
        true,
        true,
        true,
      ])
    }
  })
  verifies('H-13', 'is no more than a conversation needs to fit its budget', () => {
    const comments = Array.from(
      { length: 30 },
      (_, at) => `// note ${at} on what is done here \t \n \t \n \t \nrun${at}()`,
    ).join('\n')
    const messages = conversation(['user', `Look:${' '.repeat(40)}here.\n\`\`\`ts\n${comments}\n\`\`\``])
    const compressed = (budget: number) => {
      const { text, compressed } = weave(material({ messages }), { budget, tokenizer })
      return [compressed, text.includes('note 7'), text.includes('run7()'), text.includes('run29()')]
    }
    expect([1_000, 500, 300, 50].map(compressed)).toEqual([
      ['none', true, true, true],
      ['whitespace', true, true, true],
      ['comments', false, true, true],
      ['sections', false, false, true],
    ])
  })
})
