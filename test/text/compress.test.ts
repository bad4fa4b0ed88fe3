import { describe, expect } from 'vitest'
import { compress } from '../../src/text/compress.ts'
import { verifies } from '../requirements/verifies.ts'

const length = (text: string): number => text.length

describe('compress', () => {
  const text = 'Ports:   see below.\n\n\n\n```js\n// the port\nlisten(9100)\n```\nThat is all.'

  verifies('H-13', 'returns a text that fits unchanged', () =>
    expect(compress(text, text.length, length)).toEqual({ text, steps: [] }),
  )
  verifies('H-13', 'tries white space, comments and sections in this order, and stops at the first that fits', () => {
    const squeezed = 'Ports: see below.\n\n```js\n// the port\nlisten(9100)\n```\nThat is all.'
    const bare = 'Ports: see below.\n\n```js\nlisten(9100)\n```\nThat is all.'
    expect(compress(text, text.length - 1, length)).toEqual({ text: squeezed, steps: ['space'] })
    expect(compress(text, squeezed.length, length)).toEqual({ text: squeezed, steps: ['space'] })
    expect(compress(text, squeezed.length - 1, length)).toEqual({ text: bare, steps: ['space', 'comments'] })
    expect(compress(text, bare.length - 1, length)).toEqual({
      text: 'Ports: see below.\nlisten(9100)\nThat is all.',
      steps: ['space', 'comments', 'sections'],
    })
    expect(compress(text, 20, length)).toEqual({
      text: '... listen(9100) ...',
      steps: ['space', 'comments', 'sections'],
    })
  })
  verifies('H-13', 'does not report a step that changed nothing', () =>
    expect(compress('I like tea. Ana paid 300 euros on Monday.', 41, (candidate) => candidate.length + 1)).toEqual({
      text: '... Ana paid 300 euros on Monday.',
      steps: ['sections'],
    }),
  )
  verifies('H-13', 'returns an empty text if nothing fits', () =>
    expect(compress('word', 2, length)).toEqual({ text: '', steps: ['sections'] }),
  )
})
