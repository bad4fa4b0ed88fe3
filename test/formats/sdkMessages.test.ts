import { modelMessageSchema } from 'ai'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Memory, type MessageInput, openMemory } from '../../src/index.ts'
import { findAnthropicFaults, findOpenaiFaults } from '../context/providerRules.ts'
import { verifies } from '../requirements/verifies.ts'

const key = 'acme:ann'
const imageUrl = 'https://example.com/cat.png'
const png = 'iVBORw0KGgoAAAANSUhEUg=='

async function open(...messages: readonly MessageInput[]): Promise<Memory> {
  const memory = await openMemory({ upkeep: false })
  await memory.append(key, messages)
  return memory
}

/** Stored messages as text, with the calls they make or answer. */
async function store(...messages: readonly MessageInput[]): Promise<readonly string[]> {
  await using memory = await open(...messages)
  return (await memory.transcript(key)).map(({ role, content, toolCalls, toolCallId }) =>
    [`${role}:`, content, ...(toolCalls ?? []).map((call) => `${call.id}=${call.name}${call.arguments}`), toolCallId]
      .filter(Boolean)
      .join(' '),
  )
}

describe('append of messages of the openai package', () => {
  verifies('P-01', 'append › of a completion with a refusal and null content › stores the refusal', async () => {
    const message = { role: 'assistant', content: null, refusal: 'I cannot help with that.' } as const
    expect(await store({ role: 'user', content: 'Help.' }, message)).toEqual([
      'user: Help.',
      'assistant: I cannot help with that.',
    ])
  })

  verifies('P-01', 'append › of tool calls and results › stores them, and the context repeats them', async () => {
    const messages = [
      { role: 'user', content: 'Weather in Bern?' },
      {
        role: 'assistant',
        content: null,
        refusal: null,
        annotations: [],
        tool_calls: [{ id: 'c1', type: 'function', function: { name: 'weather', arguments: '{"city":"Bern"}' } }],
      },
      { role: 'tool', tool_call_id: 'c1', content: [{ type: 'text', text: 'sunny' }] },
    ] as const satisfies readonly object[]
    expect(await store(...messages)).toEqual([
      'user: Weather in Bern?',
      'assistant: c1=weather{"city":"Bern"}',
      'tool: sunny c1',
    ])
    await using memory = await open(...messages)
    const { refusal: _refusal, annotations: _annotations, ...call } = messages[1]
    const expected = [messages[0], call, { ...messages[2], content: 'sunny' }]
    expect((await memory.context(key)).messages).toEqual(expected)
    expect((await memory.context(key, { provider: 'openai' })).messages).toEqual(expected)
  })

  verifies('P-01', 'append › of custom tool calls and deprecated functions › returns them in their form', async () => {
    const messages: MessageInput[] = [
      { role: 'user', content: 'Count the rows.' },
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'c1', type: 'custom', custom: { name: 'sql', input: 'SELECT 1' } }],
      },
      { role: 'tool', tool_call_id: 'c1', content: '1' },
      { role: 'assistant', content: null, function_call: { name: 'weather', arguments: '{}' } },
      { role: 'function', name: 'weather', content: 'sunny' },
    ]
    expect(await store(...messages)).toEqual([
      'user: Count the rows.',
      'assistant: c1=sql{"input":"SELECT 1"}',
      'tool: 1 c1',
      'assistant: weather=weather{}',
      'tool: sunny weather',
    ])
    await using memory = await open(...messages)
    expect((await memory.context(key, { provider: 'openai' })).messages).toEqual(messages)
  })

  verifies('P-01', 'append › of images and files › keeps addresses and leaves bytes out', async () => {
    const text = { type: 'text', text: 'What is this?' }
    const image = { type: 'image_url', image_url: { url: imageUrl } }
    const bytes = { type: 'image_url', image_url: { url: `data:image/png;base64,${png}` } }
    const message: MessageInput = { role: 'user', content: [text, image, bytes] }
    expect(await store(message)).toEqual(['user: What is this?\n[image]\n[image]'])
    await using memory = await open(message)
    expect((await memory.context(key, { provider: 'openai' })).messages).toEqual([
      { role: 'user', content: [text, image, { type: 'text', text: '[image]' }] },
    ])
    expect((await memory.context(key)).messages).toEqual([{ role: 'user', content: 'What is this?\n[image]\n[image]' }])
    expect(JSON.stringify(await memory.transcript(key))).not.toContain(png)
  })

  verifies('P-01', 'append › of reasoning, signatures and speech › returns what the server wants back', async () => {
    const call = { id: 'c1', type: 'function', function: { name: 'look', arguments: '{}' } } as const
    const signed = { ...call, extra_content: { google: { thought_signature: 'AbC+/9' } } }
    const reply = {
      role: 'assistant',
      content: null,
      reasoning_content: 'I should look.',
      tool_calls: [signed],
    } as const
    const speech = { id: 'audio_1', data: png, expires_at: 1, transcript: 'Here it is.' }
    const messages: MessageInput[] = [
      { role: 'user', content: 'Look.' },
      { ...reply, ...{ id: 7, createdAt: 1 } },
      { role: 'tool', tool_call_id: 'c1', content: 'nothing' },
      { role: 'assistant', content: null, audio: speech },
    ]
    await using memory = await open(...messages)
    expect((await memory.transcript(key)).map(({ content }) => content)).toEqual([
      'Look.',
      '',
      'nothing',
      'Here it is.',
    ])
    expect((await memory.context(key, { provider: 'openai' })).messages).toEqual([
      messages[0],
      reply,
      messages[2],
      { role: 'assistant', content: null, audio: { id: 'audio_1' } },
    ])
  })
})

describe('append of messages of @anthropic-ai/sdk', () => {
  const thinking = { type: 'thinking', thinking: 'The user wants the weather.', signature: 'EqQBCgIYAhIM' }
  const redacted = { type: 'redacted_thinking', data: 'EmwKAhgBEgy3va3pzix' }
  const call = { type: 'tool_use', id: 'toolu_1', name: 'weather', input: { city: 'Bern' } }
  const reply = {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'claude',
    content: [thinking, redacted, { type: 'text', text: 'Let me look.', citations: null }, call],
    stop_reason: 'tool_use',
    usage: { input_tokens: 1, output_tokens: 1 },
  } as const
  const result: MessageInput = {
    role: 'user',
    content: [
      { type: 'tool_result', tool_use_id: 'toolu_1', content: [{ type: 'text', text: 'no data' }], is_error: true },
      { type: 'text', text: 'Try again?' },
    ],
  }

  verifies('P-01', 'append › of a reply with thinking and a tool call › stores text and call', async () => {
    expect(await store({ role: 'user', content: 'Weather?' }, reply, result)).toEqual([
      'user: Weather?',
      'assistant: Let me look. toolu_1=weather{"city":"Bern"}',
      'tool: [error]\nno data toolu_1',
      'user: Try again?',
    ])
  })

  verifies('P-01', 'context › for Anthropic after such a reply › returns all blocks verbatim', async () => {
    await using memory = await open({ role: 'user', content: 'Weather?' }, reply, result)
    const { messages } = await memory.context(key, { provider: 'anthropic' })
    expect(messages).toEqual([
      { role: 'user', content: 'Weather?' },
      { role: 'assistant', content: reply.content },
      result,
    ])
    expect((await memory.context(key)).messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'user'])
  })

  verifies('P-01', 'append › of the content blocks of a reply › equals appending the reply', async () => {
    const question: MessageInput = { role: 'user', content: 'Weather?' }
    await using memory = await open(question, { role: 'assistant', content: reply.content }, result)
    const { messages } = await memory.context(key, { provider: 'anthropic' })
    expect(messages[1]).toEqual({ role: 'assistant', content: reply.content })
  })

  verifies('P-01', 'append › of text with citations › joins the text and returns the citations', async () => {
    const citation = { type: 'char_location', cited_text: 'The sky is blue.', document_index: 0 }
    const content = [
      { type: 'text', text: 'It is ', citations: null },
      { type: 'text', text: 'blue', citations: [citation] },
      { type: 'text', text: '.', citations: null },
    ]
    await using memory = await open({ role: 'user', content: 'Colour?' }, { role: 'assistant', content })
    expect((await memory.transcript(key))[1]?.content).toBe('It is blue.')
    expect((await memory.context(key, { provider: 'anthropic' })).messages[1]).toEqual({ role: 'assistant', content })
  })

  verifies('P-01', 'append › of images and cache markers › keeps addresses only', async () => {
    const image = { type: 'image', source: { type: 'url', url: imageUrl } }
    const bytes = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: png } }
    const marked = { type: 'text', text: 'What is this?', cache_control: { type: 'ephemeral' } }
    await using memory = await open({ role: 'user', content: [marked, image, bytes] })
    expect((await memory.transcript(key))[0]?.content).toBe('What is this?\n[image]\n[image]')
    expect((await memory.context(key, { provider: 'anthropic' })).messages).toEqual([
      { role: 'user', content: [{ type: 'text', text: 'What is this?' }, image, { type: 'text', text: '[image]' }] },
    ])
  })

  it.each([
    ['a call without an id', { type: 'tool_use', id: '', name: 'weather', input: {} }, 'messages[0].content[0].id'],
    ['a result without a call', { type: 'tool_result', content: '' }, 'messages[0].content[0].tool_use_id'],
  ])('append › of %s › is refused as bad-message', async (_, block, param) => {
    await expect(open({ role: 'assistant', content: [block] })).rejects.toMatchObject({ code: 'bad-message', param })
  })
})

describe('append of messages of the ai package', () => {
  const reasoning = {
    type: 'reasoning',
    text: 'I look.',
    providerOptions: { anthropic: { signature: 'EqQBCgIYAhIM' } },
  }
  const calls = [
    { type: 'tool-call', toolCallId: 'c1', toolName: 'weather', input: { city: 'Bern' } },
    { type: 'tool-call', toolCallId: 'c2', toolName: 'weather', input: { city: 'Basel' } },
  ]
  const replies: MessageInput[] = [
    { role: 'assistant', content: [reasoning, { type: 'text', text: 'Let me look.' }, ...calls] },
    {
      role: 'tool',
      content: [
        {
          type: 'tool-result',
          toolCallId: 'c1',
          toolName: 'weather',
          output: { type: 'json', value: { sky: 'blue' } },
        },
        { type: 'tool-result', toolCallId: 'c2', toolName: 'weather', output: { type: 'error-text', value: 'down' } },
      ],
    },
    {
      role: 'assistant',
      content: [{ type: 'text', text: 'Blue in Bern.' }],
    },
  ]

  verifies(
    'P-01',
    'append › of response messages with reasoning and tools › stores text, calls and results',
    async () => {
      expect(await store({ role: 'user', content: 'Weather?' }, ...replies)).toEqual([
        'user: Weather?',
        'assistant: Let me look. c1=weather{"city":"Bern"} c2=weather{"city":"Basel"}',
        'tool: {"sky":"blue"} c1',
        'tool: [error]\ndown c2',
        'assistant: Blue in Bern.',
      ])
    },
  )

  verifies(
    'P-01',
    'context › for the AI SDK after such messages › returns them and separates instructions',
    async () => {
      await using memory = await open(
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'Weather?' },
        ...replies,
      )
      const { instructions, messages } = await memory.context(key, { provider: 'ai-sdk' })
      expect(instructions).toEqual([{ role: 'system', content: 'Be brief.' }])
      expect(messages).toEqual([
        { role: 'user', content: 'Weather?' },
        replies[0],
        replies[1],
        { role: 'assistant', content: 'Blue in Bern.' },
      ])
    },
  )

  verifies('P-01', 'context › for the AI SDK of a history of another SDK › converts calls and results', async () => {
    await using memory = await open(
      { role: 'user', content: 'Weather?' },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'weather', input: { city: 'Bern' } }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'sunny' }] },
    )
    expect((await memory.context(key, { provider: 'ai-sdk' })).messages).toEqual([
      { role: 'user', content: 'Weather?' },
      {
        role: 'assistant',
        content: [{ type: 'tool-call', toolCallId: 'toolu_1', toolName: 'weather', input: { city: 'Bern' } }],
      },
      {
        role: 'tool',
        content: [
          {
            type: 'tool-result',
            toolCallId: 'toolu_1',
            toolName: 'weather',
            output: { type: 'text', value: 'sunny' },
          },
        ],
      },
    ])
  })

  verifies('P-01', 'append › of images and files › keeps addresses as text and leaves bytes out', async () => {
    const content = [
      { type: 'text', text: 'Compare.' },
      { type: 'image', image: new URL(imageUrl) },
      { type: 'image', image: new Uint8Array([1, 2, 3]) },
      { type: 'file', data: png, mediaType: 'image/png' },
      { type: 'file', data: { type: 'url', url: new URL(imageUrl) }, mediaType: 'image/png' },
    ]
    await using memory = await open({ role: 'user', content })
    expect((await memory.transcript(key))[0]?.content).toBe('Compare.\n[image]\n[image]\n[file]\n[file]')
    expect((await memory.context(key, { provider: 'ai-sdk' })).messages).toEqual([
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Compare.' },
          { type: 'image', image: imageUrl },
          { type: 'text', text: '[image]' },
          { type: 'text', text: '[file]' },
          { type: 'file', data: { type: 'url', url: imageUrl }, mediaType: 'image/png' },
        ],
      },
    ])
  })

  it('append › of values that JSON cannot express › is refused as bad-message', async () => {
    const circular: Record<string, unknown> = {}
    circular.self = circular
    const deep = JSON.parse(`${'['.repeat(5_000)}${']'.repeat(5_000)}`) as unknown
    for (const input of [{ big: 1n }, circular, { deep }])
      for (const block of [
        { type: 'tool-call', toolCallId: 'c1', toolName: 'count', input, providerOptions: {} },
        { type: 'tool_use', id: 'c1', name: 'count', input, caller: input },
        { type: 'image_url', image_url: input },
      ])
        await expect(open({ role: 'assistant', content: [block] })).rejects.toMatchObject({ code: 'bad-message' })
  })

  it('append › of any values › stores them or is refused as bad-message', async () => {
    const word = fc.constantFrom(
      'text',
      'image',
      'file',
      'tool_use',
      'tool_result',
      'thinking',
      'tool-call',
      'tool-result',
    )
    const part = fc.dictionary(
      fc.constantFrom(
        'type',
        'text',
        'id',
        'name',
        'input',
        'source',
        'content',
        'toolCallId',
        'output',
        'data',
        'image',
      ),
      fc.oneof(word, fc.jsonValue(), fc.array(fc.record({ type: word, text: fc.string() }))),
    )
    const message = fc.record(
      {
        role: fc.constantFrom('user', 'assistant', 'tool', 'system', 'function', 'developer'),
        content: fc.oneof(fc.string(), fc.constant(null), fc.array(fc.oneof(part, fc.record({ type: word })))),
        tool_calls: fc.oneof(fc.jsonValue(), fc.array(fc.record({ id: fc.string(), function: fc.jsonValue() }))),
        refusal: fc.jsonValue(),
        audio: fc.jsonValue(),
        reasoning_content: fc.jsonValue(),
        providerOptions: fc.jsonValue(),
        tool_call_id: fc.string(),
      },
      { requiredKeys: ['role'] },
    )
    await using memory = await openMemory({ upkeep: false })
    await fc.assert(
      fc.asyncProperty(message, async (value) => {
        try {
          await memory.append(key, [value as object as MessageInput])
        } catch (error) {
          expect(error).toMatchObject({ code: 'bad-message' })
        }
        for (const provider of [undefined, 'openai', 'anthropic', 'ai-sdk'] as const)
          await memory.context(key, { provider, budget: 4_000 } as { provider: 'openai' })
      }),
      { numRuns: 100 },
    )
  })
})

describe('context', () => {
  const exchange: MessageInput[] = [
    { role: 'user', content: 'Weather?' },
    {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: 'The password is hunter22hunter.', signature: 'EqQB' },
        { type: 'tool_use', id: 'toolu_1', name: 'weather', input: { city: 'Bern' } },
      ],
    },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'sunny' }] },
  ]

  it.each([undefined, 'openai', 'anthropic', 'ai-sdk'] as const)(
    'for %s › changed by the caller › does not change later contexts',
    async (provider) => {
      await using memory = await open(...exchange)
      const build = (): Promise<{ readonly messages: readonly unknown[] }> =>
        memory.context(key, { provider } as { provider: 'openai' })
      expect(JSON.stringify(await memory.transcript(key))).not.toContain('hunter22')
      const before = structuredClone((await build()).messages)
      const change = (value: unknown): void => {
        if (typeof value !== 'object' || value === null) return
        Object.values(value).forEach(change)
        if (Array.isArray(value)) value.push('changed')
        else Object.assign(value, { changed: true })
      }
      change((await build()).messages)
      expect((await build()).messages).toEqual(before)
    },
  )

  verifies('P-01', 'context › of one session in the formats of three SDKs › is valid for each of them', async () => {
    await using memory = await open(
      { role: 'system', content: 'Be brief.' },
      ...exchange,
      { role: 'assistant', content: 'Sunny.' },
      { role: 'user', content: [{ type: 'image_url', image_url: { url: imageUrl } }] },
      {
        role: 'assistant',
        content: null,
        reasoning_content: 'Look it up.',
        tool_calls: [
          { id: 'call.1', type: 'function', function: { name: 'look_up', arguments: '{"a":1}' } },
          { id: 'call.2', type: 'custom', custom: { name: 'sql', input: 'SELECT 1' } },
        ],
      },
      { role: 'tool', tool_call_id: 'call.1', content: 'one' },
      { role: 'tool', tool_call_id: 'call.2', content: 'two' },
      { role: 'assistant', content: 'Both found.' },
      { role: 'user', content: 'And now?' },
      {
        role: 'assistant',
        content: [
          { type: 'reasoning', text: 'Again.' },
          { type: 'tool-call', toolCallId: 'c1', toolName: 'weather', input: {} },
        ],
      },
      {
        role: 'tool',
        content: [
          { type: 'tool-result', toolCallId: 'c1', toolName: 'weather', output: { type: 'json', value: null } },
        ],
      },
      { role: 'user', content: 'Thanks.' },
    )
    const openai = await memory.context(key, { provider: 'openai' })
    const anthropic = await memory.context(key, { provider: 'anthropic' })
    const { instructions, messages } = await memory.context(key, { provider: 'ai-sdk' })
    expect(findOpenaiFaults((await memory.context(key)).messages)).toEqual([])
    expect(findAnthropicFaults(anthropic)).toEqual([])
    expect(JSON.stringify(anthropic.messages)).toContain('"signature":"EqQB"')
    expect(
      openai.messages
        .flatMap((message) => ('tool_calls' in message ? message.tool_calls : []))
        .map((call) => call?.type),
    ).toEqual(['function', 'function', 'custom', 'function'])
    for (const message of [...instructions, ...messages])
      expect(modelMessageSchema.safeParse(message).success).toBe(true)
  })

  it('of messages with reasoning › under a small budget › spends what the originals cost', async () => {
    await using memory = await open(...exchange)
    const { ledger } = await memory.context(key, { provider: 'anthropic' })
    await using plain = await open(...(exchange.map((message) => ({ ...message, content: 'x' })) as MessageInput[]))
    expect(ledger.spent).toBeGreaterThan((await plain.context(key, { provider: 'anthropic' })).ledger.spent)
  })
})
