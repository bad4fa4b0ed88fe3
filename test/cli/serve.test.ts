import { execFile } from 'node:child_process'
import { on } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { promisify } from 'node:util'
import { afterAll, describe, expect, it } from 'vitest'
import { replies, startUpstream } from '../providers/upstream.ts'
import { verifies } from '../requirements/verifies.ts'
import { command, type Running } from './command.ts'

const shell = promisify(execFile)

/** Where a server that has just been started listens. */
const urlOf = async (running: Running): Promise<string> => {
  const said = await running.until('curl ')
  return /^Threadkeep listens on (http:\/\/127\.0\.0\.1:\d+)\n/.exec(said)?.[1] ?? `no address in ${said}`
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

/** Resolves once standard error holds this text. */
const lineWith = async ({ process }: Running, text: string): Promise<void> => {
  let said = ''
  for await (const piece of on(process.stderr as Readable, 'data')) {
    said += String(piece)
    if (said.includes(text)) return
  }
}

const folder = mkdtempSync(join(tmpdir(), 'threadkeep-serve-'))
afterAll(() => rmSync(folder, { recursive: true }))

describe('threadkeep serve', () => {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    verifies(['S-01', 'S-02'], `serves with no key and no settings, and ends well on ${signal}`, async () => {
      const running = command(['serve', '--port', '0'], { THREADKEEP_STORE: '' }, mkdtempSync(join(folder, 'fresh-')))
      const url = await urlOf(running)
      expect((await running.until('"}]}\'')).split('\n')).toEqual([
        `Threadkeep listens on ${url}`,
        `threadkeep-offline answers; base URL for a client: ${url}/v1/demo:me (any tenant:session), API key: any; MCP: ${url}/mcp`,
        'Memory is kept in sqlite:threadkeep.db. Profile thread shows at most 16000 tokens.',
        'Try it, then ask what your cat is called:',
        `  curl ${url}/v1/demo:me/chat/completions -H 'content-type: application/json' -d '{"model":"any","messages":[{"role":"user","content":"My cat is called Miso."}]}'`,
        '',
      ])
      await ask(url, 'My cat is called Miso.')
      expect(await ask(url, 'What is my cat called?')).toBe('From what you told me: "My cat is called Miso."')
      running.process.kill(signal)
      expect(await running.ended).toMatchObject({ code: 0, stderr: '' })
    })
  }

  verifies('X-07', 'remembers what it was told when it is killed and started again', async () => {
    const home = mkdtempSync(join(folder, 'killed-'))
    const first = command(['serve', '--port', '0'], { THREADKEEP_STORE: '' }, home)
    await ask(await urlOf(first), 'My cat is called Miso.')
    first.process.kill('SIGKILL')
    await first.ended
    const second = command(['serve', '--port', '0'], { THREADKEEP_STORE: '' }, home)
    expect(await ask(await urlOf(second), 'What is my cat called?')).toBe(
      'From what you told me: "My cat is called Miso."',
    )
    second.process.kill()
    await second.ended
  })

  verifies('E-02', 'refuses a file for a profile that lives in RAM, and does not even make it', async () => {
    const home = mkdtempSync(join(folder, 'refused-'))
    const { code, stderr } = await command(['serve', '--store', 'sqlite:x.db', '--profile', 'ephemeral'], {}, home)
      .ended
    expect([code, stderr.startsWith('threadkeep: Profile ephemeral lives in RAM only'), readdirSync(home)]).toEqual([
      2,
      true,
      [],
    ])
  })

  verifies(['E-02', 'T-03'], 'makes no file for sessions that live in RAM, and says so', async () => {
    for (const [profile, kept] of [
      ['ephemeral', []],
      ['support', ['threadkeep.db']],
    ] as const) {
      const home = mkdtempSync(join(folder, `${profile}-`))
      const running = command(['serve', '--port', '0', '--profile', profile], { THREADKEEP_STORE: '' }, home)
      const url = await urlOf(running)
      await ask(url, 'My cat is called Miso.')
      expect(await running.until('\n')).toContain('is in RAM and is gone when this stops.')
      running.process.kill()
      await running.ended
      expect(readdirSync(home)).toEqual(kept)
      for (const file of kept) expect(readFileSync(join(home, file)).includes('Miso')).toBe(false)
    }
  })

  it('can be tried with the line it prints', async () => {
    const running = command(['serve', '--port', '0'])
    await urlOf(running)
    const line = (await running.until('"}]}\'')).split('\n').find((text) => text.includes('curl '))
    const { stdout } = await shell('sh', ['-c', `${line?.trim()} -s`])
    expect(JSON.parse(stdout)).toMatchObject({ object: 'chat.completion', model: 'threadkeep-offline' })
    running.process.kill()
    await running.ended
  })

  it('tells the address as JSON, with the settings it was given', async () => {
    await using upstream = await startUpstream(replies('Hello.'))
    const running = command(['serve', '--json', '--profile', 'support', '--budget', '500'], {
      THREADKEEP_PORT: '0',
      OPENAI_BASE_URL: upstream.url,
      OPENAI_API_KEY: 'sk-env',
    })
    const facts = JSON.parse(await running.until('}\n')) as { url: string }
    expect(facts).toEqual({
      url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
      answers: upstream.url,
      store: 'ram:',
      profile: 'support',
      budget: 500,
    })
    expect(await ask(facts.url, 'Hi')).toBe('Hello.')
    expect(upstream.requests[0]?.headers.authorization).toBe('Bearer sk-env')
    running.process.kill()
    expect((await running.ended).code).toBe(0)
  })

  it('is not open to others by mistake: it wants keys or to be told so', async () => {
    const home = mkdtempSync(join(folder, 'reached-'))
    const host = ['serve', '--port', '0', '--host', '0.0.0.0']
    const { code, stdout, stderr } = await command(host, {}, home).ended
    expect([
      code,
      stdout,
      stderr.startsWith('threadkeep: host is "0.0.0.0", which other machines can reach, but no keys are required'),
    ]).toEqual([2, '', true])
    const warning = '\nWARNING: whoever reaches this address can read and write memory (--open).\n'
    const open = command([...host, '--open'], {}, home)
    expect(await open.until('curl ')).toContain(warning)
    open.process.kill()
    await open.ended
    await command(['keys', 'create', '--scope', 'acme'], {}, home).ended
    const guarded = command(host, {}, home)
    const said = await guarded.until('"}]}\'')
    expect(said).not.toContain('WARNING')
    expect(said).toContain('(any tenant:session), API key: one from threadkeep keys create; MCP: ')
    expect(said).toContain(" -H 'authorization: Bearer tk_…' -d ")
    guarded.process.kill()
    await guarded.ended
  })

  it('logs what went wrong to standard error, and every request when it is told to', async () => {
    for (const [level, statuses] of [
      ['warn', [404]],
      ['info', [200, 404]],
    ] as const) {
      const running = command(['serve', '--port', '0', '--log', level])
      const url = await urlOf(running)
      await ask(url, 'My cat is called Miso.')
      await fetch(`${url}/nowhere`).then((response) => response.text())
      running.process.kill()
      const { stderr } = await running.ended
      const lines = stderr
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as { event: string; status?: number })
      expect(lines.filter(({ event }) => event === 'request').map(({ status }) => status)).toEqual(statuses)
      expect(stderr).not.toContain('Miso')
    }
  })

  verifies('T-17', 'takes over profiles that change in its file when it is told to look', async () => {
    const home = mkdtempSync(join(folder, 'changing-'))
    const file = join(home, 'threadkeep.config.json')
    const write = (budget: number): void =>
      writeFileSync(file, JSON.stringify({ profile: 'mine', profiles: { mine: { extends: 'thread', budget } } }))
    write(5_000)
    const running = command(['serve', '--port', '0', '--log', 'info'], {}, home)
    const url = await urlOf(running)
    expect(await running.until('tokens.')).toContain('Profile mine shows at most 5000 tokens.')
    const told = lineWith(running, '"event":"configured"')
    write(6_000)
    running.process.kill('SIGHUP')
    await told
    const body = JSON.stringify({ model: 'any', messages: [{ role: 'user', content: 'Hi' }] })
    const response = await fetch(`${url}/v1/demo:me/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    })
    expect(response.headers.get('x-threadkeep-tokens')).toMatch(/\/6000$/)
    running.process.kill()
    expect((await running.ended).code).toBe(0)
  })

  verifies('S-02', 'says in one line that a port is in use, and fails', async () => {
    const first = command(['serve', '--port', '0'])
    const port = new URL(await urlOf(first)).port
    const second = await command(['serve', '--port', port]).ended
    const third = await command(['serve', '--port', port, '--json']).ended
    first.process.kill()
    await first.ended
    const message = `Port ${port} of 127.0.0.1 is in use. Stop what listens there, or choose another with --port (0 takes a free one).`
    expect(second).toEqual({ code: 1, stdout: '', stderr: `threadkeep: ${message}\n` })
    expect([third.code, JSON.parse(third.stderr)]).toEqual([
      1,
      { error: { code: 'EADDRINUSE', message, param: 'port' } },
    ])
  })

  it('stops at once when it is asked twice', async () => {
    await using upstream = await startUpstream({ does: 'stall', pieces: ['One'] })
    const running = command(['serve', '--port', '0', '--log', 'info', '--upstream', upstream.url])
    const body = JSON.stringify({ model: 'any', stream: true, messages: [{ role: 'user', content: 'Count' }] })
    const url = await urlOf(running)
    const response = await fetch(`${url}/v1/demo:me/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    })
    const stopping = lineWith(running, '"event":"stopping"')
    running.process.kill()
    await stopping
    running.process.kill()
    expect((await running.ended).code).toBe(130)
    await expect(response.text()).rejects.toThrow()
  })

  it('lets a stream finish when it is asked to stop', async () => {
    await using upstream = await startUpstream({ does: 'reply', pieces: ['One', ' two'], split: true })
    const running = command(['serve', '--port', '0', '--upstream', upstream.url])
    const body = JSON.stringify({ model: 'any', stream: true, messages: [{ role: 'user', content: 'Count' }] })
    const response = await fetch(`${await urlOf(running)}/v1/demo:me/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    })
    running.process.kill()
    expect((await response.text()).endsWith('data: [DONE]\n\n')).toBe(true)
    expect((await running.ended).code).toBe(0)
  })
})
