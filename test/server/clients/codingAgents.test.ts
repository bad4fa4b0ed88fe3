import { describe, expect, it } from 'vitest'
import { verifies } from '../../requirements/verifies.ts'
import { createHarness, type Harness } from './harness.ts'
import { replyWith, replyWithCalls } from './modelServer.ts'

const key = 'demo:ann'

/** Sends a request as an agent does and reads the whole response. */
async function send(
  { url }: Harness,
  path: string,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> {
  const response = await fetch(`${url}/v1/${key}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer sk-client', ...headers },
    body: JSON.stringify(body),
  })
  const text = await response.text()
  expect([response.status, /"error":\s*\{/.exec(text)]).toEqual([200, null])
  return response
}

const textBlock = (value: string) => ({ type: 'text', text: value })
const cacheMarker = { cache_control: { type: 'ephemeral' } }
const schema = { type: 'object', properties: { command: { type: 'string' } }, required: ['command'] }
const listCall = { id: 'call_1', name: 'bash', input: { command: 'ls' } }

describe('Claude Code', () => {
  const headers = {
    'anthropic-version': '2023-06-01',
    'anthropic-beta': 'claude-code-20250219,interleaved-thinking-2025-05-14,context-management-2025-06-27',
    'anthropic-dangerous-direct-browser-access': 'true',
    'user-agent': 'claude-cli/2.0.5 (external, cli)',
    'x-app': 'cli',
  }
  const body = {
    model: 'test-model',
    max_tokens: 32_000,
    stream: true,
    system: [
      textBlock("You are Claude Code, Anthropic's official CLI for Claude."),
      { ...textBlock('You help users with software engineering tasks.'), ...cacheMarker },
    ],
    tools: [{ name: 'bash', description: 'Runs a command', input_schema: schema }],
    thinking: { type: 'enabled', budget_tokens: 31_999 },
    context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] },
    metadata: { user_id: 'user_0a1b_account_2c3d_session_4e5f' },
  }
  const reminder = textBlock(
    '<system-reminder>\nAs you answer, you can use the project notes below.\n</system-reminder>',
  )
  const first = { role: 'user', content: [reminder, { ...textBlock('Which files are here?'), ...cacheMarker }] }

  verifies(['S-03', 'T-15'], 'is relayed unchanged, and each turn is stored once', async () => {
    await using harness = await createHarness(
      [
        replyWith({ thinking: 'List them.', text: 'I will look.', calls: [{ ...listCall, id: 'toolu_1' }] }),
        replyWith('Two: a.ts and b.ts.'),
        replyWith('Removed.'),
      ],
      'anthropic',
    )
    const path = '/v1/messages?beta=true'
    await send(harness, path, { ...body, messages: [first] }, headers)
    expect(harness.model.requests[0]?.body).toEqual({ ...body, messages: [first] })
    expect(harness.model.requests[0]).toMatchObject({ headers, path: '/v1/messages', query: 'beta=true' })
    const assistantCall = {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: 'List them.', signature: 'c2lnbmVk' },
        textBlock('I will look.'),
        { type: 'tool_use', id: 'toolu_1', name: 'bash', input: { command: 'ls' } },
      ],
    }
    const toolResult = {
      role: 'user',
      content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'a.ts\nb.ts', ...cacheMarker }],
    }
    // The cache marker moves with each request.
    const firstUncached = { role: 'user', content: [reminder, textBlock('Which files are here?')] }
    await send(harness, path, { ...body, messages: [firstUncached, assistantCall, toolResult] }, headers)
    expect(harness.model.requests[1]?.body.messages).toEqual([firstUncached, assistantCall, toolResult])
    const resultUncached = {
      role: 'user',
      content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'a.ts\nb.ts' }],
    }
    const reply = { role: 'assistant', content: [textBlock('Two: a.ts and b.ts.')] }
    const nextQuestion = { role: 'user', content: [{ ...textBlock('Remove a.ts.'), ...cacheMarker }] }
    const note = { role: 'system', content: 'The user works in another folder now.' }
    const lastMessages = [firstUncached, assistantCall, resultUncached, reply, note, nextQuestion]
    await send(harness, path, { ...body, messages: lastMessages }, headers)
    expect(harness.model.requests[2]?.body.messages).toEqual(lastMessages)
    expect(await harness.readTranscript(key)).toEqual([
      `user: ${reminder.text}\nWhich files are here?`,
      'assistant: I will look. bash({"command":"ls"})',
      'tool: a.ts\nb.ts',
      'assistant: Two: a.ts and b.ts.',
      'user: Remove a.ts.',
      'assistant: Removed.',
    ])
  })

  it('sends auxiliary requests that are not stored', async () => {
    await using harness = await createHarness(replyWith('{"isNewTopic":true,"title":"Files"}'), 'anthropic')
    const quota = {
      model: 'test-model',
      max_tokens: 1,
      messages: [{ role: 'user', content: 'quota' }],
      metadata: body.metadata,
    }
    await send(harness, '/v1/messages?beta=true', quota, headers)
    const topic = {
      model: 'test-model',
      max_tokens: 512,
      stream: true,
      system: [
        textBlock(
          "Analyze if this message indicates a new conversation topic. If it does, extract a 2-3 word title that captures the new topic. Format your response as a JSON object with two fields: 'isNewTopic' (boolean) and 'title' (string, or null). Only include these fields, no other text.",
        ),
      ],
      messages: [{ role: 'user', content: 'Which files are here?' }],
    }
    expect((await send(harness, '/v1/messages?beta=true', topic, headers)).headers.get('x-threadkeep-memory')).toBe(
      'auxiliary',
    )
    await send(
      harness,
      '/v1/messages/count_tokens?beta=true',
      { model: 'test-model', messages: [first], tools: body.tools },
      headers,
    )
    expect(harness.model.requests.map((request) => request.path)).toEqual([
      '/v1/messages',
      '/v1/messages',
      '/v1/messages/count_tokens',
    ])
    expect(harness.model.requests[1]?.body).toEqual(topic)
    expect(await harness.readTranscript(key)).toEqual([])
  })

  for (const [budget, degraded, limit] of [
    ['auto', null, 128_000 - 32_000],
    [16_000, 'budget', 16_000],
  ] as const) {
    verifies('T-15', `with long instructions and budget ${budget} is relayed unchanged and stored`, async () => {
      await using harness = await createHarness([replyWith('Two.'), replyWith('Yes.')], 'anthropic', [], { budget })
      const longBody = { ...body, system: [textBlock('Follow the rules of the house. '.repeat(4_000))] }
      const conversation = [
        first,
        { role: 'assistant', content: [textBlock('Two.')] },
        { role: 'user', content: 'Sure?' },
      ]
      await send(harness, '/v1/messages', { ...longBody, messages: [first] }, headers)
      const response = await send(harness, '/v1/messages', { ...longBody, messages: conversation }, headers)
      expect(response.headers.get('x-threadkeep-degraded')).toBe(degraded)
      const [used, most] = response.headers.get('x-threadkeep-tokens')?.split('/').map(Number) ?? []
      expect([most, Number(used) > 24_000]).toEqual([limit, true])
      expect(harness.model.requests[1]?.body).toEqual({ ...longBody, messages: conversation })
      expect((await harness.readTranscript(key)).slice(1)).toEqual([
        'assistant: Two.',
        'user: Sure?',
        'assistant: Yes.',
      ])
    })
  }
})

describe('Codex', () => {
  const createItem = (role: string, text: string) => ({
    type: 'message',
    role,
    content: [{ type: 'input_text', text }],
  })
  const body = {
    model: 'test-model',
    instructions: 'You are Codex, a coding agent running in a terminal.',
    tools: [
      { type: 'function', name: 'bash', description: 'Runs a command', strict: false, parameters: schema },
      {
        type: 'custom',
        name: 'apply_patch',
        description: 'Edits files',
        format: { type: 'grammar', syntax: 'lark', definition: 'start: "x"' },
      },
      { type: 'web_search', external_web_access: false },
    ],
    tool_choice: 'auto',
    parallel_tool_calls: false,
    reasoning: { effort: 'medium', summary: 'auto' },
    store: false,
    stream: true,
    include: ['reasoning.encrypted_content'],
    prompt_cache_key: '0199-aa',
  }
  const headers = { 'user-agent': 'codex_cli_rs/0.50.0', originator: 'codex_cli_rs', session_id: '0199-aa' }

  verifies(['S-03', 'T-15'], 'is relayed unchanged, and each turn is stored once', async () => {
    await using harness = await createHarness([
      replyWithCalls(listCall),
      replyWith('Two: a.ts and b.ts.'),
      replyWith('Done.'),
    ])
    const instructions = createItem('developer', '<permissions instructions>Read only.</permissions instructions>')
    const environment = createItem('user', '<environment_context>\n  <cwd>/project</cwd>\n</environment_context>')
    const input: unknown[] = [instructions, environment, createItem('user', 'Which files are here?')]
    await send(harness, '/responses', { ...body, input }, headers)
    expect(harness.model.requests[0]?.body).toEqual({ ...body, input })
    const reasoning = { type: 'reasoning', summary: [], content: null, encrypted_content: 'Z0FBQUFB' }
    input.push(reasoning, { type: 'function_call', call_id: 'call_1', name: 'bash', arguments: '{"command":"ls"}' })
    input.push({ type: 'function_call_output', call_id: 'call_1', output: 'a.ts\nb.ts' })
    await send(harness, '/responses', { ...body, input }, headers)
    expect(harness.model.requests[1]?.body.input).toEqual(input)
    input.push({ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Two: a.ts and b.ts.' }] })
    const nextQuestion = createItem('user', 'Remove a.ts.')
    const patch = { type: 'custom_tool_call', call_id: 'call_2', name: 'apply_patch', input: '*** Delete File: a.ts' }
    input.push(nextQuestion, patch, { type: 'custom_tool_call_output', call_id: 'call_2', output: 'Success.' })
    await send(harness, '/responses', { ...body, input }, headers)
    expect(harness.model.requests[2]?.body.input).toEqual(input)
    expect(await harness.readTranscript(key)).toEqual([
      'user: <environment_context>\n  <cwd>/project</cwd>\n</environment_context>',
      'user: Which files are here?',
      'assistant: bash({"command":"ls"})',
      'tool: a.ts\nb.ts',
      'assistant: Two: a.ts and b.ts.',
      'user: Remove a.ts.',
      'assistant: apply_patch({"input":"*** Delete File: a.ts"})',
      'tool: Success.',
      'assistant: Done.',
    ])
  })
})

const tools = Array.from({ length: 12 }, (_, index) => ({
  type: 'function',
  function: { name: index === 0 ? 'bash' : `tool_${index}`, description: 'Does something useful', parameters: schema },
}))
const streamOptions = { model: 'test-model', stream: true, stream_options: { include_usage: true } }
const user = (content: unknown) => ({ role: 'user', content })
const assistantCall = {
  role: 'assistant',
  content: '',
  tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'bash', arguments: '{"command":"ls"}' } }],
}
const toolResult = { role: 'tool', tool_call_id: 'call_1', content: 'a.ts\nb.ts' }

describe('opencode', () => {
  const system = {
    role: 'system',
    content: 'You are opencode, an interactive CLI tool that helps users with software engineering tasks.',
  }
  const title = {
    ...streamOptions,
    max_tokens: 32_000,
    messages: [
      {
        role: 'system',
        content:
          'You are a title generator. You output ONLY a thread title. Nothing else.\n\n<task>\nGenerate a brief title for the thread.\n</task>',
      },
      user('Generate a title for this conversation:\n'),
      user('Which files are here?'),
    ],
  }

  verifies(['S-03', 'T-15'], 'requests a title, which is not stored, and each turn is stored once', async () => {
    await using harness = await createHarness((request) => {
      if (request.body.tools === undefined) return replyWith('Files here')
      return request.body.messages.at(-1).role === 'tool' ? replyWith('Two: a.ts and b.ts.') : replyWithCalls(listCall)
    })
    const body = { ...streamOptions, max_tokens: 32_000, tools, tool_choice: 'auto' }
    const messages = [system, user('Which files are here?')]
    const [titleResponse] = await Promise.all([
      send(harness, '/chat/completions', title),
      send(harness, '/chat/completions', { ...body, messages }),
    ])
    expect(titleResponse.headers.get('x-threadkeep-memory')).toBe('auxiliary')
    await send(harness, '/chat/completions', { ...body, messages: [...messages, assistantCall, toolResult] })
    expect(harness.model.requests.map((request) => request.body)).toEqual(
      expect.arrayContaining([
        title,
        { ...body, messages },
        { ...body, messages: [...messages, assistantCall, toolResult] },
      ]),
    )
    expect(await harness.readTranscript(key)).toEqual([
      'user: Which files are here?',
      'assistant: bash({"command":"ls"})',
      'tool: a.ts\nb.ts',
      'assistant: Two: a.ts and b.ts.',
    ])
  })
})

describe('Continue', () => {
  verifies(['S-03', 'T-15'], 'requests a chat title, which is not stored, and each turn is stored once', async () => {
    await using harness = await createHarness([
      replyWithCalls(listCall),
      replyWith('Two: a.ts and b.ts.'),
      replyWith('Files here'),
    ])
    const system = { role: 'system', content: '<important_rules>\n  You are in agent mode.\n</important_rules>' }
    const body = { ...streamOptions, max_tokens: 4_096, tools, parallel_tool_calls: false }
    const messages = [system, user([textBlock('Which files are here?')])]
    await send(harness, '/chat/completions', { ...body, messages })
    await send(harness, '/chat/completions', {
      ...body,
      messages: [...messages, { ...assistantCall, content: ' ' }, toolResult],
    })
    const titlePrompt = `Given the following... please reply with a title for the chat that is 3-4 words in length, all words used should be directly related to the content of the chat, avoid using verbs unless they are directly related to the content of the chat, no additional text or explanation, you don't need ending punctuation.\n\nTwo: a.ts and b.ts.`
    const title = await send(harness, '/chat/completions', {
      model: 'test-model',
      max_tokens: 12,
      stream: true,
      messages: [user(titlePrompt)],
    })
    expect(title.headers.get('x-threadkeep-memory')).toBe('auxiliary')
    expect(await harness.readTranscript(key)).toEqual([
      'user: Which files are here?',
      'assistant: bash({"command":"ls"})',
      'tool: a.ts\nb.ts',
      'assistant: Two: a.ts and b.ts.',
    ])
  })
})

describe('Cline', () => {
  verifies(['S-03', 'T-15'], 'sends tool results as user messages, and each turn is stored once', async () => {
    const callText = '<thinking>List them.</thinking>\n<list_files>\n<path>.</path>\n</list_files>'
    await using harness = await createHarness([
      replyWith(callText),
      replyWith('<attempt_completion>\n<result>Two.</result>\n</attempt_completion>'),
      replyWith('Yes.'),
    ])
    const system = { role: 'system', content: 'You are Cline, a highly skilled software engineer.' }
    const createEnvironment = (time: string) =>
      textBlock(`<environment_details>\n# Current Time\n${time}\n</environment_details>`)
    const body = { ...streamOptions, temperature: 0 }
    const messages: unknown[] = [
      system,
      user([textBlock('<task>\nWhich files are here?\n</task>'), createEnvironment('10:00')]),
    ]
    await send(harness, '/chat/completions', { ...body, messages })
    messages.push(
      { role: 'assistant', content: [textBlock(callText)] },
      user([textBlock("[list_files for '.'] Result:\na.ts\nb.ts"), createEnvironment('10:01')]),
    )
    await send(harness, '/chat/completions', { ...body, messages })
    messages.push({
      role: 'assistant',
      content: [textBlock('<attempt_completion>\n<result>Two.</result>\n</attempt_completion>')],
    })
    const feedback = user([textBlock('<feedback>\nSure?\n</feedback>'), createEnvironment('10:02')])
    await send(harness, '/chat/completions', { ...body, messages: [...messages, feedback] })
    expect(harness.model.requests[2]?.body).toEqual({ ...body, messages: [...messages, feedback] })
    expect(await harness.readTranscript(key)).toEqual([
      'user: <task>\nWhich files are here?\n</task>\n<environment_details>\n# Current Time\n10:00\n</environment_details>',
      `assistant: ${callText}`,
      "user: [list_files for '.'] Result:\na.ts\nb.ts\n<environment_details>\n# Current Time\n10:01\n</environment_details>",
      'assistant: <attempt_completion>\n<result>Two.</result>\n</attempt_completion>',
      'user: <feedback>\nSure?\n</feedback>\n<environment_details>\n# Current Time\n10:02\n</environment_details>',
      'assistant: Yes.',
    ])
  })
})
