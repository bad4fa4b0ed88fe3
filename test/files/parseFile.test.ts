import { describe, expect, it } from 'vitest'
import { decodeText, decodeTextInSteps, detectKind, type FileKind } from '../../src/files/kind.ts'
import { defaultFileLimits } from '../../src/files/limits.ts'
import { parseFile } from '../../src/files/parseFile.ts'
import { createDocx, createPdf, createZip, docxParagraph } from './fixtures.ts'

const parseText = async (kind: FileKind, content: string | Uint8Array, type?: string): Promise<string> =>
  (
    await parseFile(
      kind,
      { name: 'x', bytes: Buffer.from(content), ...(type === undefined ? {} : { type }) },
      defaultFileLimits,
    )
  ).text

describe('detectKind', () => {
  const detect = (name: string, content: string | Uint8Array, type?: string): FileKind =>
    detectKind({ name, bytes: Buffer.from(content), ...(type === undefined ? {} : { type }) })

  it('detects by bytes, then by file extension, then by media type', () => {
    expect([detect('a.txt', createPdf(['Hello'])), detect('a.bin', createDocx(docxParagraph('Hello')))]).toEqual([
      'pdf',
      'docx',
    ])
    expect(
      ['a.MD', 'a.htm', 'a.json', 'a.tsv', 'a.txt', 'a.py', 'LICENSE'].map((name) => detect(name, 'x', 'text/html')),
    ).toEqual(['markdown', 'html', 'json', 'csv', 'text', 'html', 'html'])
    expect(
      ['text/markdown', 'text/csv; header=present', 'application/json', 'image/png', undefined].map((type) =>
        detect('upload', 'x', type),
      ),
    ).toEqual(['markdown', 'csv', 'json', 'text', 'text'])
    expect(detect('page', '  <!DOCTYPE html><p>')).toBe('html')
  })
  it('with an unsupported format › throws an error that lists the formats', () => {
    const png = Uint8Array.from({ length: 999 }, (_, index) => (index * 7919) % 256)
    const formats = 'text, Markdown, HTML, JSON, CSV, PDF and DOCX'
    expect(() => detect('a.txt', png)).toThrow(`The file has an unsupported format. Convert it to one of: ${formats}.`)
    expect(() => detect('a.xlsx', createZip({ 'xl/workbook.xml': '<a/>' }))).toThrow(
      `The file is an archive but not a DOCX. Supported formats: ${formats}. Upload its contents instead.`,
    )
  })
})

describe('decodeText', () => {
  it('uses the byte order mark, the charset, or the detected encoding', () => {
    const wide = Buffer.from('café, “new”', 'utf16le')
    expect(decodeText(Buffer.from('\ufeffcafé'))).toBe('café')
    expect(decodeText(Buffer.concat([Buffer.from([0xff, 0xfe]), wide]))).toBe('café, “new”')
    expect(decodeText(Buffer.concat([Buffer.from([0xfe, 0xff]), Buffer.from(wide).swap16()]))).toBe('café, “new”')
    expect([decodeText(wide), decodeText(Buffer.from(wide).swap16())]).toEqual(['café, “new”', 'café, “new”'])
    expect(decodeText(Buffer.from('café', 'latin1'), 'latin1')).toBe('café')
  })
  it('with a wrong or unknown charset › inserts replacement characters or uses UTF-8', () => {
    expect(decodeText(Buffer.from('café', 'latin1'))).toBe('caf\ufffd')
    expect(decodeText(Buffer.from('café'), 'no-such-encoding')).toBe('café')
  })
  it('with a long text › decodes it in steps, also where they divide a character or a line end', () => {
    for (const padding of ['', 'x', 'xx', 'xxx']) {
      const text = `${padding}${'é😀\r\nab\r'.repeat(20_000)}`
      const steps = [...decodeTextInSteps(Buffer.from(text))]
      expect(steps.length).toBeGreaterThan(3)
      expect(Math.max(...steps)).toBeLessThan(70_000)
      expect(decodeText(Buffer.from(text))).toBe(text.replace(/\r\n?/g, '\n'))
    }
  })
  it('with any line ends › returns LF', () => expect(decodeText(Buffer.from('a\r\nb\rc\n'))).toBe('a\nb\nc\n'))
})

describe('parseFile', () => {
  it('with HTML › returns the visible text with headings, lists, tables and code', async () =>
    expect(
      await parseText(
        'html',
        `<html><head><title>Shop</title><style>p{}</style></head><body><h1>Opening <b>hours</b></h1><p>Hello,\n <i>you</i>!</p>
        <ul><li>Mo<ul><li>early</ul><li>Tu</ul><ol start="3"><li>a<li>b</ol><table><tr><th>Item<th>Price<tr><td><p>Tea</p><td>3</table>
        <pre>if (a)\n  b()</pre><p hidden>no</p><p style="display: none">no</p><script>no()</script><div>Fish &amp; chips<br>End</div>`,
      ),
    ).toBe(
      '# Opening hours\n\nHello, you!\n\n- Mo\n  - early\n- Tu\n3. a\n4. b\n\n| Item | Price |\n| Tea | 3 |\n\n```\nif (a)\n  b()\n```\n\nFish & chips\nEnd',
    ))
  it('with JSON › returns a line per value with its path, numbers unchanged', async () => {
    expect(
      await parseText(
        'json',
        '{"orders":[{"price":12,"to":"Ann\\nBo"},{}],"id":12345678901234567890,"a b":null,"e":[]}',
      ),
    ).toBe(
      'orders[0].price: 12\norders[0].to: Ann\nBo\norders[1]: {}\nid: 12345678901234567890\n["a b"]: null\ne: []\n',
    )
    expect([await parseText('json', ' "just text" '), await parseText('json', '[true]')]).toEqual([
      'just text\n',
      '[0]: true\n',
    ])
  })
  it('with invalid JSON › returns the text', async () => {
    for (const text of [
      '[1,2',
      '{"a":1,}',
      '{"a" 1}',
      '[1 2]',
      '{1:2}',
      '[01]',
      '["\\x"]',
      '1 2',
      ']',
      '[,]',
      '[1,]',
      '{"a":}',
    ])
      expect(await parseText('json', text)).toBe(text)
  })
  it('with CSV › returns a line per row with column names', async () => {
    expect(await parseText('csv', 'item;price;note\nTea;3,20;"two\nlines"\nCoffee;4;;more\n')).toBe(
      'item: Tea; price: 3,20; note: two lines\nitem: Coffee; price: 4; column 4: more\n',
    )
    expect(await parseText('csv', 'a\tb\n1\t2\n')).toBe('a: 1; b: 2\n')
    expect(await parseText('csv', 'one line, and no table')).toBe('one line, and no table')
  })
  it('with PDF › returns the pages with hyphenated words joined', async () =>
    expect(
      await parseFile(
        'pdf',
        { name: 'x', bytes: createPdf(['Refunds take four-', 'teen days (or less).'], [], ['The end.']) },
        defaultFileLimits,
      ),
    ).toEqual({
      text: 'Refunds take fourteen days (or less).\n\nThe end.\n\n',
      pages: [0, 39, 39],
      hasHeadings: false,
      hasFields: false,
    }))
  it('with DOCX › returns headings and tables', async () => {
    const table = `<w:tbl><w:tr><w:tc>${docxParagraph('Tea')}</w:tc><w:tc>${docxParagraph('3.20')}</w:tc></w:tr></w:tbl>`
    expect(
      await parseText(
        'docx',
        createDocx(`${docxParagraph('Returns', true)}${docxParagraph('Send it to Lisbon.')}${table}`),
      ),
    ).toBe('# Returns\n\nSend it to Lisbon.\n\n| Tea | 3.20 |')
  })
  it('with plain text › decodes the charset of the media type', async () =>
    expect(await parseText('text', Buffer.from('café', 'latin1'), 'text/plain; charset=iso-8859-1')).toBe('café'))
})
