import { describe, expect, it } from 'vitest'
import { decoded } from '../../src/files/decode.ts'
import { type Kind, kindOf } from '../../src/files/kind.ts'
import { defaultLimits } from '../../src/files/limits.ts'
import { read } from '../../src/files/read.ts'
import { docx, paragraph, pdf, zip } from './fixtures.ts'

const textOf = async (kind: Kind, content: string | Uint8Array, type?: string): Promise<string> =>
  (await read(kind, { name: 'x', bytes: Buffer.from(content), ...(type === undefined ? {} : { type }) }, defaultLimits))
    .text

describe('what a file is', () => {
  const kind = (name: string, content: string | Uint8Array, type?: string): Kind =>
    kindOf({ name, bytes: Buffer.from(content), ...(type === undefined ? {} : { type }) })

  it('is told by its bytes, then by its name, then by what the client says', () => {
    expect([kind('a.txt', pdf(['Hello'])), kind('a.bin', docx(paragraph('Hello')))]).toEqual(['pdf', 'docx'])
    expect(
      ['a.MD', 'a.htm', 'a.json', 'a.tsv', 'a.txt', 'a.py', 'LICENSE'].map((name) => kind(name, 'x', 'text/html')),
    ).toEqual(['markdown', 'html', 'json', 'csv', 'text', 'html', 'html'])
    expect(
      ['text/markdown', 'text/csv; header=present', 'application/json', 'image/png', undefined].map((type) =>
        kind('upload', 'x', type),
      ),
    ).toEqual(['markdown', 'csv', 'json', 'text', 'text'])
    expect(kind('page', '  <!DOCTYPE html><p>')).toBe('html')
  })
  it('may be nothing that can be read', () => {
    const png = Uint8Array.from({ length: 999 }, (_, at) => (at * 7919) % 256)
    const readable = 'text, Markdown, HTML, JSON, CSV, PDF and DOCX are read'
    expect(() => kind('a.txt', png)).toThrow(
      `The file is none that can be read: ${readable}. Convert it to one of these.`,
    )
    expect(() => kind('a.xlsx', zip({ 'xl/workbook.xml': '<a/>' }))).toThrow(
      `The file is an archive and not a DOCX; ${readable}. Upload what is in it.`,
    )
  })
})

describe('an encoding', () => {
  it('is that of the mark, the one told, or the one it looks like', () => {
    const wide = Buffer.from('café, “new”', 'utf16le')
    expect(decoded(Buffer.from('\ufeffcafé'))).toBe('café')
    expect(decoded(Buffer.concat([Buffer.from([0xff, 0xfe]), wide]))).toBe('café, “new”')
    expect(decoded(Buffer.concat([Buffer.from([0xfe, 0xff]), Buffer.from(wide).swap16()]))).toBe('café, “new”')
    expect([decoded(wide), decoded(Buffer.from(wide).swap16())]).toEqual(['café, “new”', 'café, “new”'])
    expect(decoded(Buffer.from('café', 'latin1'), 'latin1')).toBe('café')
  })
  it('that is wrong leaves marks, not an error', () => {
    expect(decoded(Buffer.from('café', 'latin1'))).toBe('caf\ufffd')
    expect(decoded(Buffer.from('café'), 'no-such-encoding')).toBe('café')
  })
  it('has one kind of line end', () => expect(decoded(Buffer.from('a\r\nb\rc\n'))).toBe('a\nb\nc\n'))
})

describe('the text of', () => {
  it('HTML is what is seen, with headings, lists, tables and code', async () =>
    expect(
      await textOf(
        'html',
        `<html><head><title>Shop</title><style>p{}</style></head><body><h1>Opening <b>hours</b></h1><p>Hello,\n <i>you</i>!</p>
        <ul><li>Mo<ul><li>early</ul><li>Tu</ul><ol start="3"><li>a<li>b</ol><table><tr><th>Item<th>Price<tr><td><p>Tea</p><td>3</table>
        <pre>if (a)\n  b()</pre><p hidden>no</p><p style="display: none">no</p><script>no()</script><div>Fish &amp; chips<br>End</div>`,
      ),
    ).toBe(
      '# Opening hours\n\nHello, you!\n\n- Mo\n  - early\n- Tu\n3. a\n4. b\n\n| Item | Price |\n| Tea | 3 |\n\n```\nif (a)\n  b()\n```\n\nFish & chips\nEnd',
    ))
  it('JSON is a line for each value, after its path, with numbers as they are written', async () => {
    expect(
      await textOf('json', '{"orders":[{"price":12,"to":"Ann\\nBo"},{}],"id":12345678901234567890,"a b":null,"e":[]}'),
    ).toBe(
      'orders[0].price: 12\norders[0].to: Ann\nBo\norders[1]: {}\nid: 12345678901234567890\n["a b"]: null\ne: []\n',
    )
    expect([await textOf('json', ' "just text" '), await textOf('json', '[true]')]).toEqual([
      'just text\n',
      '[0]: true\n',
    ])
  })
  it('JSON that is none is the text itself', async () => {
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
      expect(await textOf('json', text)).toBe(text)
  })
  it('CSV is a line for each row, every value after the name of its column', async () => {
    expect(await textOf('csv', 'item;price;note\nTea;3,20;"two\nlines"\nCoffee;4;;more\n')).toBe(
      'item: Tea; price: 3,20; note: two lines\nitem: Coffee; price: 4; column 4: more\n',
    )
    expect(await textOf('csv', 'a\tb\n1\t2\n')).toBe('a: 1; b: 2\n')
    expect(await textOf('csv', 'one line, and no table')).toBe('one line, and no table')
  })
  it('PDF is that of its pages, with words that were broken joined', async () =>
    expect(
      await read(
        'pdf',
        { name: 'x', bytes: pdf(['Refunds take four-', 'teen days (or less).'], [], ['The end.']) },
        defaultLimits,
      ),
    ).toEqual({
      text: 'Refunds take fourteen days (or less).\n\nThe end.\n\n',
      pages: [0, 39, 39],
      hasHeadings: false,
    }))
  it('DOCX has its headings and tables', async () => {
    const table = `<w:tbl><w:tr><w:tc>${paragraph('Tea')}</w:tc><w:tc>${paragraph('3.20')}</w:tc></w:tr></w:tbl>`
    expect(await textOf('docx', docx(`${paragraph('Returns', true)}${paragraph('Send it to Lisbon.')}${table}`))).toBe(
      '# Returns\n\nSend it to Lisbon.\n\n| Tea | 3.20 |',
    )
  })
  it('plain text is the text, in the encoding the client tells', async () =>
    expect(await textOf('text', Buffer.from('café', 'latin1'), 'text/plain; charset=iso-8859-1')).toBe('café'))
})
