import { openMemory } from '../../../src/index.ts'
import type { Memory } from '../../../src/memory.ts'
import type { ProbeClient } from '../stalls/stallProbe.ts'

/** Sends requests of a structure and of about `bytes` bytes; `session` has not been used before. */
export type Structure = (client: ProbeClient, bytes: number, session: string) => Promise<unknown>

const repeat = <T>(count: number, create: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => create(index))
const user = (content: unknown) => ({ role: 'user', content })
const chat = (session: string): string => `/v1/${session}/chat/completions`
const small = { 'x-threadkeep-template': 'small' }
const thin = { 'x-threadkeep-history': 'thin' }
/** Messages and different field names accepted in one request. */
const maxMessages = 10_000
const maxNames = 23_000

/** Text of words that differ. */
function words(characters: number): string {
  const parts: string[] = []
  for (let length = 0, index = 0; length < characters; index++) {
    const word = `entry${(index * 7_919) % 10_007} `
    parts.push(word)
    length += word.length
  }
  return parts.join('').slice(0, characters)
}

/** Just short enough for the trigram index of the graph. */
const longObservationCharacters = 8_100

/** Letters in an order that hardly repeats a trigram. */
function letters(count: number, seed: number): string {
  let state = seed + 1
  return Array.from({ length: count }, () => {
    state = (state * 48_271) % 2_147_483_647
    return String.fromCharCode(97 + (state % 26))
  }).join('')
}

/** As many elements of about `size` bytes as fit into `bytes`, at most `max`; larger ones if `max` is reached. */
function fill<T>(bytes: number, size: number, max: number, create: (index: number, padding: string) => T): T[] {
  const count = Math.max(1, Math.min(max, Math.floor(bytes / size)))
  const padding = words(Math.max(0, Math.floor(bytes / count) - size))
  return repeat(count, (index) => create(index, padding))
}

/** Sends a conversation and, as a client that keeps its own history, sends it again with the next question. */
const twice =
  (path: (session: string) => string, create: (bytes: number) => readonly unknown[], rest: object = {}): Structure =>
  async (client, bytes, session) => {
    const messages = create(bytes)
    const body = (list: readonly unknown[]) => ({ model: 'gpt-4o', ...rest, messages: list })
    await client.post(path(session), body(messages))
    await client.post(path(session), body([...messages, { role: 'assistant', content: 'Fine.' }, user('And then?')]))
  }

const tiny = (bytes: number) => fill(bytes, 34, maxMessages - 2, (index, padding) => user(`m${index}${padding}`))
const alternating = (bytes: number) =>
  fill(bytes, 42, maxMessages - 3, (index, padding) => ({
    role: index % 2 === 0 ? 'user' : 'assistant',
    content: `m${index}${padding}`,
  }))
/** Line breaks take two bytes in JSON. */
const lineBreaks = (bytes: number) => [
  ...fill(bytes, 124_000, maxMessages - 3, () => ({ role: 'assistant', content: `x${'\n'.repeat(61_900)}` })),
  user('Hello'),
]
const toolTurns = (bytes: number) => [
  user('Run them all.'),
  ...fill(bytes, 200, 4_990, (index, padding) => [
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: `c${index}`, type: 'function', function: { name: 'run', arguments: `{"n":${index}}` } }],
    },
    { role: 'tool', tool_call_id: `c${index}`, content: `r${index}${padding}` },
  ]).flat(),
]
const manyCalls = (bytes: number) => {
  const made = fill(bytes, 190, 4_000, (index, padding) => [index, padding] as const)
  return [
    user('Run them all.'),
    {
      role: 'assistant',
      content: null,
      tool_calls: made.map(([index]) => ({
        id: `c${index}`,
        type: 'function',
        function: { name: 'run', arguments: `{"n":${index}}` },
      })),
    },
    ...made.map(([index, padding]) => ({ role: 'tool', tool_call_id: `c${index}`, content: `r${index}${padding}` })),
  ]
}
const toolBlocks = (bytes: number) =>
  fill(bytes, 200, 4_990, (index, padding) => [
    { role: 'assistant', content: [{ type: 'tool_use', id: `t${index}`, name: 'run', input: { index } }] },
    user([{ type: 'tool_result', tool_use_id: `t${index}`, content: `r${index}${padding}` }]),
  ]).flat()
const calls = (bytes: number) =>
  fill(bytes, 180, 4_900, (index, padding) => [
    { type: 'function_call', call_id: `c${index}`, name: 'run', arguments: `{"n":${index}}` },
    { type: 'function_call_output', call_id: `c${index}`, output: `r${index}${padding}` },
  ]).flat()
/** Fields of an object, up to the limit of different names. */
const fields = (bytes: number, max = maxNames) =>
  Object.fromEntries(fill(bytes, 14, max, (index, padding) => [`f${index}`, padding === '' ? index : padding]))
const nested = (levels: number, leaf: unknown): unknown =>
  repeat(levels, (index) => index).reduce((inner, index) => ({ [`level${index}`]: inner }), leaf)
const tools = (bytes: number) =>
  fill(bytes, 250, 2_000, (index, padding) => ({
    type: 'function',
    function: {
      name: `tool_${index}`,
      description: `Runs it. ${padding}`,
      parameters: {
        type: 'object',
        properties: { path: { type: 'string' }, count: { type: 'integer' } },
        required: ['path'],
      },
    },
  }))
const base64 = (bytes: number): string => 'iVBORw0KGgoAAAANSUhEUg'.repeat(Math.ceil(bytes / 22)).slice(0, bytes)
const scopeOf = (session: string): string => session.split(':')[0] as string
const secretFields = (bytes: number) =>
  Object.fromEntries(fill(bytes, 26, 19_000, (index, padding) => [`password${index}`, `v${index}${padding}`]))
const nestedSecrets = (bytes: number) =>
  fill(bytes, 700, 450, (index, padding) => nested(40, `password${index}${padding}`))

/** Metadata of a session may have somewhat more characters. */
const maxMetadataBytes = 30_000

/** Largest bundle that a server takes by default. */
const maxBundleBytes = 20_000_000

/** Creates a session and imports its bundle into another tenant, twice. */
const importTwice =
  (create: (memory: Memory, bytes: number) => Promise<unknown>): Structure =>
  async (client, bytes, session) => {
    await using memory = await openMemory({ upkeep: false })
    await create(memory, Math.min(bytes, 0.7 * maxBundleBytes))
    const chunks: Uint8Array[] = []
    for await (const chunk of memory.export()) chunks.push(chunk)
    const bundle = Buffer.concat(chunks).toString()
    for (const existing of ['refuse', 'skip'])
      await client.upload(`/api/scopes/${scopeOf(session)}/import?existing=${existing}`, 'bundle.jsonl', bundle)
  }
const appendAll = async (memory: Memory, messages: readonly { readonly role: string; readonly content: unknown }[]) =>
  memory.append('bundle:s', messages as Parameters<Memory['append']>[1])

export const structures: Readonly<Record<string, Structure>> = {
  'chat, tiny messages': twice(chat, tiny),
  'chat, tiny messages, small budget': async (client, bytes, session) => {
    await client.post(chat(session), { model: 'gpt-4o', messages: alternating(bytes) }, small)
    await client.post(chat(session), { model: 'gpt-4o', messages: [user('And then?')] }, { ...small, ...thin })
  },
  'chat, alternating': twice(chat, alternating),
  'chat, replies of line breaks': twice(chat, lineBreaks),
  'chat, replies of line breaks, without memory': async (client, bytes) =>
    client.post('/v1/chat/completions', { model: 'gpt-4o', messages: lineBreaks(bytes) }),
  'chat, other history': async (client, bytes, session) => {
    const messages = alternating(bytes)
    await client.post(chat(session), { model: 'gpt-4o', messages: [...messages, user('And then?')] })
    const edited = messages.map((message, index) =>
      index % 3 === 0 ? { ...message, content: `${message.content} edited` } : message,
    )
    await client.post(chat(session), { model: 'gpt-4o', messages: [...edited, user('And now?')] })
  },
  'chat, tool turns': twice(chat, toolTurns),
  'chat, one reply with many calls': twice(chat, manyCalls),
  'chat, one reply with many calls, once': async (client, bytes, session) =>
    client.post(chat(session), { model: 'gpt-4o', messages: manyCalls(bytes) }),
  'chat, many parts': twice(chat, (bytes) => [
    user(fill(bytes, 40, 4_000, (index, padding) => ({ type: 'text', text: `part ${index}${padding}` }))),
  ]),
  'chat, messages with parts': twice(chat, (bytes) =>
    fill(bytes, 90, 9_000, (index, padding) => user([{ type: 'text', text: `part ${index}${padding}` }])),
  ),
  'chat, many tools': async (client, bytes, session) =>
    client.post(chat(session), { model: 'gpt-4o', messages: [user('Hello')], tools: tools(bytes) }),
  'chat, wide metadata': async (client, bytes, session) =>
    client.post(chat(session), { model: 'gpt-4o', messages: [user('Hello')], metadata: fields(bytes) }),
  'chat, wide part': twice(chat, (bytes) => [
    user([
      { type: 'text', text: 'Hello' },
      { type: 'extra', data: fields(bytes) },
    ]),
  ]),
  'chat, deep part': twice(chat, (bytes) => [
    user([
      { type: 'text', text: 'Hello' },
      ...fill(bytes, 900, 1_500, () => ({ type: 'extra', data: nested(50, 'x') })),
    ]),
  ]),
  'chat, numbers': twice(chat, (bytes) => [
    user([
      { type: 'text', text: 'Hello' },
      { type: 'extra', data: fill(bytes, 7, 490_000, (index) => index * 11) },
    ]),
  ]),
  'chat, tool arguments of many names': twice(chat, (bytes) => [
    user('Run it.'),
    {
      role: 'assistant',
      content: null,
      tool_calls: [
        {
          id: 'c1',
          type: 'function',
          function: {
            name: 'run',
            arguments: JSON.stringify(
              Object.fromEntries(
                fill(bytes, 24, maxNames, (index, padding) => [`password${index}`, `v${index}${padding}`]),
              ),
            ),
          },
        },
      ],
    },
    { role: 'tool', tool_call_id: 'c1', content: 'done' },
  ]),
  'chat, one text': twice(chat, (bytes) => [user(words(bytes))]),
  'chat, image': twice(chat, (bytes) => [
    user([
      { type: 'text', text: 'Look.' },
      { type: 'image_url', image_url: { url: `data:image/png;base64,${base64(bytes)}` } },
    ]),
  ]),
  'chat, long reply': async (client, bytes, session) => {
    client.setReply(words(Math.min(bytes, 7_900_000)))
    await client
      .post(chat(session), { model: 'gpt-4o', messages: [user('Hello')] })
      .finally(() => client.setReply('Fine.'))
  },
  'chat, without memory': async (client, bytes) =>
    client.post('/v1/chat/completions', { model: 'gpt-4o', messages: alternating(bytes) }),
  'chat, stream': async (client, bytes, session) =>
    client.post(chat(session), {
      model: `stream-${Math.min(100_000, Math.floor(bytes / 10))}`,
      stream: true,
      messages: [user('Hello')],
    }),
  'responses, items': async (client, bytes, session) => {
    const input = fill(bytes, 60, maxMessages - 1, (index, padding) => ({
      type: 'message',
      role: index % 2 === 0 ? 'user' : 'assistant',
      content: `m${index}${padding}`,
    }))
    await client.post(`/v1/${session}/responses`, { model: 'gpt-4o', input })
    await client.post(`/v1/${session}/responses`, { model: 'gpt-4o', input: [...input.slice(2), user('And then?')] })
  },
  'responses, calls': async (client, bytes, session) => {
    const input = [user('Run them.'), ...calls(bytes)]
    await client.post(`/v1/${session}/responses`, { model: 'gpt-4o', input })
    await client.post(`/v1/${session}/responses`, { model: 'gpt-4o', input: [...input, user('And then?')] })
  },
  'messages, tiny': twice((session) => `/v1/${session}/messages`, alternating, { max_tokens: 100 }),
  'messages, tool blocks': twice((session) => `/v1/${session}/messages`, toolBlocks, { max_tokens: 100 }),
  'messages, document': twice(
    (session) => `/v1/${session}/messages`,
    (bytes) => [
      user([
        { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: base64(bytes) } },
        { type: 'text', text: 'Read it.' },
      ]),
    ],
    { max_tokens: 100 },
  ),
  embeddings: async (client, bytes) =>
    client.post('/v1/embeddings', {
      model: 'e',
      input: fill(bytes, 12, 90_000, (index, padding) => `t${index}${padding}`),
    }),
  'api, knowledge': async (client, bytes, session) =>
    client.post(`/api/scopes/${scopeOf(session)}/knowledge`, {
      category: 'domain',
      key: 'wide',
      value: fields(bytes, 19_000),
    }),
  'api, knowledge, nested names': async (client, bytes, session) =>
    client.post(`/api/scopes/${scopeOf(session)}/knowledge`, {
      category: 'domain',
      key: 'deep',
      value: nestedSecrets(bytes),
    }),
  'api, knowledge, secret names': async (client, bytes, session) =>
    client.post(`/api/scopes/${scopeOf(session)}/knowledge`, {
      category: 'domain',
      key: 'secrets',
      value: secretFields(bytes),
    }),
  'api, metadata': async (client, bytes, session) =>
    client.post('/api/sessions', { key: session, metadata: fields(Math.min(bytes, maxMetadataBytes), 19_000) }),
  'api, metadata, nested names': async (client, bytes, session) =>
    client.post('/api/sessions', { key: session, metadata: nestedSecrets(Math.min(bytes, maxMetadataBytes)) }),
  'api, metadata, secret names': async (client, bytes, session) =>
    client.post('/api/sessions', { key: session, metadata: secretFields(Math.min(bytes, maxMetadataBytes)) }),
  'api, record, secret names': async (client, bytes, session) => {
    await client.post(chat(session), { model: 'gpt-4o', messages: [user('Hello')] })
    const values = fill(Math.min(bytes, 700_000), 26, 200, (index, padding) => [`password${index}`, `v${padding}`])
    await client.post(`/api/sessions/${session}/record`, {
      important_data: { user_preferences: Object.fromEntries(values) },
    })
  },
  'api, import, tiny messages': importTwice((memory, bytes) =>
    appendAll(
      memory,
      fill(bytes, 350, maxMessages, (index, padding) => user(`m${index}${padding}`)),
    ),
  ),
  'api, import, long messages': importTwice((memory, bytes) =>
    appendAll(memory, [user(words(bytes / 2)), user(words(bytes / 2))]),
  ),
  'api, import, knowledge of secret names': importTwice((memory, bytes) =>
    memory.remember('bundle', { category: 'domain', key: 'secrets', value: secretFields(bytes) }),
  ),
  'api, import, metadata': importTwice((memory, bytes) =>
    memory.setMetadata('bundle:s', { metadata: fields(Math.min(bytes, maxMetadataBytes), 19_000) }),
  ),
  'mcp, save messages': async (client, bytes) => {
    const messages = fill(bytes, 42, maxMessages, (index, padding) => ({
      role: index % 2 === 0 ? 'user' : 'assistant',
      content: `m${index}${padding}`,
    }))
    await client.callTool('save_session', { messages })
    await client.callTool('restore_session', { tokenBudget: 2_000 })
  },
  'mcp, append messages': async (client, bytes) =>
    client.callTool('append_messages', {
      messages: fill(bytes, 34, maxMessages, (index, padding) => user(`m${index}${padding}`)),
    }),
  'mcp, entities': async (client, bytes, session) => {
    await client.callTool('create_entities', {
      entities: fill(bytes, 100, 9_000, (index, padding) => ({
        name: `${scopeOf(session)} ${index}`,
        entityType: 'note',
        observations: [`o${index}${padding}`],
      })),
    })
    await client.callTool('search_nodes', { query: 'o17' })
  },
  'mcp, observations': async (client, bytes, session) => {
    const name = scopeOf(session)
    await client.callTool('create_entities', { entities: [{ name, entityType: 'note', observations: ['first'] }] })
    await client.callTool('add_observations', {
      observations: [
        { entityName: name, contents: fill(bytes, 12, 49_000, (index, padding) => `o${index}${padding}`) },
      ],
    })
    await client.callTool('open_nodes', { names: [name] })
  },
  'mcp, relations': async (client, bytes, session) => {
    const name = scopeOf(session)
    await client.callTool('create_entities', {
      entities: repeat(100, (index) => ({ name: `${name} ${index}`, entityType: 'note', observations: [] })),
    })
    await client.callTool('create_relations', {
      relations: fill(bytes, 80, 10_000, (index) => ({
        from: `${name} ${index % 100}`,
        to: `${name} ${Math.floor(index / 100)}`,
        relationType: 'knows',
      })),
    })
  },
  'mcp, deletions': async (client, bytes, session) => {
    const names = repeat(4_000, (index) => `${scopeOf(session)} ${index}`)
    await client.callTool('create_entities', {
      entities: names.map((name) => ({ name, entityType: 'note', observations: [`o ${name}`] })),
    })
    await client.callTool('delete_observations', {
      deletions: names.map((name) => ({ entityName: name, observations: [`o ${name}`] })),
    })
    await client.callTool('delete_entities', {
      entityNames: [...names, ...fill(bytes, 20, 40_000, (index, padding) => `other ${index}${padding}`)],
    })
  },
  'mcp, long observations, deleted': async (client, bytes, session) => {
    const name = scopeOf(session)
    const contents = repeat(Math.floor(bytes / longObservationCharacters), (index) =>
      letters(longObservationCharacters, index),
    )
    await client.callTool('create_entities', { entities: [{ name, entityType: 'note', observations: contents }] })
    await client.callTool('delete_observations', { deletions: [{ entityName: name, observations: contents }] })
  },
  'errors, long metadata': async (client, bytes, session) => {
    await client.post('/api/sessions', { key: session, metadata: secretFields(bytes) })
    await client.post('/api/sessions', { key: session, metadata: nestedSecrets(bytes) })
  },
  'errors, long values': async (client, bytes, session) => {
    const long = '\ud83d'.repeat(bytes / 6)
    await client.post(chat(session), { model: 'gpt-4o', messages: [{ role: long, content: 'Hello' }] })
    await client.post(`/v1/${session}/responses`, { model: 'gpt-4o', input: [{ role: long, content: 'Hello' }] })
    await client.post(`/v1/${session}/messages`, {
      model: 'c',
      max_tokens: 1,
      messages: [{ role: long, content: 'x' }],
    })
    await client.post(chat(session), { model: words(bytes), messages: [user('Hello')] })
  },
  'mcp, errors': async (client, bytes) => {
    await client.callTool('create_entities', { entities: fill(bytes, 2, 40_000, () => 1) })
    await client.callTool('add_observations', { observations: [{ entityName: words(bytes), contents: ['x'] }] })
    await client.callTool(words(bytes), {})
  },
}
