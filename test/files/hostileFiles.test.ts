import { deflateSync } from 'node:zlib'
import { afterAll, describe, expect, it } from 'vitest'
import { ramStore } from '../../src/stores/ram.ts'
import { createFiles } from './fileServiceFixture.ts'
import { createDocx, createPdf, createPdfFromStreams, createZip, docxParagraph } from './fixtures.ts'

const files = createFiles(ramStore())
afterAll(() => files.close())

const expectRejected = async (name: string, content: string | Uint8Array, message: string): Promise<void> => {
  await expect(files.add('acme', { name, bytes: Buffer.from(content) })).rejects.toMatchObject({
    code: 'bad-message',
    param: 'file',
    message,
  })
  // The next file is read regardless.
  expect(await files.add('acme', { name: `after ${name}`, bytes: Buffer.from('Hello.') })).toMatchObject({
    status: 'ready',
  })
}

const damaged = 'The file is damaged or malicious and cannot be read. Save it again, or convert it to text.'

const noText = 'The file holds no text. If it is a scan, run it through text recognition first.'
const tooLong = 'The file holds more than 5,000,000 characters of text. Split it into smaller files.'
const tooHeavy = 'The file needs too much memory to read. Split it into smaller files, or save it as text.'

describe('add with a hostile file', () => {
  it('with too many bytes › throws an error that names the limit', () =>
    expectRejected(
      'a.txt',
      Buffer.alloc(20_000_001, 97),
      'The file has 20,000,001 bytes; the limit is 20,000,000. Split it into smaller files.',
    ))
  it('with too much text › throws an error that names the limit', () =>
    expectRejected('a.txt', 'a b '.repeat(1_250_001), tooLong))
  it('without text › throws an error with the remedy', () => expectRejected('a.txt', ' \n', noText))
  it('without a name › throws an error with the remedy', () =>
    expect(files.add('acme', { name: ' ', bytes: Buffer.from('x') })).rejects.toThrow(
      'The file needs a name of at most 255 characters.',
    ))
  it('with JSON nested a million levels deep › throws', () =>
    expectRejected(
      'a.json',
      '['.repeat(1_000_000),
      'The file is nested deeper than 200 levels. Flatten it, or save it as text.',
    ))
  it('with HTML nested a million levels deep › throws', () =>
    expectRejected(
      'a.html',
      '<b>'.repeat(1_000_000),
      'The file is nested deeper than 1000 elements. Flatten it, or save it as text.',
    ))
  it('with a CSV row of millions of cells › throws', () => expectRejected('a.csv', ','.repeat(6_000_000), tooLong))
  it('with an archive that decompresses beyond the limit › throws', () =>
    expectRejected(
      'a.docx',
      createZip({ '_rels/.rels': Buffer.alloc(101_000_000), 'word/document.xml': '<a/>' }),
      'The file is too large when decompressed. Split it into smaller files.',
    ))
  it('with a truncated archive › throws', () =>
    expectRejected(
      'a.docx',
      createDocx(docxParagraph('Hello')).subarray(0, 700),
      'The file is damaged: its end is missing. Upload it again.',
    ))
  it('with a document that needs too much memory › throws', () =>
    expectRejected('a.docx', createDocx(docxParagraph('a').repeat(1_200_000)), tooHeavy))
  it('with recursive XML entities › throws', () => {
    const laughs = Array.from(
      { length: 9 },
      (_, index) => `<!ENTITY l${index + 1} "${`&l${index};`.repeat(10)}">`,
    ).join('')
    return expectRejected(
      'a.docx',
      createDocx(docxParagraph('&l9;'), `<!DOCTYPE l [<!ENTITY l0 "lol">${laughs}]>`),
      damaged,
    )
  })
  it('with a cyclic page tree › throws', () =>
    expectRejected(
      'a.pdf',
      Buffer.from(
        Buffer.from(createPdf(['Hello']))
          .toString('latin1')
          .replace('[4 0 R]', '[2 0 R]'),
        'latin1',
      ),
      damaged,
    ))
  it('with a page that decompresses beyond the limit › throws', () => {
    const bytes = deflateSync(Buffer.alloc(150_000_000, ' '))
    return expectRejected(
      'a.pdf',
      createPdfFromStreams([{ dictionary: `/Length ${bytes.length} /Filter /FlateDecode`, bytes }]),
      damaged,
    )
  })
  it('with a PDF header only › throws', () => expectRejected('a.pdf', '%PDF-1.4', damaged))
})

describe('add with limits', () => {
  const limited = createFiles(ramStore(), { limits: { maxPages: 1, parseTimeoutMs: 1, maxQueued: 1, maxFiles: 1 } })
  afterAll(() => limited.close())

  it('with a timeout › throws an error that names it', () =>
    expect(limited.add('acme', { name: 'a.txt', bytes: Buffer.from('Hello.') })).rejects.toThrow(
      'The file took more than 0.001 s to read. Split it into smaller files, or save it as text.',
    ))
  it('with a full queue › throws busy', async () => {
    const first = limited.addInBackground('other', { name: 'a.txt', bytes: Buffer.from('Hello.') })
    await expect(
      limited.addInBackground('other', { name: 'b.txt', bytes: Buffer.from('Hello.') }),
    ).rejects.toMatchObject({
      code: 'busy',
      message: 'The queue of 1 files is full. Upload the file again in a moment.',
    })
    await first
    await limited.waitUntilIdle()
  })
  it('with the maximum number of files › throws full', () =>
    expect(limited.add('acme', { name: 'b.txt', bytes: Buffer.from('Hello.') })).rejects.toMatchObject({
      code: 'full',
      message: 'The limit of 1 files is reached. Remove some files first.',
    }))
  it('with more than the maximum number of pages › throws', async () => {
    const onePage = createFiles(ramStore(), { limits: { maxPages: 1 } })
    const message = 'The file has 2 pages; the limit is 1. Split it into smaller files.'
    await expect(onePage.add('acme', { name: 'a.pdf', bytes: createPdf(['One'], ['Two']) })).rejects.toThrow(message)
    await onePage.close()
  })
})
