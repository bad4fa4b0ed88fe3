import { execFile } from 'node:child_process'
import { on } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { promisify } from 'node:util'
import { afterAll, describe, expect, it } from 'vitest'
import { replyWith, startUpstream } from '../providers/upstream.ts'
import { verifies } from '../requirements/verifies.ts'
import { type RunningProcess, startCommand } from './command.ts'
import { runInProcess } from './inProcess.ts'

const shell = promisify(execFile)

/** Returns the address of a server that has just been started. */
const waitForUrl = async (running: RunningProcess): Promise<string> => {
  const output = await running.waitForOutput('curl ')
  return /^Threadkeep is listening on (http:\/\/127\.0\.0\.1:\d+)\n/.exec(output)?.[1] ?? `no address in ${output}`
}

const ask = async (url: string, content: string): Promise<string> => {
  const body = JSON.stringify({ model: 'any', messages: [{ role: 'user', content }] })
  const response = await fetch(`${url}/v1/demo:me/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
  })
  const { choices } = (await response.json()) as { choices: { message: { content: string } }[] }
  return choices[0]?.message.content ?? ''
}

/** Resolves once standard error contains this text. */
const waitForLog = async ({ process }: RunningProcess, text: string): Promise<void> => {
  let output = ''
  for await (const chunk of on(process.stderr as Readable, 'data')) {
    output += String(chunk)
    if (output.includes(text)) return
  }
}

/** Statuses of the requests in a log. */
const loggedStatuses = (log: string): readonly (number | undefined)[] =>
  log
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { event: string; status?: number })
    .flatMap(({ event, status }) => (event === 'request' ? [status] : []))

const folder = mkdtempSync(join(tmpdir(), 'threadkeep-serve-'))
afterAll(() => rmSync(folder, { recursive: true }))

describe('threadkeep serve', () => {
  verifies(['S-01', 'S-02'], 'serves without keys and settings, and exits with 0 on SIGTERM', async () => {
    const running = startCommand(
      ['serve', '--port', '0'],
      { THREADKEEP_STORE: '' },
      mkdtempSync(join(folder, 'fresh-')),
    )
    const url = await waitForUrl(running)
    expect((await running.waitForOutput('"}]}\'')).split('\n')).toEqual([
      `Threadkeep is listening on ${url}`,
      `Model: threadkeep-offline. Base URL for clients: ${url}/v1/demo:me (any tenant:session). API key: any. MCP: ${url}/mcp`,
      'Memory is stored in sqlite:threadkeep.db. Profile thread, budget auto with at most 16000 tokens of memory.',
      'Try it, then ask what your cat is called:',
      `  curl ${url}/v1/demo:me/chat/completions -H 'content-type: application/json' -d '{"model":"any","messages":[{"role":"user","content":"My cat is called Miso."}]}'`,
      '',
    ])
    await ask(url, 'My cat is called Miso.')
    expect(await ask(url, 'What is my cat called?')).toBe('From what you told me: "My cat is called Miso."')
    running.process.kill('SIGTERM')
    expect(await running.result).toMatchObject({ code: 0, stderr: '' })
  })

  verifies('X-07', 'killed and started again › remembers acknowledged messages', async () => {
    const cwd = mkdtempSync(join(folder, 'killed-'))
    const first = startCommand(['serve', '--port', '0'], { THREADKEEP_STORE: '' }, cwd)
    await ask(await waitForUrl(first), 'My cat is called Miso.')
    first.process.kill('SIGKILL')
    await first.result
    const second = startCommand(['serve', '--port', '0'], { THREADKEEP_STORE: '' }, cwd)
    expect(await ask(await waitForUrl(second), 'What is my cat called?')).toBe(
      'From what you told me: "My cat is called Miso."',
    )
    second.process.kill()
    await second.result
  })

  verifies('E-02', 'with a RAM-only profile and a file › exits with 2 and creates no file', async () => {
    const cwd = mkdtempSync(join(folder, 'refused-'))
    const { code, stderr } = await startCommand(['serve', '--store', 'sqlite:x.db', '--profile', 'ephemeral'], {}, cwd)
      .result
    expect([code, stderr.startsWith('threadkeep: Profile ephemeral is RAM-only'), readdirSync(cwd)]).toEqual([
      2,
      true,
      [],
    ])
  })

  verifies(['E-02', 'T-03'], 'with a RAM-only session profile › writes no session to a file, and says so', async () => {
    for (const [profile, files] of [
      ['ephemeral', []],
      ['support', ['threadkeep.db']],
    ] as const) {
      const cwd = mkdtempSync(join(folder, `${profile}-`))
      const running = startCommand(['serve', '--port', '0', '--profile', profile], { THREADKEEP_STORE: '' }, cwd)
      const url = await waitForUrl(running)
      await ask(url, 'My cat is called Miso.')
      expect(await running.waitForOutput('\n')).toContain('is in RAM and lost on exit.')
      running.process.kill()
      await running.result
      expect(readdirSync(cwd)).toEqual(files)
      for (const file of files) expect(readFileSync(join(cwd, file)).includes('Miso')).toBe(false)
    }
  })

  verifies('S-02', 'prints a curl command that works, and exits with 0 on SIGINT', async () => {
    const running = startCommand(['serve', '--port', '0'])
    await waitForUrl(running)
    const line = (await running.waitForOutput('"}]}\'')).split('\n').find((text) => text.includes('curl '))
    const { stdout } = await shell('sh', ['-c', `${line?.trim()} -s`])
    expect(JSON.parse(stdout)).toMatchObject({ object: 'chat.completion', model: 'threadkeep-offline' })
    running.process.kill('SIGINT')
    expect(await running.result).toMatchObject({ code: 0, stderr: '' })
  })

  it('--json prints the address and the settings', async () => {
    await using upstream = await startUpstream(replyWith('Hello.'))
    const running = startCommand(
      ['serve', '--json', '--profile', 'support', '--budget', '500', '--embedder', 'ollama:toy'],
      {
        THREADKEEP_PORT: '0',
        OPENAI_BASE_URL: upstream.url,
        OPENAI_API_KEY: 'sk-env',
      },
    )
    const info = JSON.parse(await running.waitForOutput('}\n')) as { url: string }
    expect(info).toEqual({
      url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
      answers: upstream.url,
      store: 'ram:',
      profile: 'support',
      budget: 500,
      embedder: 'ollama:toy',
    })
    expect(await ask(info.url, 'Hi')).toBe('Hello.')
    expect(upstream.requests[0]?.headers.authorization).toBe('Bearer sk-env')
    running.process.kill()
    expect((await running.result).code).toBe(0)
  })

  it('on a public address requires keys or --open', async () => {
    const cwd = mkdtempSync(join(folder, 'reached-'))
    const host = ['serve', '--port', '0', '--host', '0.0.0.0']
    const { code, stdout, stderr } = await startCommand(host, {}, cwd).result
    expect([
      code,
      stdout,
      stderr.startsWith('threadkeep: host is "0.0.0.0", which other machines can reach, but no keys are required'),
    ]).toEqual([2, '', true])
    const warning = '\nWARNING: anyone who can reach this address can read and write memory (--open).\n'
    const open = startCommand([...host, '--open'], {}, cwd)
    expect(await open.waitForOutput('curl ')).toContain(warning)
    open.process.kill()
    await open.result
    await runInProcess(['keys', 'create', '--scope', 'acme'], {}, cwd)
    const withKeys = startCommand(host, {}, cwd)
    const banner = await withKeys.waitForOutput('"}]}\'')
    expect(banner).not.toContain('WARNING')
    expect(banner).toContain('(any tenant:session). API key: create one with threadkeep keys create. MCP: ')
    expect(banner).toContain(" -H 'authorization: Bearer tk_…' -d ")
    withKeys.process.kill()
    await withKeys.result
  })

  it('logs failed requests to standard error', async () => {
    const running = startCommand(['serve', '--port', '0', '--log', 'warn'])
    const url = await waitForUrl(running)
    await ask(url, 'My cat is called Miso.')
    await fetch(`${url}/nowhere`).then((response) => response.text())
    running.process.kill()
    const { stderr } = await running.result
    expect([loggedStatuses(stderr), stderr.includes('Miso')]).toEqual([[404], false])
  })

  verifies('T-17', 'on SIGHUP applies changed profiles, and --log info logs every request', async () => {
    const cwd = mkdtempSync(join(folder, 'changing-'))
    const file = join(cwd, 'threadkeep.config.json')
    const write = (budget: number): void =>
      writeFileSync(file, JSON.stringify({ profile: 'mine', profiles: { mine: { extends: 'thread', budget } } }))
    write(5_000)
    const running = startCommand(['serve', '--port', '0', '--log', 'info'], {}, cwd)
    const url = await waitForUrl(running)
    expect(await running.waitForOutput('tokens.')).toContain('Profile mine, budget 5000 tokens.')
    const configured = waitForLog(running, '"event":"configured"')
    write(6_000)
    running.process.kill('SIGHUP')
    await configured
    const body = JSON.stringify({ model: 'any', messages: [{ role: 'user', content: 'Hi' }] })
    const response = await fetch(`${url}/v1/demo:me/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    })
    expect(response.headers.get('x-threadkeep-tokens')).toMatch(/\/6000$/)
    await fetch(`${url}/nowhere`).then((missing) => missing.text())
    running.process.kill()
    const { code, stderr } = await running.result
    expect([code, loggedStatuses(stderr)]).toEqual([0, [200, 404]])
  })

  verifies('S-02', 'with a port in use prints one line and exits with 1', async () => {
    await using first = await startUpstream(replyWith('Hello.'))
    const { port } = new URL(first.url)
    const second = await startCommand(['serve', '--port', port]).result
    const third = await startCommand(['serve', '--port', port, '--json']).result
    const message = `Port ${port} of 127.0.0.1 is in use. Stop the process that listens there, or choose another port with --port (0 for a free port).`
    expect(second).toEqual({ code: 1, stdout: '', stderr: `threadkeep: ${message}\n` })
    expect([third.code, JSON.parse(third.stderr)]).toEqual([
      1,
      { error: { code: 'EADDRINUSE', message, param: 'port' } },
    ])
  })

  it('on a second signal exits at once with 130', async () => {
    await using upstream = await startUpstream({ does: 'stall', pieces: ['One'] })
    const running = startCommand(['serve', '--port', '0', '--log', 'info', '--upstream', upstream.url])
    const body = JSON.stringify({ model: 'any', stream: true, messages: [{ role: 'user', content: 'Count' }] })
    const url = await waitForUrl(running)
    const response = await fetch(`${url}/v1/demo:me/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    })
    const stopping = waitForLog(running, '"event":"stopping"')
    running.process.kill()
    await stopping
    running.process.kill()
    expect((await running.result).code).toBe(130)
    await expect(response.text()).rejects.toThrow()
  })

  it('on the first signal lets a stream finish', async () => {
    await using upstream = await startUpstream({ does: 'reply', pieces: ['One', ' two'], split: true })
    const running = startCommand(['serve', '--port', '0', '--upstream', upstream.url])
    const body = JSON.stringify({ model: 'any', stream: true, messages: [{ role: 'user', content: 'Count' }] })
    const response = await fetch(`${await waitForUrl(running)}/v1/demo:me/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    })
    running.process.kill()
    expect((await response.text()).endsWith('data: [DONE]\n\n')).toBe(true)
    expect((await running.result).code).toBe(0)
  })
})
