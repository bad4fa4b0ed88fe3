import { describe, expect, it } from 'vitest'
import { replyWith, respondWithStatus, startUpstream } from '../providers/upstream.ts'
import { verifies } from '../requirements/verifies.ts'
import { runCommand, startCommand } from './command.ts'
import { runInProcess } from './inProcess.ts'

/** Runs the command in this process. */
const run = (args: readonly string[], input: string, env = {}) => runInProcess(args, env, undefined, input)

const expectedReply = 'From what you told me: "My cat is called Miso."'
const input = 'My cat is called Miso.\n\nWhat is my cat called?\n'

describe('threadkeep chat', () => {
  it('with piped input answers each line and remembers earlier ones', async () => {
    const { code, stdout, stderr } = await runCommand(['chat'], input)
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout.split('\n').slice(1)).toEqual([expectedReply, ''])
  })

  verifies('S-02', '--json prints one JSON object per turn', async () => {
    const { code, stdout } = await run(
      ['chat', 'acme:ann', '--json', '--profile', 'ephemeral', '--budget', '300'],
      input,
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
    expect(turns[1]).toMatchObject({ reply: expectedReply, ledger: { profile: 'ephemeral', budget: 300 } })
  })

  it('--receipt shows the receipt of each turn, /receipt that of the last one', async () => {
    const table = [
      'band   entries  count  verdict  tokens  why',
      'frame  -            0  whole         3  headings and provider overhead',
      'tail   m1           1  whole        11  the newest turn',
      '14 of 16000 tokens, 0 cacheable',
    ]
    const always = await run(['chat', '--receipt'], 'My cat is called Miso.\n')
    expect(always.stdout.split('\n').slice(1, -1)).toEqual(table)
    const once = await run(['chat'], '/receipt\nMy cat is called Miso.\n/receipt\n')
    const lines = once.stdout.split('\n')
    expect(lines[0]).toBe('No turns yet.')
    expect(lines.slice(2, -1)).toEqual(table)
  })

  it('/forget --yes deletes the session, /help lists the commands, /exit exits', async () => {
    const { code, stdout } = await run(
      ['chat'],
      'My cat is called Miso.\n/forget --yes\nWhat is my cat called?\n/help\n/exit\nNever said\n',
    )
    const [first, forgotten, second, ...rest] = stdout.split('\n')
    expect(code).toBe(0)
    expect(forgotten).toBe('Deleted 2 entries.')
    expect(first).toMatch(/^Noted\. No language model is configured/)
    expect(second).toMatch(/^I remember nothing about this\. No language model is configured/)
    expect(rest.map((line) => line.split(' ')[0])).toEqual([
      '/receipt',
      '/context',
      '/facts',
      '/forget',
      '/help',
      '/exit',
      '',
    ])
  })

  it('--json prints the results of slash commands as JSON', async () => {
    const { stdout } = await run(['chat', '--json'], '/receipt\nHello\n/forget --yes\n/help\n')
    const [receipt, , forgotten, help] = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>)
    expect(receipt).toEqual({ ledger: null })
    expect(forgotten).toEqual({
      forgotten: { at: expect.any(Number), sessions: [{ key: 'demo:me', entries: ['m1', 'm2'] }] },
    })
    expect(Object.keys(help?.commands ?? {})).toEqual(['/receipt', '/context', '/facts', '/forget', '/help', '/exit'])
  })

  it('rejects an unknown slash command, and accepts other text that starts with a slash', async () => {
    expect(await run(['chat'], '/frget\n')).toEqual({
      code: 2,
      stdout: '',
      stderr: 'threadkeep: Unknown command /frget. Type /help to list the commands.\n',
    })
    expect((await run(['chat'], '/etc/hosts is a file.\nWhat is /etc/hosts?\n')).stdout).toContain(
      'From what you told me: "/etc/hosts is a file."',
    )
  })

  it('calls the selected provider with the API key from the environment', async () => {
    await using upstream = await startUpstream(replyWith('Hello', ' there.'))
    const result = await run(
      ['chat', '--provider', 'anthropic', '--model', 'claude-test', '--upstream', upstream.origin],
      'Hi\n',
      {
        ANTHROPIC_API_KEY: 'sk-ant',
        OPENAI_BASE_URL: 'http://127.0.0.1:1/v1',
      },
    )
    expect(result).toEqual({ code: 0, stdout: 'Hello there.\n', stderr: '' })
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

  it('strips control characters from replies', async () => {
    await using upstream = await startUpstream(replyWith('red \u001b[31malert\u0007', '\ttab\r\nline\u009b2J'))
    expect((await run(['chat', '--upstream', upstream.url], 'Hi\n')).stdout).toBe('red [31malert\ttab\nline2J\n')
  })

  verifies('S-02', 'with a failing model prints one line and exits with 1', async () => {
    await using upstream = await startUpstream(respondWithStatus(401))
    const { code, stdout, stderr } = await run(['chat', '--upstream', upstream.url], 'Hi\nHi again\n')
    const message = `${upstream.url}/chat/completions refused the key (HTTP 401). Check OPENAI_API_KEY.`
    expect([code, stdout, stderr]).toEqual([1, '', `threadkeep: ${message}\n`])
    const json = await run(['chat', '--json', '--upstream', upstream.url], 'Hi\n')
    expect([json.code, JSON.parse(json.stderr)]).toEqual([1, { error: { code: 'upstream', message, param: null } }])
    expect(upstream.requests).toHaveLength(2)
  })

  verifies('S-02', 'on SIGINT exits with 130', async () => {
    await using upstream = await startUpstream({ does: 'stall', pieces: ['Once upon a time'] })
    const running = startCommand(['chat', '--upstream', upstream.url])
    running.process.stdin?.write('Tell me a story.\n')
    await running.waitForOutput('Once upon a time')
    running.process.kill('SIGINT')
    expect((await running.result).code).toBe(130)
  })
})
