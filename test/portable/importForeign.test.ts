import { describe, expect, it } from 'vitest'
import { openMemory, parseKey, ramStore } from '../../src/index.ts'
import { detectFormat, formatDetectionBytes, parseForeign } from '../../src/portable/format.ts'
import { importForeign } from '../../src/portable/importForeign.ts'

const chatgptNode = (id: string, parent: string | null, message: object | null, children: readonly string[] = []) => ({
  [id]: { id, parent, children, message },
})
const chatgptMessage = (role: string, parts: readonly unknown[], more: object = {}) => ({
  author: { role },
  content: { content_type: 'text', parts },
  create_time: 1_700_000_000.5,
  ...more,
})

const chatgpt = JSON.stringify([
  {
    title: 'Cats',
    create_time: 1_700_000_000,
    conversation_id: '8f3a2b1c-0000',
    current_node: 'n8',
    mapping: {
      ...chatgptNode('root', null, null, ['n1']),
      ...chatgptNode('n1', 'root', chatgptMessage('system', ['']), ['n2']),
      ...chatgptNode(
        'n2',
        'n1',
        chatgptMessage('user', ['About me'], { metadata: { is_visually_hidden_from_conversation: true } }),
        ['n3'],
      ),
      ...chatgptNode(
        'n3',
        'n2',
        chatgptMessage('user', [{ content_type: 'image_asset_pointer' }, 'Who is this?'], { content: undefined }),
        [],
      ),
      ...chatgptNode(
        'n4',
        'n2',
        {
          ...chatgptMessage('user', []),
          content: {
            content_type: 'multimodal_text',
            parts: [{ content_type: 'image_asset_pointer' }, 'Who is "mapping": this?'],
          },
        },
        ['n5'],
      ),
      ...chatgptNode(
        'n5',
        'n4',
        {
          ...chatgptMessage('assistant', []),
          recipient: 'python',
          content: { content_type: 'code', language: 'python', text: 'look()' },
        },
        ['n6'],
      ),
      ...chatgptNode('n6', 'n5', chatgptMessage('tool', ['a cat']), ['n7']),
      ...chatgptNode(
        'n7',
        'n6',
        { ...chatgptMessage('assistant', []), content: { content_type: 'thoughts', thoughts: [] } },
        ['n8'],
      ),
      ...chatgptNode('n8', 'n7', chatgptMessage('assistant', ['A cat, ', 'Miso.'], { create_time: null })),
    },
  },
  { title: 'Broken', mapping: null },
  'not a conversation',
])

const claude = JSON.stringify([
  {
    uuid: 'c0ffee',
    name: 'Trains',
    chat_messages: [
      {
        uuid: '1',
        sender: 'human',
        text: 'ignored',
        content: [{ type: 'text', text: 'When does it leave?' }],
        created_at: '2026-01-02T03:04:05.678Z',
        files: [{ file_name: 'map.png' }],
      },
      {
        uuid: '2',
        sender: 'assistant',
        text: 'At noon.',
        content: [],
        created_at: '2026-01-02T03:05:00Z',
        attachments: [{ file_name: 'table.txt', extracted_content: '12:00 north' }],
      },
      { uuid: '3', sender: 'assistant', text: '', content: [{ type: 'thinking', thinking: 'hm' }] },
    ],
  },
  {
    uuid: 'not a key!',
    name: '',
    chat_messages: [
      { uuid: 'a', parent_message_uuid: '00000000', sender: 'human', text: 'one', content: [] },
      { uuid: 'b', parent_message_uuid: 'a', sender: 'assistant', text: 'left behind', content: [] },
      { uuid: 'c', parent_message_uuid: 'a', sender: 'assistant', text: 'two', content: [] },
    ],
  },
])

const graph = [
  '{"type":"entity","name":"Miso","entityType":"cat","observations":["likes tuna","is grey"]}',
  '{"type":"entity","name":"Ann","entityType":"person","observations":[]}',
  'not json',
  '{"type":"relation","from":"Ann","to":"Miso","relationType":"owns"}',
  '{"type":"relation","from":"Bob","to":"Ann","relationType":"knows"}',
  '{"type":"note"}',
].join('\n')

describe('parseForeign and detectFormat', () => {
  it('with a ChatGPT export › parses the current branch', () => {
    expect(parseForeign('chatgpt', chatgpt)).toEqual({
      sessions: [
        {
          id: '8f3a2b1c-0000',
          title: 'Cats',
          messages: [
            { role: 'user', content: '[image]\nWho is "mapping": this?', at: 1_700_000_000_500 },
            { role: 'assistant', content: '```python\nlook()\n```', at: 1_700_000_000_500 },
            { role: 'assistant', content: 'A cat, \nMiso.', at: 1_700_000_000_500 },
          ],
        },
      ],
      knowledge: [],
      skipped: [
        { what: '1 message of 8f3a2b1c-0000', why: 'is an instruction of ChatGPT itself' },
        { what: '1 message of 8f3a2b1c-0000', why: 'is hidden in the conversation' },
        { what: '1 message of 8f3a2b1c-0000', why: 'is a tool call or a tool result' },
        { what: '1 message of 8f3a2b1c-0000', why: 'has content of the unsupported type "thoughts"' },
        { what: 'conversation 2', why: 'has no id or no messages' },
        { what: 'conversation 3', why: 'has no id or no messages' },
      ],
    })
  })

  it('with a ChatGPT export without a current node or with a cycle › parses the newest branch', () => {
    const mapping = {
      ...chatgptNode('a', 'b', chatgptMessage('user', ['first'], { create_time: 1 }), ['b', 'c']),
      ...chatgptNode('b', 'a', chatgptMessage('assistant', ['newest'], { create_time: 3 })),
      ...chatgptNode('c', 'a', chatgptMessage('assistant', ['older'], { create_time: 2 })),
    }
    const { sessions } = parseForeign('chatgpt', JSON.stringify({ id: 'x', mapping }))
    expect(sessions[0]?.messages.map(({ content }) => content)).toEqual(['first', 'newest'])
  })

  it('with a Claude export › parses the newest branch with attachments', () => {
    const { sessions, skipped } = parseForeign('claude', claude)
    expect(sessions).toEqual([
      {
        id: 'c0ffee',
        title: 'Trains',
        messages: [
          { role: 'user', content: 'When does it leave?\n\n[file: map.png]', at: 1_767_323_045_678 },
          { role: 'assistant', content: 'At noon.\n\n[attachment: table.txt]\n12:00 north', at: 1_767_323_100_000 },
        ],
      },
      {
        id: 'id-d3b9033d1f55af7b43558e83d20dfc12',
        messages: [
          { role: 'user', content: 'one' },
          { role: 'assistant', content: 'two' },
        ],
      },
    ])
    expect(skipped).toEqual([{ what: '1 message of c0ffee', why: 'is empty' }])
  })

  it('with OpenAI-style JSON Lines › parses conversations and messages', () => {
    const hello = { role: 'user', content: 'Hello' }
    const call = {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'c1', type: 'function', function: { name: 'look', arguments: '{}' } }],
    }
    const [training, again, empty] = [
      { messages: [hello, call, 'x', { role: 'function', content: 'y' }] },
      { messages: [hello, call] },
      { messages: [] },
    ]
    const { sessions, skipped } = parseForeign(
      'openai',
      [training, again, again, empty, 7].map((line) => JSON.stringify(line)).join('\r\n'),
    )
    expect(sessions.map(({ messages }) => messages)).toEqual([
      [hello, call],
      [hello, call],
    ])
    expect(skipped.map(({ why }) => why)).toEqual([
      'is not a message',
      'messages[3].role is "function"; it must be one of system, developer, user, assistant, tool.',
      'occurs twice',
      'has no messages to import',
      'is not a JSON object',
    ])
    expect(
      parseForeign('openai', `\ufeff${JSON.stringify(hello)}\n\n${JSON.stringify(hello)}\n`, 'support').sessions,
    ).toEqual([{ id: 'support', messages: [hello, hello] }])
  })

  it('with a server-memory file › parses knowledge with relations', () => {
    expect(parseForeign('server-memory', graph)).toEqual({
      sessions: [],
      knowledge: [
        { key: 'Miso', value: { entityType: 'cat', observations: ['likes tuna', 'is grey'] } },
        {
          key: 'Ann',
          value: { entityType: 'person', observations: [], relations: [{ relationType: 'owns', to: 'Miso' }] },
        },
        { key: 'Bob', value: { relations: [{ relationType: 'knows', to: 'Ann' }] } },
      ],
      skipped: [
        { what: 'line 3', why: 'is not a JSON object' },
        { what: 'line 6', why: 'is neither an entity nor a relation' },
      ],
    })
  })

  it('with the beginning of a file › detects the format', () => {
    expect(
      [chatgpt, claude, graph, '{"messages":[', ' {"role": "user"', '{"bundle":"threadkeep","hash'].map((text) =>
        detectFormat(text),
      ),
    ).toEqual(['chatgpt', 'claude', 'server-memory', 'openai', 'openai', 'bundle'])
    expect(
      detectFormat(Buffer.from(`\ufeff${claude}${'ü'.repeat(formatDetectionBytes)}`).subarray(0, formatDetectionBytes)),
    ).toBe('claude')
    for (const other of ['', 'PK\u0003\u0004', '[]', '{"a":1}', 'hello'])
      expect(() => detectFormat(other)).toThrow(
        "Unknown file format. Use one of: a Threadkeep bundle, ChatGPT's conversations.json, Claude's conversations.json, the JSON Lines of the MCP server-memory, OpenAI-style JSON Lines of messages. Give the file as it was downloaded, not an archive.",
      )
  })

  it('with JSON that is no list › throws', () =>
    expect(() => parseForeign('chatgpt', '7')).toThrow('it must hold a JSON list'))
})

describe('importForeign', () => {
  async function opened() {
    const store = ramStore()
    const memory = await openMemory({ store, clock: () => 5_000 })
    return { memory, store, scope: 'acme' }
  }
  const lines = (...contents: readonly string[]) =>
    parseForeign('openai', contents.map((content) => JSON.stringify({ role: 'user', content })).join('\n'), 'log')
  const now = 5_000

  it('twice › imports everything once', async () => {
    const into = await opened()
    const foreign = parseForeign('claude', claude)
    expect(await importForeign(into, foreign, { now })).toEqual({
      sessions: 2,
      messages: 4,
      knowledge: 0,
      unchanged: 0,
      skipped: foreign.skipped,
    })
    expect(await importForeign(into, foreign, { now: 6_000 })).toEqual({
      sessions: 0,
      messages: 0,
      knowledge: 0,
      unchanged: 2,
      skipped: foreign.skipped,
    })
    expect(await into.memory.transcript('acme:c0ffee')).toMatchObject([
      { at: 1_767_323_045_678, content: 'When does it leave?\n\n[file: map.png]' },
      { role: 'assistant' },
    ])
  })

  it('twice with tool calls and results › imports everything once', async () => {
    const into = await opened()
    const call = { name: 'look', arguments: '{"password":"hunter2-Xk9!"}' }
    const messages = [
      { role: 'user', content: 'Who is this?' },
      { role: 'assistant', content: null, tool_calls: [{ id: 'c1', type: 'function', function: call }] },
      { role: 'tool', tool_call_id: 'c1', content: 'a cat' },
    ]
    const foreign = parseForeign('openai', JSON.stringify({ messages }))
    expect(await importForeign(into, foreign, { now })).toMatchObject({ sessions: 1, messages: 3, skipped: [] })
    expect(await importForeign(into, foreign, { now })).toMatchObject({ sessions: 0, unchanged: 1, skipped: [] })
  })

  it('twice concurrently › imports everything once', async () => {
    const into = await opened()
    await Promise.all([importForeign(into, lines('a', 'b'), { now }), importForeign(into, lines('a', 'b'), { now })])
    expect((await into.memory.transcript('acme:log')).map(({ content }) => content)).toEqual(['a', 'b'])
  })

  it('with a conversation that has grown › continues it; with different messages › skips it', async () => {
    const into = await opened()
    const long = Array.from({ length: 1_200 }, (_, at) => `${at}`)
    await importForeign(into, lines(...long), { now })
    expect(await importForeign(into, lines(...long, 'more'), { now })).toMatchObject({
      sessions: 1,
      messages: 1,
      unchanged: 0,
    })
    await into.memory.append('acme:log', [{ role: 'user', content: 'here' }])
    expect(await importForeign(into, lines(...long, 'more'), { now })).toMatchObject({
      sessions: 0,
      messages: 0,
      unchanged: 1,
      skipped: [],
    })
    expect(await importForeign(into, lines(...long, 'more', 'there'), { now })).toMatchObject({
      sessions: 0,
      messages: 0,
      skipped: [{ what: 'acme:log', why: 'has different messages in the store' }],
    })
    expect((await into.memory.transcript('acme:log')).map(({ content }) => content)).toEqual([...long, 'more', 'here'])
  })

  it('with knowledge › stores it in the scope and replaces entries with the same key', async () => {
    const into = await opened()
    expect(await importForeign(into, parseForeign('server-memory', graph), { now })).toMatchObject({
      knowledge: 3,
      unchanged: 0,
    })
    const changed = parseForeign('server-memory', graph.replace('is grey', 'is black'))
    expect(await importForeign(into, changed, { now: 6_000 })).toMatchObject({ knowledge: 1, unchanged: 2 })
    const { derived } = await into.store.readHead(parseKey('acme'), 0)
    expect(derived.length).toBe(3)
    expect(derived).toContainEqual({
      kind: 'knowledge',
      id: 'import-17c7fd8325bfbf464aa51caac07cc569',
      at: 6_000,
      category: 'domain',
      key: 'Miso',
      value: { entityType: 'cat', observations: ['likes tuna', 'is black'] },
      confidence: 1,
      usedAt: 6_000,
      sources: [],
    })
  })

  it('when aborted › throws', async () => {
    const controller = new AbortController()
    const progress: number[] = []
    const stop = ({ sessions }: { sessions: number }) => {
      progress.push(sessions)
      controller.abort()
    }
    const into = await opened()
    await expect(
      importForeign(into, parseForeign('claude', claude), { now, signal: controller.signal, onProgress: stop }),
    ).rejects.toMatchObject({
      code: 'aborted',
    })
    expect([progress, (await into.store.list({ limit: 9 })).length]).toEqual([[1], 1])
  })
})
