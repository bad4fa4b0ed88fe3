import { describe, expect, it } from 'vitest'
import { verifies } from '../../requirements/verifies.ts'
import { calls, says } from './model.ts'
import { openStage, type Stage } from './stage.ts'

const key = 'demo:ann'

/** Sends what an agent sends and reads the whole answer, as it does. */
async function send(
  { url }: Stage,
  path: string,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> {
  const response = await fetch(`${url}/v1/${key}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer sk-client', ...headers },
    body: JSON.stringify(body),
  })
  const answer = await response.text()
  expect([response.status, /"error":\s*\{/.exec(answer)]).toEqual([200, null])
  return response
}

const text = (words: string) => ({ type: 'text', text: words })
const cached = { cache_control: { type: 'ephemeral' } }
const schema = { type: 'object', properties: { command: { type: 'string' } }, required: ['command'] }
const list = { id: 'call_1', name: 'bash', input: { command: 'ls' } }

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
      text("You are Claude Code, Anthropic's official CLI for Claude."),
      { ...text('You help users with software engineering tasks.'), ...cached },
    ],
    tools: [{ name: 'bash', description: 'Runs a command', input_schema: schema }],
    thinking: { type: 'enabled', budget_tokens: 31_999 },
    context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] },
    metadata: { user_id: 'user_0a1b_account_2c3d_session_4e5f' },
  }
  const reminder = text('<system-reminder>\nAs you answer, you can use the project notes below.\n</system-reminder>')
  const first = { role: 'user', content: [reminder, { ...text('Which files are here?'), ...cached }] }

  verifies(['S-03', 'T-15'], 'is passed on as it speaks, and its turns are kept once', async () => {
    await using stage = await openStage(
      [
        { does: 'say', said: { thinking: 'List them.', text: 'I will look.', calls: [{ ...list, id: 'toolu_1' }] } },
        says('Two: a.ts and b.ts.'),
        says('Removed.'),
      ],
      'anthropic',
    )
    const path = '/v1/messages?beta=true'
    await send(stage, path, { ...body, messages: [first] }, headers)
    expect(stage.model.requests[0]?.body).toEqual({ ...body, messages: [first] })
    expect(stage.model.requests[0]?.headers).toMatchObject(headers)
    const looked = {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: 'List them.', signature: 'c2lnbmVk' },
        text('I will look.'),
        { type: 'tool_use', id: 'toolu_1', name: 'bash', input: { command: 'ls' } },
      ],
    }
    const found = {
      role: 'user',
      content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'a.ts\nb.ts', ...cached }],
    }
    // What marks the cache moves on with each request.
    const opened = { role: 'user', content: [reminder, text('Which files are here?')] }
    await send(stage, path, { ...body, messages: [opened, looked, found] }, headers)
    expect(stage.model.requests[1]?.body.messages).toEqual([opened, looked, found])
    const known = { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'a.ts\nb.ts' }] }
    const said = { role: 'assistant', content: [text('Two: a.ts and b.ts.')] }
    const wish = { role: 'user', content: [{ ...text('Remove a.ts.'), ...cached }] }
    const note = { role: 'system', content: 'The user works in another folder now.' }
    await send(stage, path, { ...body, messages: [opened, looked, known, said, note, wish] }, headers)
    expect(stage.model.requests[2]?.body.messages.at(-1)).toEqual(wish)
    expect(JSON.stringify(stage.model.requests[2]?.body)).toContain('The user works in another folder now.')
    expect(await stage.said(key)).toEqual([
      `user: ${reminder.text}\nWhich files are here?`,
      'assistant: I will look. bash({"command":"ls"})',
      'tool: a.ts\nb.ts',
      'assistant: Two: a.ts and b.ts.',
      'user: Remove a.ts.',
      'assistant: Removed.',
    ])
  })

  it('asks for its own purposes without leaving a trace', async () => {
    await using stage = await openStage(says('{"isNewTopic":true,"title":"Files"}'), 'anthropic')
    const quota = {
      model: 'test-model',
      max_tokens: 1,
      messages: [{ role: 'user', content: 'quota' }],
      metadata: body.metadata,
    }
    await send(stage, '/v1/messages?beta=true', quota, headers)
    const topic = {
      model: 'test-model',
      max_tokens: 512,
      stream: true,
      system: [
        text(
          "Analyze if this message indicates a new conversation topic. If it does, extract a 2-3 word title that captures the new topic. Format your response as a JSON object with two fields: 'isNewTopic' (boolean) and 'title' (string, or null). Only include these fields, no other text.",
        ),
      ],
      messages: [{ role: 'user', content: 'Which files are here?' }],
    }
    expect((await send(stage, '/v1/messages?beta=true', topic, headers)).headers.get('x-threadkeep-memory')).toBe(
      'side',
    )
    await send(
      stage,
      '/v1/messages/count_tokens?beta=true',
      { model: 'test-model', messages: [first], tools: body.tools },
      headers,
    )
    expect(stage.model.requests.map((request) => request.path)).toEqual([
      '/v1/messages',
      '/v1/messages',
      '/v1/messages/count_tokens',
    ])
    expect(stage.model.requests[1]?.body).toEqual(topic)
    expect(await stage.said(key)).toEqual([])
  })

  it('has instructions longer than the budget: they pass whole, and what is said is kept', async () => {
    await using stage = await openStage([says('Two.'), says('Yes.')], 'anthropic')
    const long = { ...body, system: [text('Follow the rules of the house. '.repeat(4_000))] }
    const talk = [first, { role: 'assistant', content: [text('Two.')] }, { role: 'user', content: 'Sure?' }]
    await send(stage, '/v1/messages', { ...long, messages: [first] }, headers)
    const response = await send(stage, '/v1/messages', { ...long, messages: talk }, headers)
    expect(response.headers.get('x-threadkeep-degraded')).toBe('budget')
    expect(stage.model.requests[1]?.body).toEqual({ ...long, messages: talk })
    expect((await stage.said(key)).slice(1)).toEqual(['assistant: Two.', 'user: Sure?', 'assistant: Yes.'])
  })
})

describe('Codex', () => {
  const item = (role: string, words: string) => ({
    type: 'message',
    role,
    content: [{ type: 'input_text', text: words }],
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

  verifies(['S-03', 'T-15'], 'is passed on as it speaks, and its turns are kept once', async () => {
    await using stage = await openStage([calls(list), says('Two: a.ts and b.ts.'), says('Done.')])
    const rules = item('developer', '<permissions instructions>Read only.</permissions instructions>')
    const place = item('user', '<environment_context>\n  <cwd>/project</cwd>\n</environment_context>')
    // What comes before the newest message is memory's to tell, in the same words.
    const told = { role: 'user', content: '<environment_context>\n  <cwd>/project</cwd>\n</environment_context>' }
    const input: unknown[] = [rules, place, item('user', 'Which files are here?')]
    await send(stage, '/responses', { ...body, input }, headers)
    expect(stage.model.requests[0]?.body).toEqual({ ...body, input: [rules, told, input[2]] })
    const thought = { type: 'reasoning', summary: [], content: null, encrypted_content: 'Z0FBQUFB' }
    input.push(thought, { type: 'function_call', call_id: 'call_1', name: 'bash', arguments: '{"command":"ls"}' })
    input.push({ type: 'function_call_output', call_id: 'call_1', output: 'a.ts\nb.ts' })
    await send(stage, '/responses', { ...body, input }, headers)
    expect(stage.model.requests[1]?.body.input).toEqual([rules, told, ...input.slice(2)])
    input.push({ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Two: a.ts and b.ts.' }] })
    const wish = item('user', 'Remove a.ts.')
    const patch = { type: 'custom_tool_call', call_id: 'call_2', name: 'apply_patch', input: '*** Delete File: a.ts' }
    input.push(wish, patch, { type: 'custom_tool_call_output', call_id: 'call_2', output: 'Success.' })
    await send(stage, '/responses', { ...body, input }, headers)
    const heard = stage.model.requests[2]?.body.input
    expect(
      heard.slice(
        heard.findIndex((one: { content?: unknown }) => JSON.stringify(one.content) === JSON.stringify(wish.content)),
      ),
    ).toEqual(input.slice(-3))
    expect(heard[0]).toEqual(rules)
    expect(await stage.said(key)).toEqual([
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

const tools = Array.from({ length: 12 }, (_, at) => ({
  type: 'function',
  function: { name: at === 0 ? 'bash' : `tool_${at}`, description: 'Does something useful', parameters: schema },
}))
const streamed = { model: 'test-model', stream: true, stream_options: { include_usage: true } }
const user = (content: unknown) => ({ role: 'user', content })
const looked = {
  role: 'assistant',
  content: '',
  tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'bash', arguments: '{"command":"ls"}' } }],
}
const found = { role: 'tool', tool_call_id: 'call_1', content: 'a.ts\nb.ts' }

describe('opencode', () => {
  const system = {
    role: 'system',
    content: 'You are opencode, an interactive CLI tool that helps users with software engineering tasks.',
  }
  const title = {
    ...streamed,
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

  verifies(['S-03', 'T-15'], 'gets its title, which is no turn, and its turns are kept once', async () => {
    await using stage = await openStage((request) => {
      if (request.body.tools === undefined) return says('Files here')
      return request.body.messages.at(-1).role === 'tool' ? says('Two: a.ts and b.ts.') : calls(list)
    })
    const body = { ...streamed, max_tokens: 32_000, tools, tool_choice: 'auto' }
    const messages = [system, user('Which files are here?')]
    const [named] = await Promise.all([
      send(stage, '/chat/completions', title),
      send(stage, '/chat/completions', { ...body, messages }),
    ])
    expect(named.headers.get('x-threadkeep-memory')).toBe('side')
    await send(stage, '/chat/completions', { ...body, messages: [...messages, looked, found] })
    expect(stage.model.requests.map((request) => request.body)).toEqual(
      expect.arrayContaining([title, { ...body, messages }, { ...body, messages: [...messages, looked, found] }]),
    )
    expect(await stage.said(key)).toEqual([
      'user: Which files are here?',
      'assistant: bash({"command":"ls"})',
      'tool: a.ts\nb.ts',
      'assistant: Two: a.ts and b.ts.',
    ])
  })
})

describe('Continue', () => {
  verifies(
    ['S-03', 'T-15'],
    'gets a title for its list of chats, which is no turn, and its turns are kept once',
    async () => {
      await using stage = await openStage([calls(list), says('Two: a.ts and b.ts.'), says('Files here')])
      const system = { role: 'system', content: '<important_rules>\n  You are in agent mode.\n</important_rules>' }
      const body = { ...streamed, max_tokens: 4_096, tools, parallel_tool_calls: false }
      const messages = [system, user([text('Which files are here?')])]
      await send(stage, '/chat/completions', { ...body, messages })
      await send(stage, '/chat/completions', { ...body, messages: [...messages, { ...looked, content: ' ' }, found] })
      const wish = `Given the following... please reply with a title for the chat that is 3-4 words in length, all words used should be directly related to the content of the chat, avoid using verbs unless they are directly related to the content of the chat, no additional text or explanation, you don't need ending punctuation.\n\nTwo: a.ts and b.ts.`
      const title = await send(stage, '/chat/completions', {
        model: 'test-model',
        max_tokens: 12,
        stream: true,
        messages: [user(wish)],
      })
      expect(title.headers.get('x-threadkeep-memory')).toBe('side')
      expect(await stage.said(key)).toEqual([
        'user: Which files are here?',
        'assistant: bash({"command":"ls"})',
        'tool: a.ts\nb.ts',
        'assistant: Two: a.ts and b.ts.',
      ])
    },
  )
})

describe('Cline', () => {
  verifies(['S-03', 'T-15'], 'tells results of tools as a user, and each of its turns is kept once', async () => {
    const wants = '<thinking>List them.</thinking>\n<list_files>\n<path>.</path>\n</list_files>'
    await using stage = await openStage([
      says(wants),
      says('<attempt_completion>\n<result>Two.</result>\n</attempt_completion>'),
      says('Yes.'),
    ])
    const system = { role: 'system', content: 'You are Cline, a highly skilled software engineer.' }
    const around = (time: string) => text(`<environment_details>\n# Current Time\n${time}\n</environment_details>`)
    const body = { ...streamed, temperature: 0 }
    const messages: unknown[] = [system, user([text('<task>\nWhich files are here?\n</task>'), around('10:00')])]
    await send(stage, '/chat/completions', { ...body, messages })
    messages.push(
      { role: 'assistant', content: [text(wants)] },
      user([text("[list_files for '.'] Result:\na.ts\nb.ts"), around('10:01')]),
    )
    await send(stage, '/chat/completions', { ...body, messages })
    messages.push({
      role: 'assistant',
      content: [text('<attempt_completion>\n<result>Two.</result>\n</attempt_completion>')],
    })
    const doubt = user([text('<feedback>\nSure?\n</feedback>'), around('10:02')])
    await send(stage, '/chat/completions', { ...body, messages: [...messages, doubt] })
    expect(stage.model.requests[2]?.body.messages.at(-1)).toEqual(doubt)
    expect(await stage.said(key)).toEqual([
      'user: <task>\nWhich files are here?\n</task>\n<environment_details>\n# Current Time\n10:00\n</environment_details>',
      `assistant: ${wants}`,
      "user: [list_files for '.'] Result:\na.ts\nb.ts\n<environment_details>\n# Current Time\n10:01\n</environment_details>",
      'assistant: <attempt_completion>\n<result>Two.</result>\n</attempt_completion>',
      'user: <feedback>\nSure?\n</feedback>\n<environment_details>\n# Current Time\n10:02\n</environment_details>',
      'assistant: Yes.',
    ])
  })
})
