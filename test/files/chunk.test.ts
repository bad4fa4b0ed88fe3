import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { bodyOf, type Chunk, contentOf, Packer } from '../../src/files/chunk.ts'
import { piecesOf } from '../../src/files/pieces.ts'
import type { Document } from '../../src/files/read.ts'
import { chars4 } from '../../src/text/estimators.ts'

const documentOf = (text: string, rest: Partial<Document> = {}): Document => ({
  text,
  hasHeadings: true,
  pages: [],
  ...rest,
})

function chunksOf(document: Document): Chunk[] {
  const packer = new Packer((text) => chars4.count(text))
  return [...[...piecesOf(document)].flatMap((piece) => packer.take(piece)), ...packer.rest()]
}

const sentence = (number: number): string => `Sentence number ${number} says something about the weather in Lisbon. `
const sentences = (many: number): string => Array.from({ length: many }, (_, at) => sentence(at + 1)).join('')

describe('the pieces of a text', () => {
  it('are headings, lines of lists, and sentences, with the headings they stand under', () =>
    expect([...piecesOf(documentOf('# Pets\nMiso is a cat. She sleeps.\n\n### Food\n- fish\n- milk\n'))]).toEqual([
      { text: '# Pets\n', cut: 3, place: 'Pets' },
      { text: 'Miso is a cat. ', cut: 1, place: 'Pets' },
      { text: 'She sleeps.\n\n', cut: 1, place: 'Pets' },
      { text: '### Food\n', cut: 3, place: 'Pets › Food' },
      { text: '- fish\n', cut: 1, place: 'Pets › Food' },
      { text: '- milk\n', cut: 1, place: 'Pets › Food' },
    ]))
  it('know that a heading ends those of its level and below', () =>
    expect([...piecesOf(documentOf('# A\n## B\n### C\n## D\n# E\n'))].map(({ place }) => place)).toEqual([
      'A',
      'A › B',
      'A › B › C',
      'A › D',
      'E',
    ]))
  it('take no heading from code, nor from a text that has none', () => {
    expect([...piecesOf(documentOf('```sh\n# install\n```\n'))].map(({ place }) => place)).toEqual(['', '', ''])
    expect([...piecesOf(documentOf('# a comment\n', { hasHeadings: false }))].map(({ place }) => place)).toEqual([''])
  })
  it('are worth less where a line breaks inside a sentence', () =>
    expect([...piecesOf(documentOf('The shop\nis open.\nIt is big.\n\nNext.'))].map(({ cut }) => cut)).toEqual([
      2, 0, 1, 2,
    ]))
  it('know their page', () =>
    expect([...piecesOf(documentOf('One.\n\nTwo.\nMore.\n', { pages: [0, 6] }))].map(({ place }) => place)).toEqual([
      'page 1',
      'page 2',
      'page 2',
    ]))
  it('never split a character, nor leave a line that has no end whole', () => {
    const pieces = [...piecesOf(documentOf('😀'.repeat(1_000)))]
    expect(pieces.map(({ text }) => text.length)).toEqual([800, 800, 400])
    expect([...piecesOf(documentOf(`a${'😀'.repeat(1_000)}`))].every(({ text }) => text.isWellFormed())).toBe(true)
  })
  it('hold a secret whole, with the line that names it', () => {
    const key = `-----BEGIN PRIVATE KEY-----\n${'MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n'.repeat(60)}-----END PRIVATE KEY-----`
    const pieces = [...piecesOf(documentOf(`Keep this:\n${key}\nAnd more.`))]
    expect(pieces.filter(({ text }) => text.includes('MII')).length).toBe(1)
    const phrase = 'abandon ability able about above absent absorb abstract absurd abuse access accident'
    const [first, second] = [...piecesOf(documentOf(`Hello.\nSeed phrase:\n\n${phrase}\nBye.`))].slice(0, 2)
    expect([first?.text, second?.text]).toEqual(['Hello.\n', `Seed phrase:\n\n${phrase}\n`])
  })
})

describe('the chunks of a text', () => {
  it('hold about 350 tokens and end with a sentence', () => {
    const chunks = chunksOf(documentOf(sentences(100)))
    expect(chunks.map(({ body }) => chars4.count(body))).toEqual([329, 331, 331, 331, 253])
    expect(chunks.every(({ body }) => body.startsWith('Sentence number') && body.endsWith('Lisbon. '))).toBe(true)
  })
  it('end with a paragraph rather than with a sentence', () => {
    const [first] = chunksOf(documentOf(`${sentences(15)}\n\n${sentences(15)}`))
    expect(first?.body).toBe(`${sentences(15)}\n\n`)
  })
  it('end with their section, unless what follows is a part of it', () =>
    expect(chunksOf(documentOf('# Shop\nHello.\n## Hours\nMo.\n## Prices\nTea 3.\n# Staff\nAnn.\n'))).toEqual([
      { place: 'Shop', body: '# Shop\nHello.\n## Hours\nMo.\n## Prices\nTea 3.\n' },
      { place: 'Staff', body: '# Staff\nAnn.\n' },
    ]))
  it('are of one page', () =>
    expect(chunksOf(documentOf('One.\n\nTwo.\n\n', { pages: [0, 6], hasHeadings: false }))).toEqual([
      { place: 'page 1', body: 'One.\n\n' },
      { place: 'page 2', body: 'Two.\n\n' },
    ]))
  it('break code and tables between lines', () => {
    const code = `\`\`\`ts\n${Array.from({ length: 200 }, (_, at) => `  const value${at} = compute(${at}). then(it)`).join('\n')}\n\`\`\`\n`
    const table = Array.from({ length: 200 }, (_, at) => `| Item ${at} | It is good. It is cheap. | ${at} |\n`).join('')
    for (const text of [code, table]) {
      const chunks = chunksOf(documentOf(text))
      expect(chunks.length).toBeGreaterThan(5)
      expect(chunks.every(({ body }) => body.endsWith('\n'))).toBe(true)
    }
  })
  it('tell where they stand on their first line', () => {
    const chunk = { place: 'Shop › Hours', body: 'Mo to Fr\n' }
    expect([contentOf(chunk), bodyOf(contentOf(chunk)), contentOf({ place: '', body: 'Mo' })]).toEqual([
      'Shop › Hours\nMo to Fr\n',
      'Mo to Fr\n',
      'Mo',
    ])
  })
  it('lose nothing, whatever the text', () => {
    const parts = fc.constantFrom(
      '# A',
      '## B\n',
      '\n',
      '\n\n',
      'word ',
      'Stop. ',
      '| a | b |\n',
      '- x\n',
      '```\n',
      '😀',
      ' ',
      'x'.repeat(900),
      sentences(20),
      'password: hunter2x ',
      '\t',
      '。',
    )
    const texts = fc.array(parts, { maxLength: 60 }).map((some) => some.join(''))
    fc.assert(
      fc.property(texts, fc.boolean(), fc.boolean(), (text, hasHeadings, hasPages) => {
        const pages = hasPages ? [...text.matchAll(/\n\n/g)].map(({ index }) => index + 2) : []
        const chunks = chunksOf({ text, hasHeadings, pages: hasPages ? [0, ...pages] : [] })
        expect(text.trim() === '' || chunks.map(({ body }) => body).join('') === text).toBe(true)
        // Once there are headings there is always one: which chunks begin with a line of their own is told by one number.
        const bare = chunks.findIndex(({ place }) => place !== '')
        expect(bare < 0 || chunks.slice(bare).every(({ place }) => place !== '')).toBe(true)
      }),
    )
  })
})
