import { crc32, deflateRawSync } from 'node:zlib'

/** Creates a minimal valid PDF with these lines on each page. */
export function createPdf(...pages: readonly (readonly string[])[]): Uint8Array {
  const contents = pages.map(
    (lines) =>
      `BT /F1 12 Tf 72 720 Td 14 TL ${lines.map((line) => `(${line.replace(/[\\()]/g, '\\$&')}) Tj T*`).join(' ')} ET`,
  )
  return createPdfFromStreams(
    contents.map((content) => ({ dictionary: `/Length ${content.length}`, bytes: Buffer.from(content) })),
  )
}

/** Creates a PDF with one page per content stream. */
export function createPdfFromStreams(
  contents: readonly { readonly dictionary: string; readonly bytes: Buffer }[],
): Uint8Array {
  const pageIds = contents.map((_, index) => 4 + 2 * index)
  const objects = new Map<number, Buffer>([
    [1, Buffer.from('<< /Type /Catalog /Pages 2 0 R >>')],
    [
      2,
      Buffer.from(`<< /Type /Pages /Count ${contents.length} /Kids [${pageIds.map((id) => `${id} 0 R`).join(' ')}] >>`),
    ],
    [3, Buffer.from('<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>')],
  ])
  for (const [index, { dictionary, bytes }] of contents.entries()) {
    const id = 4 + 2 * index
    const page = `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> /Contents ${id + 1} 0 R >>`
    objects.set(id, Buffer.from(page))
    objects.set(
      id + 1,
      Buffer.concat([Buffer.from(`<< ${dictionary} >>\nstream\n`), bytes, Buffer.from('\nendstream')]),
    )
  }
  const parts = [Buffer.from('%PDF-1.4\n')]
  const offsets: number[] = []
  for (const [id, body] of objects) {
    offsets.push(parts.reduce((sum, { length }) => sum + length, 0))
    parts.push(Buffer.concat([Buffer.from(`${id} 0 obj\n`), body, Buffer.from('\nendobj\n')]))
  }
  const start = parts.reduce((sum, { length }) => sum + length, 0)
  const table = offsets.map((offset) => `${`${offset}`.padStart(10, '0')} 00000 n \n`).join('')
  parts.push(
    Buffer.from(
      `xref\n0 ${offsets.length + 1}\n0000000000 65535 f \n${table}trailer\n<< /Size ${offsets.length + 1} /Root 1 0 R >>\n`,
    ),
  )
  return Buffer.concat([...parts, Buffer.from(`startxref\n${start}\n%%EOF\n`)])
}

/** Creates a ZIP archive of these entries. */
export function createZip(texts: Readonly<Record<string, string | Buffer>>): Uint8Array {
  const [files, table]: [Buffer[], Buffer[]] = [[], []]
  let offset = 0
  for (const [name, text] of Object.entries(texts)) {
    const bytes = Buffer.from(text)
    const packed = deflateRawSync(bytes)
    const commonFields = Buffer.alloc(26)
    commonFields.writeUInt16LE(20, 0)
    commonFields.writeUInt16LE(8, 4)
    commonFields.writeUInt32LE(crc32(bytes), 10)
    commonFields.writeUInt32LE(packed.length, 14)
    commonFields.writeUInt32LE(bytes.length, 18)
    commonFields.writeUInt16LE(name.length, 22)
    const directoryFields = Buffer.alloc(14)
    directoryFields.writeUInt32LE(offset, 10)
    const file = Buffer.concat([Buffer.from('PK\u0003\u0004'), commonFields, Buffer.from(name), packed])
    files.push(file)
    table.push(Buffer.concat([Buffer.from('PK\u0001\u0002\u0014\0'), commonFields, directoryFields, Buffer.from(name)]))
    offset += file.length
  }
  const end = Buffer.alloc(18)
  end.writeUInt16LE(table.length, 4)
  end.writeUInt16LE(table.length, 6)
  end.writeUInt32LE(Buffer.concat(table).length, 8)
  end.writeUInt32LE(offset, 12)
  return Buffer.concat([...files, ...table, Buffer.from('PK\u0005\u0006'), end])
}

const relationships = 'http://schemas.openxmlformats.org/package/2006/relationships'
const office = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships'
const words = 'http://schemas.openxmlformats.org/wordprocessingml/2006/main'

/** Creates a DOCX with this body; `prolog` is written before its root element. */
export const createDocx = (body: string, prolog = ''): Uint8Array =>
  createZip({
    '[Content_Types].xml':
      '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="xml" ContentType="application/xml"/></Types>',
    '_rels/.rels': `<Relationships xmlns="${relationships}"><Relationship Id="r1" Type="${office}/officeDocument" Target="word/document.xml"/></Relationships>`,
    'word/document.xml': `${prolog}<w:document xmlns:w="${words}"><w:body>${body}</w:body></w:document>`,
    'word/styles.xml': `<w:styles xmlns:w="${words}"><w:style w:type="paragraph" w:styleId="Heading1"><w:name w:val="heading 1"/></w:style></w:styles>`,
  })

/** Creates a paragraph or heading of a DOCX. */
export const docxParagraph = (text: string, isHeading = false): string =>
  `<w:p>${isHeading ? '<w:pPr><w:pStyle w:val="Heading1"/></w:pPr>' : ''}<w:r><w:t xml:space="preserve">${text}</w:t></w:r></w:p>`
