import { gzipSync } from 'node:zlib'
import { createDocx, createPdf, createPdfFromStreams, createZip, docxParagraph } from '../../files/fixtures.ts'
import { shapedText } from '../hostile.ts'
import type { Random } from '../random.ts'

/** Parsers, by the format they read. */
export const formats = [
  'pdf',
  'docx',
  'html',
  'csv',
  'json',
  'markdown',
  'text',
  'bundle',
  'chatgpt',
  'claude',
  'openai',
  'server-memory',
  'layout',
] as const
export type Format = (typeof formats)[number]

const toBytes = (bytes: Uint8Array | string): string =>
  typeof bytes === 'string' ? Buffer.from(bytes).toString('latin1') : Buffer.from(bytes).toString('latin1')

const lines = (...values: readonly unknown[]): string => values.map((value) => `${JSON.stringify(value)}\n`).join('')

const chatgpt = [
  {
    id: 'c1',
    title: 'Hello',
    current_node: 'n2',
    mapping: {
      n1: {
        id: 'n1',
        parent: null,
        children: ['n2'],
        message: {
          id: 'n1',
          author: { role: 'user' },
          create_time: 1,
          content: { content_type: 'text', parts: ['Hello'] },
        },
      },
      n2: {
        id: 'n2',
        parent: 'n1',
        children: [],
        message: {
          id: 'n2',
          author: { role: 'assistant' },
          create_time: 2,
          content: { content_type: 'text', parts: ['Hi'] },
        },
      },
    },
  },
]
const claude = [
  {
    uuid: 'u1',
    name: 'Hello',
    chat_messages: [
      {
        uuid: 'm1',
        sender: 'human',
        text: 'Hello',
        created_at: '2026-01-01T00:00:00Z',
        content: [{ type: 'text', text: 'Hello' }],
        attachments: [{ file_name: 'a.txt', extracted_content: 'x' }],
        files: [],
      },
      { uuid: 'm2', sender: 'assistant', text: 'Hi', created_at: '2026-01-01T00:00:01Z', parent_message_uuid: 'm1' },
    ],
  },
]

/** Small valid files, one byte per character. The bundle and the saved session are exported by the engine. */
export const samples = (exported: {
  readonly bundle: string
  readonly layout: string
}): Readonly<Record<Format, string>> => ({
  pdf: toBytes(createPdf(['Hello (world)', 'Second line'], ['Page two'])),
  docx: toBytes(
    createDocx(
      `${docxParagraph('Title', true)}${docxParagraph('Hello')}<w:tbl><w:tr><w:tc>${docxParagraph('a')}</w:tc></w:tr></w:tbl>`,
    ),
  ),
  html: toBytes(
    '<!doctype html><html><head><title>T</title><style>a{}</style></head><body><h1>A</h1><p>B &amp; <b>C</b></p><table><tr><td>1</td></tr></table><script>x</script></body></html>',
  ),
  csv: toBytes('name,age,note\n"Ann, A.",4,"a ""quoted"" text"\nBob,5,x\n'),
  json: toBytes('{"a":[1,2,{"b":"c"}],"d":null,"e":"text \\u00e9"}'),
  markdown: toBytes(
    '# Title\n\nText with `code` and [link](http://a).\n\n```ts\nconst a = 1\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n',
  ),
  text: toBytes('Hello.\nSecond line with café.\n'),
  bundle: exported.bundle,
  chatgpt: toBytes(JSON.stringify(chatgpt)),
  claude: toBytes(JSON.stringify(claude)),
  openai: toBytes(
    lines(
      {
        messages: [
          { role: 'user', content: 'Hello' },
          { role: 'assistant', content: 'Hi' },
        ],
      },
      { role: 'user', content: 'x' },
    ),
  ),
  'server-memory': toBytes(
    lines(
      { type: 'entity', name: 'Ann', entityType: 'person', observations: ['likes tea'] },
      { type: 'relation', from: 'Ann', to: 'Bob', relationType: 'knows' },
    ),
  ),
  layout: exported.layout,
})

/** Files that attack one format: bombs, deep nesting, cycles and false sizes. */
export const attacks: Readonly<Partial<Record<Format, readonly ((random: Random) => string)[]>>> = {
  pdf: [
    (random) =>
      toBytes(createPdf(['Hello'])).replace(
        '[4 0 R]',
        random.pick(['[2 0 R]', '[4 0 R '.repeat(9_999), '[99999999 0 R]', '[]']),
      ),
    (random) => toBytes(createPdf(['Hello'])).replace(/\/Length \d+/, `/Length ${random.pick([-1, 2 ** 31, 1e20, 0])}`),
    (random) => toBytes(createPdf(['Hello'])).replace(/\/Count \d+/, `/Count ${random.pick([-1, 2 ** 31, 1e9])}`),
    () =>
      toBytes(
        createPdfFromStreams([
          { dictionary: '/Length 10 /Filter [/FlateDecode /FlateDecode /LZWDecode]', bytes: Buffer.alloc(10, 1) },
        ]),
      ),
    (random) =>
      toBytes(
        createPdfFromStreams([{ dictionary: '/Length 50', bytes: Buffer.from('q '.repeat(random.int(1, 200_000))) }]),
      ),
    () => `%PDF-1.7\n1 0 obj\n${'<<'.repeat(50_000)}`,
    () => `%PDF-1.7\nxref\n0 99999999\ntrailer<</Size 99999999/Root 1 0 R/Prev 9>>\nstartxref\n9\n%%EOF`,
  ],
  docx: [
    (random) =>
      toBytes(
        createDocx(
          docxParagraph('&l9;'),
          `<!DOCTYPE l [<!ENTITY l0 "lol">${Array.from({ length: 9 }, (_, index) => `<!ENTITY l${index + 1} "${`&l${index};`.repeat(random.int(2, 12))}">`).join('')}]>`,
        ),
      ),
    () => toBytes(createDocx(docxParagraph('&x;'), '<!DOCTYPE d [<!ENTITY x SYSTEM "file:///etc/passwd">]>')),
    (random) => toBytes(createDocx('<w:p>'.repeat(random.int(100, 30_000)))),
    (random) => toBytes(createDocx('<w:tbl><w:tr><w:tc>'.repeat(random.int(100, 5_000)))),
    (random) => toBytes(createZip({ 'word/document.xml': Buffer.alloc(random.int(1, 60) * 1_000_000, 'a') })),
    (random) =>
      toBytes(
        createZip(
          Object.fromEntries(
            Array.from({ length: random.int(10, 3_000) }, (_, index) => [`word/document${index}.xml`, 'x']),
          ),
        ),
      ),
    () => toBytes(createZip({ '../../word/document.xml': '<a/>', '/etc/word/document.xml': '<a/>' })),
  ],
  html: [
    (random) => '<div>'.repeat(random.int(10, 100_000)),
    (random) => '<a '.repeat(random.int(10, 200_000)),
    (random) => '<!--'.repeat(random.int(10, 200_000)),
    (random) => '&'.repeat(random.int(10, 500_000)),
    (random) => `<p ${'a=b '.repeat(random.int(10, 100_000))}>`,
    (random) => '<table><tr><td>'.repeat(random.int(10, 20_000)),
  ],
  csv: [
    (random) => ','.repeat(random.int(10, 1_000_000)),
    (random) => '"'.repeat(random.int(10, 1_000_001)),
    (random) => 'a,\n'.repeat(random.int(10, 300_000)),
  ],
  json: [
    (random) => '['.repeat(random.int(10, 1_000_000)),
    (random) => '{"a":'.repeat(random.int(10, 200_000)),
    (random) => `{"a":${'9'.repeat(random.int(10, 1_000_000))}}`,
    (random) => `[${'0,'.repeat(random.int(10, 1_000_000))}0]`,
    () => '{"__proto__":{"a":1},"constructor":{"prototype":{}},"a":"\\ud800"}',
  ],
  markdown: [
    (random) => '#'.repeat(random.int(10, 500_000)),
    (random) => '```\n'.repeat(random.int(10, 200_000)),
    (random) => '> '.repeat(random.int(10, 200_000)),
  ],
  text: [(random) => toBytes(shapedText(random.int(10, 600_000), random))],
  bundle: [
    (random) => '{"a":'.repeat(random.int(10, 100_000)),
    (random) => gzipSync(Buffer.alloc(random.int(1, 50) * 1_000_000)).toString('latin1'),
    (random) => 'a'.repeat(random.int(10, 2_000_000)),
  ],
  chatgpt: [
    (random) =>
      `[{"id":"c","current_node":"a","mapping":{"a":{"id":"a","parent":"a","message":null},${'"b":{"parent":"a"},'.repeat(random.int(1, 20_000))}"c":{}}}]`,
    (random) => '['.repeat(random.int(10, 300_000)),
  ],
  claude: [
    (random) =>
      `[${'{"uuid":"u","chat_messages":[{"uuid":"a","parent_message_uuid":"a","sender":"human","text":"x"}]},'.repeat(random.int(1, 3_000))}{}]`,
  ],
  openai: [
    (random) => '{"role":"user","content":"x"}\n'.repeat(random.int(1, 5_000)),
    (random) => '{'.repeat(random.int(10, 300_000)),
  ],
  'server-memory': [
    (random) =>
      lines({
        type: 'entity',
        name: 'Ann',
        entityType: 'x',
        observations: Array.from({ length: random.int(1, 20_000) }, (_, index) => `o${index}`),
      }),
  ],
  layout: [(random) => '{"entities":'.repeat(random.int(10, 100_000))],
}
