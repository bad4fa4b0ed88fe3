import { deflateSync } from 'node:zlib'
import { afterAll, describe, expect, it } from 'vitest'
import { ramStore } from '../../src/stores/ram.ts'
import { docx, paragraph, pdf, pdfOf, zip } from './fixtures.ts'
import { filesOn } from './stage.ts'

const files = filesOn(ramStore())
afterAll(() => files.close())

const refused = async (name: string, content: string | Uint8Array, message: string): Promise<void> => {
  await expect(files.add('acme', { name, bytes: Buffer.from(content) })).rejects.toMatchObject({
    code: 'bad-message',
    param: 'file',
    message,
  })
  // Whatever it was, the next one is read.
  expect(await files.add('acme', { name: `after ${name}`, bytes: Buffer.from('Hello.') })).toMatchObject({
    status: 'ready',
  })
}

const damaged =
  'The file is damaged, or made to do damage, and cannot be read. Save it again in its own program, or as text.'
const noText = 'The file holds no text. If it is a scan, run it through text recognition first.'
const tooLong = 'The file holds more than 5,000,000 characters of text. Split it into smaller ones.'
const tooHeavy =
  'The file takes more memory to read than there is for it. Split it into smaller ones, or save it as text.'

describe('a file made to do damage ends in an error that says what to do:', () => {
  it('too many bytes', () =>
    refused(
      'a.txt',
      Buffer.alloc(20_000_001, 97),
      'The file has 20,000,001 bytes; at most 20,000,000 are read. Split it into smaller ones.',
    ))
  it('too much text', () => refused('a.txt', 'a b '.repeat(1_250_001), tooLong))
  it('no text', () => refused('a.txt', ' \n', noText))
  it('no name', () =>
    expect(files.add('acme', { name: ' ', bytes: Buffer.from('x') })).rejects.toThrow(
      'The file needs a name of at most 255 characters.',
    ))
  it('JSON nested a million levels deep', () =>
    refused(
      'a.json',
      '['.repeat(1_000_000),
      'The file is nested deeper than 200 levels. Flatten it, or save it as text.',
    ))
  it('HTML nested a million levels deep', () =>
    refused(
      'a.html',
      '<b>'.repeat(1_000_000),
      'The file is nested deeper than 1000 elements. Flatten it, or save it as text.',
    ))
  it('a row of millions of cells', () => refused('a.csv', ','.repeat(6_000_000), tooLong))
  it('an archive that unfolds to far more than it is', () =>
    refused(
      'a.docx',
      zip({ '_rels/.rels': Buffer.alloc(101_000_000), 'word/document.xml': '<a/>' }),
      'The file unfolds to more than may be read. Split it into smaller ones.',
    ))
  it('an archive cut off in the middle', () =>
    refused(
      'a.docx',
      docx(paragraph('Hello')).subarray(0, 700),
      'The file is damaged: its end is missing. Upload it again.',
    ))
  it('a document that takes more memory than there is', () =>
    refused('a.docx', docx(paragraph('a').repeat(1_200_000)), tooHeavy))
  it('entities made of entities', () => {
    const laughs = Array.from({ length: 9 }, (_, at) => `<!ENTITY l${at + 1} "${`&l${at};`.repeat(10)}">`).join('')
    return refused('a.docx', docx(paragraph('&l9;'), `<!DOCTYPE l [<!ENTITY l0 "lol">${laughs}]>`), damaged)
  })
  it('pages that contain themselves', () =>
    refused(
      'a.pdf',
      Buffer.from(
        Buffer.from(pdf(['Hello']))
          .toString('latin1')
          .replace('[4 0 R]', '[2 0 R]'),
        'latin1',
      ),
      damaged,
    ))
  it('a page that unfolds to far more than it is', () => {
    const bytes = deflateSync(Buffer.alloc(150_000_000, ' '))
    return refused('a.pdf', pdfOf([{ dictionary: `/Length ${bytes.length} /Filter /FlateDecode`, bytes }]), damaged)
  })
  it('a PDF with a beginning and nothing more', () => refused('a.pdf', '%PDF-1.4', damaged))
})

describe('limits', () => {
  const limited = filesOn(ramStore(), { limits: { pages: 1, milliseconds: 1, waiting: 1, files: 1 } })
  afterAll(() => limited.close())

  it('of time end what takes longer', () =>
    expect(limited.add('acme', { name: 'a.txt', bytes: Buffer.from('Hello.') })).rejects.toThrow(
      'The file took more than 0.001 s to read. Split it into smaller ones, or save it as text.',
    ))
  it('of how many wait refuse one more', async () => {
    const first = limited.begin('other', { name: 'a.txt', bytes: Buffer.from('Hello.') })
    await expect(limited.begin('other', { name: 'b.txt', bytes: Buffer.from('Hello.') })).rejects.toMatchObject({
      code: 'busy',
      message: '1 files are waiting to be read already. Upload it again in a moment.',
    })
    await first
    await limited.settled()
  })
  it('of how many there are refuse one more', () =>
    expect(limited.add('acme', { name: 'b.txt', bytes: Buffer.from('Hello.') })).rejects.toMatchObject({
      code: 'full',
      message: 'There are 1 files already, and no room for more. Remove some first.',
    }))
  it('of pages refuse a longer document', async () => {
    const few = filesOn(ramStore(), { limits: { pages: 1 } })
    const message = 'The file has 2 pages; at most 1 are read. Split it into smaller ones.'
    await expect(few.add('acme', { name: 'a.pdf', bytes: pdf(['One'], ['Two']) })).rejects.toThrow(message)
    await few.close()
  })
})
