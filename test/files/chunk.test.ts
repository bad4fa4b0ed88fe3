import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Chunk, ChunkBuilder, formatChunk, parseChunkBody } from '../../src/files/chunk.ts'
import { type SplittableText, splitDocument } from '../../src/files/segments.ts'
import { chars4 } from '../../src/text/estimators.ts'
import { verifies } from '../requirements/verifies.ts'

const createDocument = (text: string, rest: Partial<SplittableText> = {}): SplittableText => ({
  text,
  hasHeadings: true,
  pages: [],
  ...rest,
})

function buildChunks(document: SplittableText): Chunk[] {
  const builder = new ChunkBuilder((text) => chars4.count(text))
  return [...[...splitDocument(document)].flatMap((segment) => builder.add(segment)), ...builder.flush()]
}

const sentence = (number: number): string => `Sentence number ${number} says something about the weather in Lisbon. `
const sentences = (count: number): string => Array.from({ length: count }, (_, index) => sentence(index + 1)).join('')

describe('splitDocument', () => {
  it('splits at headings, list items and sentences, each with its headings', () =>
    expect([
      ...splitDocument(createDocument('# Pets\nMiso is a cat. She sleeps.\n\n### Food\n- fish\n- milk\n')),
    ]).toEqual([
      { text: '# Pets\n', breakQuality: 3, location: 'Pets' },
      { text: 'Miso is a cat. ', breakQuality: 1, location: 'Pets' },
      { text: 'She sleeps.\n\n', breakQuality: 1, location: 'Pets' },
      { text: '### Food\n', breakQuality: 3, location: 'Pets › Food' },
      { text: '- fish\n', breakQuality: 1, location: 'Pets › Food' },
      { text: '- milk\n', breakQuality: 1, location: 'Pets › Food' },
    ]))
  it('with a heading › ends the headings of its level and below', () =>
    expect([...splitDocument(createDocument('# A\n## B\n### C\n## D\n# E\n'))].map(({ location }) => location)).toEqual(
      ['A', 'A › B', 'A › B › C', 'A › D', 'E'],
    ))
  it('with a heading that ends with signs › leaves them out; without a title › finds no heading', () => {
    const locations = [...splitDocument(createDocument('# A # B ##\t \n##  \n# ###\n'))].map(({ location }) => location)
    expect(locations).toEqual(['A # B', 'A # B', 'A # B'])
  })

  verifies('R-03', 'with a long heading of spaces and signs › reads each character once', () => {
    // In cubic time, a tenth of these characters takes 40 seconds.
    const line = `#\t${' '.repeat(40_000)}${'#'.repeat(40_000)}`
    const locations = [...splitDocument(createDocument(`${line}\n${line}x\n`))].map(({ location }) => location)
    expect([locations[0], /^#+…$/.test(locations.at(-1) ?? '')]).toEqual(['', true])
  })

  it('with # in code or in a format without headings › finds no heading', () => {
    expect([...splitDocument(createDocument('```sh\n# install\n```\n'))].map(({ location }) => location)).toEqual([
      '',
      '',
      '',
    ])
    expect(
      [...splitDocument(createDocument('# a comment\n', { hasHeadings: false }))].map(({ location }) => location),
    ).toEqual([''])
  })
  it('with a line break inside a sentence › rates the break lowest', () =>
    expect(
      [...splitDocument(createDocument('The shop\nis open.\nIt is big.\n\nNext.'))].map(
        ({ breakQuality }) => breakQuality,
      ),
    ).toEqual([2, 0, 1, 2]))
  it('with pages › includes the page in the location', () =>
    expect(
      [...splitDocument(createDocument('One.\n\nTwo.\nMore.\n', { pages: [0, 6] }))].map(({ location }) => location),
    ).toEqual(['page 1', 'page 2', 'page 2']))
  it('with an endless line › divides it without splitting a character', () => {
    const segments = [...splitDocument(createDocument('😀'.repeat(1_000)))]
    expect(segments.map(({ text }) => text.length)).toEqual([800, 800, 400])
    expect([...splitDocument(createDocument(`a${'😀'.repeat(1_000)}`))].every(({ text }) => text.isWellFormed())).toBe(
      true,
    )
  })
  it('with a secret › keeps it in one segment with the line that labels it', () => {
    const key = `-----BEGIN PRIVATE KEY-----\n${'MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n'.repeat(60)}-----END PRIVATE KEY-----`
    const segments = [...splitDocument(createDocument(`Keep this:\n${key}\nAnd more.`))]
    expect(segments.filter(({ text }) => text.includes('MII')).length).toBe(1)
    const phrase = 'abandon ability able about above absent absorb abstract absurd abuse access accident'
    const [first, second] = [...splitDocument(createDocument(`Hello.\nSeed phrase:\n\n${phrase}\nBye.`))].slice(0, 2)
    expect([first?.text, second?.text]).toEqual(['Hello.\n', `Seed phrase:\n\n${phrase}\n`])
  })
})

describe('ChunkBuilder', () => {
  it('with many sentences › builds chunks of about 350 tokens that end with a sentence', () => {
    const chunks = buildChunks(createDocument(sentences(100)))
    expect(chunks.map(({ body }) => chars4.count(body))).toEqual([329, 331, 331, 331, 253])
    expect(chunks.every(({ body }) => body.startsWith('Sentence number') && body.endsWith('Lisbon. '))).toBe(true)
  })
  it('with paragraphs › prefers to end with a paragraph', () => {
    const [first] = buildChunks(createDocument(`${sentences(15)}\n\n${sentences(15)}`))
    expect(first?.body).toBe(`${sentences(15)}\n\n`)
  })
  it('with sections › ends with the section unless a subsection follows', () =>
    expect(buildChunks(createDocument('# Shop\nHello.\n## Hours\nMo.\n## Prices\nTea 3.\n# Staff\nAnn.\n'))).toEqual([
      { location: 'Shop', body: '# Shop\nHello.\n## Hours\nMo.\n## Prices\nTea 3.\n' },
      { location: 'Staff', body: '# Staff\nAnn.\n' },
    ]))
  it('with pages › starts a chunk on each page', () =>
    expect(buildChunks(createDocument('One.\n\nTwo.\n\n', { pages: [0, 6], hasHeadings: false }))).toEqual([
      { location: 'page 1', body: 'One.\n\n' },
      { location: 'page 2', body: 'Two.\n\n' },
    ]))
  it('with code and tables › divides between lines', () => {
    const code = `\`\`\`ts\n${Array.from({ length: 200 }, (_, index) => `  const value${index} = compute(${index}). then(it)`).join('\n')}\n\`\`\`\n`
    const table = Array.from(
      { length: 200 },
      (_, index) => `| Item ${index} | It is good. It is cheap. | ${index} |\n`,
    ).join('')
    for (const text of [code, table]) {
      const chunks = buildChunks(createDocument(text))
      expect(chunks.length).toBeGreaterThan(5)
      expect(chunks.every(({ body }) => body.endsWith('\n'))).toBe(true)
    }
  })
  it('formatChunk and parseChunkBody › write and remove the location line', () => {
    const chunk = { location: 'Shop › Hours', body: 'Mo to Fr\n' }
    expect([formatChunk(chunk), parseChunkBody(formatChunk(chunk)), formatChunk({ location: '', body: 'Mo' })]).toEqual(
      ['Shop › Hours\nMo to Fr\n', 'Mo to Fr\n', 'Mo'],
    )
  })
  it('with any text › loses nothing', () => {
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
        const chunks = buildChunks({ text, hasHeadings, pages: hasPages ? [0, ...pages] : [] })
        expect(text.trim() === '' || chunks.map(({ body }) => body).join('') === text).toBe(true)
        // Chunks without a location can only come first, so a record stores just their number.
        const firstLabelled = chunks.findIndex(({ location }) => location !== '')
        expect(firstLabelled < 0 || chunks.slice(firstLabelled).every(({ location }) => location !== '')).toBe(true)
      }),
    )
  })
})
