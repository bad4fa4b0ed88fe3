import { describe, expect } from 'vitest'
import { pressed } from '../../src/handoff/compression.ts'
import { weave } from '../../src/handoff/weave.ts'
import { tokenizerNamed } from '../../src/models/tokenizers.ts'
import { verifies } from '../requirements/verifies.ts'
import { conversation, material } from './weaveScene.ts'

const tokenizer = await tokenizerNamed('exact')

describe('adaptive compression', () => {
  const said = 'Look:   here.\n\n\n```ts\n// the reason\nrun()\n```'
  const upTo = (characters: number) => pressed([said], ([text = '']) => text.length <= characters)

  verifies('H-13', 'takes white space, then comments, and stops at the first that fits', () => {
    expect(upTo(said.length)).toEqual({ texts: [said], compression: 'none' })
    expect(upTo(said.length - 1)).toEqual({ texts: ['Look: here.\n\n```ts\n// the reason\nrun()\n```'], compression: 'whitespace' })
    expect(upTo(said.length - 4)).toEqual({ texts: ['Look: here.\n\n```ts\nrun()\n```'], compression: 'comments' })
    expect(upTo(10)).toEqual({ texts: ['Look: here.\n\n```ts\nrun()\n```'], compression: 'sections' })
  })
  verifies('H-13', 'is no more than a conversation needs to fit its budget', () => {
    const comments = Array.from({ length: 30 }, (_, at) => `// note ${at} on what is done here \t \n \t \n \t \nrun${at}()`).join('\n')
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
