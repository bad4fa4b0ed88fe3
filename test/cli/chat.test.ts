import { describe, expect, it } from 'vitest'
import { refuses, replies, startUpstream } from '../providers/upstream.ts'
import { verifies } from '../requirements/verifies.ts'
import { command, run } from './command.ts'

const quote = 'From what you told me: "My cat is called Miso."'
const talk = 'My cat is called Miso.\n\nWhat is my cat called?\n'

describe('threadkeep chat', () => {
  it('answers each line of a pipe, and remembers', async () => {
    const { code, stdout, stderr } = await run(['chat'], talk)
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout.split('\n').slice(1)).toEqual([quote, ''])
  })

  verifies('S-02', 'gives one JSON object for each turn', async () => {
    const { code, stdout } = await run(
      ['chat', 'acme:ann', '--json', '--profile', 'ephemeral', '--budget', '300'],
      talk,
    )
    const turns = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { reply: string; ledger: { profile: string; budget: number; spent: number } })
    expect(code).toBe(0)
    expect(turns).toHaveLength(2)
    expect(turns.map((turn) => Object.keys(turn))).toEqual([
      ['reply', 'ledger'],
      ['reply', 'ledger'],
    ])
    expect(turns[1]).toMatchObject({ reply: quote, ledger: { profile: 'ephemeral', budget: 300 } })
  })

  it('shows the receipt of each turn, or of the last one on demand', async () => {
    const table = [
      'band   entries  count  verdict  tokens  why',
      'frame  -            0  whole         3  headings and what the provider adds',
      'tail   m1           1  whole        11  the newest turn',
      '14 of 16000 tokens, 0 of them cacheable',
    ]
    const always = await run(['chat', '--receipt'], 'My cat is called Miso.\n')
    expect(always.stdout.split('\n').slice(1, -1)).toEqual(table)
    const once = await run(['chat'], '/receipt\nMy cat is called Miso.\n/receipt\n')
    const lines = once.stdout.split('\n')
    expect(lines[0]).toBe('There is no turn yet.')
    expect(lines.slice(2, -1)).toEqual(table)
  })

  it('forgets, helps and ends on demand', async () => {
    const { code, stdout } = await run(
      ['chat'],
      'My cat is called Miso.\n/forget\nWhat is my cat called?\n/help\n/quit\nNever said\n',
    )
    const [first, forgotten, second, ...rest] = stdout.split('\n')
    expect(code).toBe(0)
    expect(forgotten).toBe('Forgotten: 2 entries.')
    expect(second).toBe(first)
    expect(rest).toEqual([
      '/receipt  what the last turn was shown and what it cost',
      '/forget   forget this session',
      '/help     this list',
      '/quit     end',
      '',
    ])
  })

  it('answers commands as JSON too', async () => {
    const { stdout } = await run(['chat', '--json'], '/receipt\nHello\n/forget\n/help\n')
    const [receipt, , forgotten, help] = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>)
    expect(receipt).toEqual({ ledger: null })
    expect(forgotten).toEqual({
      forgotten: { at: expect.any(Number), sessions: [{ key: 'demo:me', entries: ['m1', 'm2'] }] },
    })
    expect(Object.keys(help?.commands ?? {})).toEqual(['/receipt', '/forget', '/help', '/quit'])
  })

  it('takes an unknown command for a mistake, and other text with a slash for text', async () => {
    expect(await run(['chat'], '/frget\n')).toEqual({
      code: 2,
      stdout: '',
      stderr: 'threadkeep: /frget is no command. /help lists them.\n',
    })
    expect((await run(['chat'], '/etc/hosts is a file.\nWhat is /etc/hosts?\n')).stdout).toContain(
      'From what you told me: "/etc/hosts is a file."',
    )
  })

  it('talks to the provider it is told, with the key from the environment', async () => {
    await using upstream = await startUpstream(replies('Hello', ' there.'))
    const told = await run(
      ['chat', '--provider', 'anthropic', '--model', 'claude-test', '--upstream', upstream.origin],
      'Hi\n',
      {
        ANTHROPIC_API_KEY: 'sk-ant',
        OPENAI_BASE_URL: 'http://127.0.0.1:1/v1',
      },
    )
    expect(told).toEqual({ code: 0, stdout: 'Hello there.\n', stderr: '' })
    expect(upstream.requests[0]).toMatchObject({
      path: '/v1/messages',
      headers: { 'x-api-key': 'sk-ant' },
      body: { model: 'claude-test' },
    })
    await run(['chat'], 'Hi\n', { OPENAI_BASE_URL: upstream.url, OPENAI_API_KEY: 'sk-env' })
    expect(upstream.requests[1]).toMatchObject({
      path: '/v1/chat/completions',
      headers: { authorization: 'Bearer sk-env' },
    })
  })

  it('does not let a model write to the terminal anything but text', async () => {
    await using upstream = await startUpstream(replies('red \u001b[31malert\u0007', '\ttab\r\nline\u009b2J'))
    expect((await run(['chat', '--upstream', upstream.url], 'Hi\n')).stdout).toBe('red [31malert\ttab\nline2J\n')
  })

  verifies('S-02', 'ends with 1 and one line when the model fails', async () => {
    await using upstream = await startUpstream(refuses(401))
    const { code, stdout, stderr } = await run(['chat', '--upstream', upstream.url], 'Hi\nHi again\n')
    const message = `${upstream.url}/chat/completions refused the key (HTTP 401). Check OPENAI_API_KEY.`
    expect([code, stdout, stderr]).toEqual([1, '', `threadkeep: ${message}\n`])
    const json = await run(['chat', '--json', '--upstream', upstream.url], 'Hi\n')
    expect([json.code, JSON.parse(json.stderr)]).toEqual([1, { error: { code: 'upstream', message, param: null } }])
    expect(upstream.requests).toHaveLength(2)
  })

  verifies('S-02', 'ends with 130 when it is interrupted', async () => {
    await using upstream = await startUpstream({ does: 'stall', pieces: ['Once upon a time'] })
    const running = command(['chat', '--upstream', upstream.url])
    running.process.stdin?.write('Tell me a story.\n')
    await running.until('Once upon a time')
    running.process.kill('SIGINT')
    expect((await running.ended).code).toBe(130)
  })
})
