import { gzipSync } from 'node:zlib'
import { type FileKind, mediaTypes } from '../../../src/files/kind.ts'
import { chainStart, createChainLine } from '../../../src/portable/chain.ts'
import type { ForeignFormat } from '../../../src/portable/format.ts'
import { createDocx, createPdf, createPdfFromStreams, createZip, docxParagraph } from '../../files/fixtures.ts'
import { shapedText } from '../hostile.ts'
import type { Random } from '../random.ts'

/** Formats of other programs. The type names each of them, so that a new one fails here until it has samples. */
const hasForeignSamples: Readonly<Record<ForeignFormat, true>> = {
  chatgpt: true,
  claude: true,
  openai: true,
  'server-memory': true,
}
/** Formats of this program. */
const ownFormats = [
  'bundle',
  'encrypted bundle',
  'layout',
  'client keys',
  'store keys',
  'configuration',
  'prices',
] as const

export const foreignFormats = Object.keys(hasForeignSamples) as readonly ForeignFormat[]
/** Kinds of uploaded files. */
export const fileKinds = Object.keys(mediaTypes) as readonly FileKind[]
export type Format = FileKind | ForeignFormat | (typeof ownFormats)[number]
/** Everything that is parsed. */
export const formats: readonly Format[] = [...fileKinds, ...foreignFormats, ...ownFormats]

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
  readonly encryptedBundle: string
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
  'encrypted bundle': exported.encryptedBundle,
  layout: exported.layout,
  'client keys': toBytes(
    JSON.stringify({
      format: 'threadkeep-keys',
      version: 1,
      keys: [
        { id: 'GLkKvDCL', name: 'a', scopes: ['acme'], rights: 'use', createdAt: 1, sha256: 'a1'.repeat(32) },
        { id: 'GLkKvDCM', name: 'b', scopes: ['*'], rights: 'admin', createdAt: 2, sha256: 'b2'.repeat(32) },
      ],
    }),
  ),
  'store keys': `${'a1'.repeat(32)}\n${'B2'.repeat(32)}\n${Buffer.alloc(32, 7).toString('base64')}\n`,
  configuration: toBytes(
    JSON.stringify({
      listen: { port: 8080 },
      store: 'ram:',
      upstreams: [{ name: 'up', base: 'http://127.0.0.1:9/v1', key: 'env:KEY' }],
      profiles: { small: { extends: 'thread', budget: 2_000 } },
      templates: { support: { profile: 'support' } },
      limits: { bodyBytes: 1_000 },
    }),
  ),
  prices: toBytes(
    JSON.stringify({ asOf: '2026-11-01', models: { 'my-model*': { input: 0.5, cached: 0.05, output: 2 } } }),
  ),
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
  'encrypted bundle': [
    (random) =>
      `${
        createChainLine(chainStart, {
          bundle: 'threadkeep',
          version: 1,
          cipher: {
            name: 'aes-256-gcm',
            kdf: {
              name: 'scrypt',
              n: random.pick([2, 3, 0, -2, 2 ** 31, 2 ** 53, 1e308]),
              r: random.pick([8, 2 ** 30]),
              p: 1,
            },
            salt: 'a1'.repeat(random.pick([16, 0, 1_000_000])),
            nonce: 'b2'.repeat(random.pick([7, 0, 100_000])),
            check: 'c3'.repeat(32),
          },
        }).line
      }\n${'x'.repeat(random.int(0, 200_000))}`,
  ],
  'client keys': [
    (random) => '['.repeat(random.int(10, 300_000)),
    (random) => '{"keys":'.repeat(random.int(10, 50_000)),
  ],
  'store keys': [(random) => 'a1 '.repeat(random.int(10, 200_000)), (random) => 'a'.repeat(random.int(10, 1_000_000))],
  configuration: [(random) => '{"profiles":'.repeat(random.int(10, 50_000))],
  prices: [
    (random) =>
      JSON.stringify({
        asOf: '2026-11-01',
        models: Object.fromEntries(
          Array.from({ length: random.int(1, 5_000) }, (_, index) => [`*${index}*`.repeat(9), { input: 1, output: 1 }]),
        ),
      }),
  ],
  layout: [(random) => '{"entities":'.repeat(random.int(10, 100_000))],
}
