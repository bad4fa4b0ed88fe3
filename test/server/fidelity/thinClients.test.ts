import { describe, expect } from 'vitest'
import { verifies } from '../../requirements/verifies.ts'
import { replyWith } from '../clients/modelServer.ts'
import { type Protocol, type Recorder, startRecorder } from './recorder.ts'
import { cacheMarker, citySchema, pdf, pdfUrl } from './sdkStacks.ts'

type Fields = Readonly<Record<string, unknown>>
type ThinClient = {
  readonly name: string
  readonly protocol: Protocol
  readonly path: string
  readonly listField: 'messages' | 'input'
  readonly fields: Fields
  /** New messages of the four requests; the second has the results of the tool calls in the first reply. */
  readonly requests: readonly (readonly unknown[])[]
  /** Reads the messages of a reply in the form in which a client sends them back. */
  // biome-ignore lint/suspicious/noExplicitAny: replies have the form of their protocol
  readReply(body: any): readonly unknown[]
}

const mapUrl = 'https://example.com/map.png'

const chat: ThinClient = {
  name: 'chat completions',
  protocol: 'openai',
  path: '/chat/completions',
  listField: 'messages',
  fields: { tools: [{ type: 'function', function: { name: 'weather', parameters: citySchema } }] },
  requests: [
    [{ role: 'user', name: 'ann', content: [{ type: 'text', text: 'Where is it warmer?', ...cacheMarker }] }],
    [{ role: 'tool', tool_call_id: 'call_1', content: [{ type: 'text', text: '21 °C' }] }],
    [
      {
        role: 'user',
        content: [
          { type: 'image_url', image_url: { url: mapUrl, detail: 'low' } },
          { type: 'text', text: 'What does the map show?' },
        ],
      },
    ],
    [{ role: 'user', content: 'Is that all?' }],
  ],
  readReply: ({ choices }) => [choices[0].message],
}

const messages: ThinClient = {
  name: 'messages',
  protocol: 'anthropic',
  path: '/v1/messages',
  listField: 'messages',
  fields: {
    max_tokens: 4_000,
    tools: [{ name: 'weather', input_schema: citySchema }],
    thinking: { type: 'enabled', budget_tokens: 1_024 },
  },
  requests: [
    [{ role: 'user', content: [{ type: 'text', text: 'Where is it warmer?', ...cacheMarker }] }],
    [
      {
        role: 'user',
        content: [{ type: 'tool_result', tool_use_id: 'call_1', content: [{ type: 'text', text: '21 °C' }] }],
      },
    ],
    [
      {
        role: 'user',
        content: [
          { type: 'image', source: { type: 'url', url: mapUrl } },
          { type: 'text', text: 'What does the map show?' },
        ],
      },
    ],
    [{ role: 'user', content: 'Is that all?' }],
  ],
  readReply: ({ role, content }) => [{ role, content }],
}

const responses: ThinClient = {
  name: 'Responses',
  protocol: 'openai',
  path: '/responses',
  listField: 'input',
  fields: {
    store: false,
    include: ['reasoning.encrypted_content'],
    tools: [{ type: 'function', name: 'weather', parameters: citySchema, strict: false }],
  },
  requests: [
    [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Where is it warmer?' }] }],
    [{ type: 'function_call_output', call_id: 'call_1', output: [{ type: 'input_text', text: '21 °C' }] }],
    [
      {
        role: 'user',
        content: [
          { type: 'input_image', image_url: mapUrl, detail: 'low' },
          { type: 'input_text', text: 'What does the map show?' },
        ],
      },
    ],
    [{ role: 'user', content: 'Is that all?' }],
  ],
  readReply: ({ output }) => output,
}

const replies = [
  replyWith({ thinking: 'Ask.', text: 'I look.', calls: [{ id: 'call_1', name: 'weather', input: { city: 'Rome' } }] }),
  replyWith({ thinking: 'Warm.', text: 'In Rome.' }),
  replyWith('It says hello.'),
  replyWith('Yes.'),
]

async function send(recorder: Recorder, client: ThinClient, list: readonly unknown[]): Promise<unknown> {
  const response = await fetch(`${recorder.url}${client.path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-threadkeep-history': 'thin' },
    body: JSON.stringify({ model: 'test-model', ...client.fields, [client.listField]: list }),
  })
  const body = (await response.json()) as Fields
  expect({ status: response.status, error: body.error ?? null }).toEqual({ status: 200, error: null })
  return body
}

describe('a client that sends only new messages', () => {
  for (const client of [chat, messages, responses])
    verifies(['F-02', 'F-04'], `${client.name} › memory sends its earlier turns as they were said`, async () => {
      await using recorder = await startRecorder(client.protocol)
      recorder.begin('a thin conversation', ...replies)
      const conversation: unknown[] = []
      for (const [index, list] of client.requests.entries()) {
        conversation.push(...list)
        const reply = await send(recorder, client, list)
        const [forwarded] = recorder.exchanges[index]?.forwarded ?? []
        expect(JSON.parse(forwarded?.text ?? '{}')[client.listField]).toEqual(conversation)
        conversation.push(...client.readReply(reply))
      }
      expect(conversation).toHaveLength(client === responses ? 11 : 8)
    })

  const documents: readonly (readonly [client: ThinClient, part: unknown])[] = [
    [chat, { type: 'file', file: { filename: 'report.pdf', file_data: pdfUrl } }],
    [
      messages,
      {
        type: 'document',
        source: { type: 'base64', media_type: 'application/pdf', data: pdf },
        title: 'report.pdf',
      },
    ],
    [responses, { type: 'input_file', filename: 'report.pdf', file_data: pdfUrl }],
  ]
  for (const [client, document] of documents)
    verifies(
      ['T-09', 'F-01'],
      `${client.name}, a document › reaches the model, and memory keeps its name, type, size and hash`,
      async () => {
        await using recorder = await startRecorder(client.protocol)
        recorder.begin('a document', replyWith('It says hello.'), replyWith('Yes.'))
        const question = [{ role: 'user', content: [document] }]
        await send(recorder, client, question)
        await send(recorder, client, [{ role: 'user', content: 'Is that all?' }])
        const lists = recorder.exchanges.map(
          ({ forwarded }) => JSON.parse(forwarded[0]?.text ?? '{}')[client.listField],
        )
        expect(lists[0]).toEqual(question)
        expect(lists[1]?.[0]).toEqual({
          role: 'user',
          content: expect.stringMatching(/^\[file report\.pdf, application\/pdf, 125 bytes, sha256 [0-9a-f]{16}\]$/),
        })
      },
    )

  verifies(['F-02', 'F-04'], 'messages, six turns with cache markers › at most four markers are sent', async () => {
    await using recorder = await startRecorder('anthropic')
    recorder.begin('markers', ...Array.from({ length: 6 }, () => replyWith('Yes.')))
    for (let turn = 1; turn <= 6; turn++)
      await send(recorder, messages, [
        { role: 'user', content: [{ type: 'text', text: `Question ${turn}`, ...cacheMarker }] },
      ])
    const texts = recorder.exchanges.map(({ forwarded }) => forwarded[0]?.text ?? '')
    expect(texts.map((text) => text.split('cache_control').length - 1)).toEqual([1, 2, 3, 4, 4, 4])
    expect(texts[5]?.indexOf('Question 3')).toBeLessThan(texts[5]?.indexOf('cache_control') ?? 0)
  })
})
