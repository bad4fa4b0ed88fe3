import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { filled } from '../../src/mcp/providers/ask.ts'
import { type ProviderConfig, Providers } from '../../src/mcp/providers.ts'
import { start } from '../cli/command.ts'
import { verifies } from '../requirements/verifies.ts'
import { root } from '../shape/source.ts'

const about = { workspace: 'shop', session: 'session_1', text: 'Fix the {session} login' }
const program = join(root, 'test/mcp/providers/provider.ts')
const patient = 60_000
const ended = 'it ended, or sent more than 1048576 bytes, before it answered'

/** A provider that is a program, with a tool to be asked; patient, because the machine may be busy. */
const stdio = (tool: string | undefined, more: Partial<ProviderConfig> = {}, ...faults: string[]): ProviderConfig => ({
  ...{
    command: process.execPath,
    args: [program, 'stdio', ...faults],
    timeout: patient,
    ...(tool === undefined ? {} : { tool }),
  },
  ...more,
})

/** What providers say and what is said of those that say nothing; all are ended. */
async function gathered(configs: Readonly<Record<string, ProviderConfig>>, on: 'save' | 'restore' = 'save') {
  const logged: string[] = []
  const providers = new Providers(configs, { log: (level, message) => logged.push(`${level}: ${message}`) })
  const { provided, degraded } = await providers.gather(on, about)
  await providers.close()
  expect(logged.sort()).toEqual(
    degraded.map(({ step, why }) => `warning: The context ${step} is left out: ${why}.`).sort(),
  )
  return { provided, why: Object.fromEntries(degraded.map(({ step, why }) => [step.replace('provider ', ''), why])) }
}

/** Runs the provider over HTTP while something is done with its address. */
async function overHttp<T>(work: (url: string) => Promise<T>): Promise<T> {
  const server = start('test/mcp/providers/provider.ts', ['http'])
  try {
    return await work((await server.until('/mcp\n')).trim())
  } finally {
    server.process.kill('SIGKILL')
    await server.ended
  }
}

/** Answers every request in one way while something is done with the address. */
async function answering<T>(listener: RequestListener, work: (url: string) => Promise<T>): Promise<T> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  try {
    return await work(`http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`)
  } finally {
    server.closeAllConnections()
    server.close()
  }
}

/** One that has ended may wait for somebody to take note of it; it runs no more. */
const isRunning = (pid: number): boolean =>
  /^\d/.test(execFileSync('sh', ['-c', `ps -o pid=,stat= -p ${pid} | grep -v Z || true`], { encoding: 'utf8' }).trim())

describe('context providers', () => {
  verifies(
    'H-15',
    'are asked with what the session is about, over pipes and over HTTP, in the order they are configured in',
    () =>
      overHttp(async (url) => {
        const asked = { arguments: { query: '{text}', where: ['{workspace}/{session}', 7], deep: { '{text}': true } } }
        const { provided, why } = await gathered({
          'over HTTP': { url, tool: 'echo', timeout: patient, ...asked },
          'over pipes': stdio('echo', asked),
          'a resource': { url, resource: 'notes://{workspace}', timeout: patient },
        })
        const told = '{"query":"Fix the {session} login","where":["shop/session_1",7],"deep":{"{text}":true}}'
        expect(why).toEqual({})
        expect(provided).toEqual([
          { from: 'over HTTP', text: told },
          { from: 'over pipes', text: told },
          { from: 'a resource', text: 'notes at notes://shop' },
        ])
      }),
    patient,
  )

  verifies(
    'H-15',
    'are asked on the occasions they are configured for',
    async () => {
      const configs = { saving: stdio('echo', { on: ['save'] }), restoring: stdio('echo', { on: ['restore'] }) }
      expect((await gathered(configs, 'save')).provided.map(({ from }) => from)).toEqual(['saving'])
      expect((await gathered(configs, 'restore')).provided.map(({ from }) => from)).toEqual(['restoring'])
    },
    patient,
  )

  verifies(
    'H-15',
    'are data within bounds: so many characters, without control characters, of what is text',
    async () => {
      const { provided } = await gathered({
        long: stdio('long'),
        escapes: stdio('escapes'),
        pictures: stdio('pictures'),
      })
      expect(provided).toEqual([
        { from: 'long', text: `${'x'.repeat(20_000)}…` },
        { from: 'escapes', text: 'red [31mtext\ufffd' },
      ])
    },
    patient,
  )

  verifies(
    'H-15',
    'that hang, die, flood, fail or talk nonsense are left out, and the others are heard',
    async () => {
      const late = { timeout: 3_000 }
      const { provided, why } = await gathered({
        hangs: stdio('hangs', late),
        dies: stdio('dies'),
        huge: stdio('huge'),
        floods: stdio('floods', late),
        nonsense: stdio('nonsense', late),
        fails: stdio('fails'),
        unknown: stdio('unknown'),
        ends: stdio('echo', {}, 'ends'),
        'floods at once': stdio('echo', late, 'floods'),
        absent: { command: '/nowhere/provider', tool: 'echo', timeout: patient },
        good: stdio('echo'),
      })
      expect(provided).toEqual([{ from: 'good', text: '{}' }])
      expect(why).toEqual({
        hangs: 'timeout',
        dies: ended,
        huge: ended,
        floods: 'timeout',
        nonsense: 'timeout',
        fails: 'it answered with an error: no such ticket',
        unknown: expect.stringContaining('unknown'),
        ends: ended,
        'floods at once': 'timeout',
        absent: 'it cannot be started (ENOENT)',
      })
    },
    patient,
  )

  const servers: readonly (readonly [what: string, listener: RequestListener, timeout: number, why: unknown])[] = [
    ['hangs', () => undefined, 300, 'timeout'],
    [
      'hangs after its headers',
      (_, response) => void response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders(),
      300,
      'timeout',
    ],
    ['hangs up', (request) => request.socket.destroy(), patient, expect.stringContaining('it cannot be reached (')],
    ['is not one', (_, response) => void response.writeHead(404).end('nothing here'), patient, expect.any(String)],
    [
      'talks nonsense',
      (_, response) => void response.writeHead(200, { 'content-type': 'application/json' }).end('}{'),
      patient,
      expect.any(String),
    ],
    [
      'floods',
      (_, response) => {
        const more = (): void =>
          void (
            response.destroyed ||
            (response.write('x'.repeat(65_536)) ? setImmediate(more) : response.once('drain', more))
          )
        response.writeHead(200, { 'content-type': 'application/json' })
        more()
      },
      patient,
      expect.any(String),
    ],
  ]
  for (const [what, listener, timeout, why] of servers)
    verifies(
      'H-15',
      `at an address are left out where a server ${what}`,
      () =>
        answering(listener, async (url) => {
          const said = await gathered({
            faulty: { url: `${url}?key=s3cret`, headers: { authorization: 'Bearer s3cret' }, tool: 'echo', timeout },
          })
          expect(said).toEqual({ provided: [], why: { faulty: why } })
          expect(JSON.stringify(said)).not.toContain('s3cret')
        }),
      patient,
    )

  verifies(
    'H-15',
    'are sent the headers they are configured with, and programs see nothing of this process but what they are given',
    async () => {
      const seen: unknown[] = []
      await answering(
        (request, response) => {
          seen.push(request.headers.authorization)
          response.writeHead(404).end()
        },
        (url) => gathered({ one: { url, headers: { authorization: 'Bearer abc' }, tool: 'echo', timeout: patient } }),
      )
      expect(new Set(seen)).toEqual(new Set(['Bearer abc']))
      process.env.THREADKEEP_TEST_SECRET = 'hidden'
      const { provided } = await gathered({ one: stdio('environment', { env: { TICKETS_KEY: 'abc' } }) })
      delete process.env.THREADKEEP_TEST_SECRET
      expect(provided[0]?.text.split(' ')).toContain('TICKETS_KEY')
      expect(provided[0]?.text).not.toContain('THREADKEEP_TEST_SECRET')
    },
    patient,
  )

  verifies(
    'H-15',
    'that are programs are started once, started anew after a fault, and gone in the end, however stubborn',
    async () => {
      const folder = mkdtempSync(join(realpathSync(tmpdir()), 'threadkeep-providers-'))
      const pidFile = join(folder, 'pid')
      const pid = (): number => Number(readFileSync(pidFile, 'utf8'))
      const env = { PID_FILE: pidFile }
      const silent = { log: () => undefined }
      const providers = new Providers({ one: stdio('echo', { env }) }, silent)
      await providers.gather('save', about)
      const first = pid()
      await providers.gather('restore', about)
      expect([pid(), isRunning(first)]).toEqual([first, true])
      process.kill(first, 'SIGKILL')
      const again = [await providers.gather('save', about), await providers.gather('save', about)]
      expect(again.at(-1)?.provided).toEqual([{ from: 'one', text: '{}' }])
      expect(pid()).not.toBe(first)
      await providers.close()
      expect(isRunning(pid())).toBe(false)
      const stubborn = new Providers({ one: stdio('echo', { env, timeout: 2_000 }, 'stubborn') }, silent)
      expect((await stubborn.gather('save', about)).degraded).toEqual([{ step: 'provider one', why: 'timeout' }])
      await stubborn.close()
      expect(isRunning(pid())).toBe(false)
      const starter = { command: 'sh', args: ['-c', '"$0" "$@"; true', process.execPath, program, 'stdio', 'stubborn'] }
      const started = new Providers({ one: stdio('echo', { ...starter, env, timeout: 2_000 }) }, silent)
      expect((await started.gather('save', about)).degraded).toEqual([{ step: 'provider one', why: 'timeout' }])
      await started.close()
      expect(isRunning(pid())).toBe(false)
      rmSync(folder, { recursive: true })
    },
    patient,
  )

  it('are no longer waited for when nobody waits for them', async () => {
    const providers = new Providers({ one: stdio('hangs') }, { log: () => expect.unreachable() })
    const stop = new AbortController()
    const asked = providers.gather('save', about, stop.signal)
    stop.abort()
    await expect(asked).rejects.toMatchObject({ code: 'aborted' })
    await providers.close()
  }, 60_000)

  verifies(
    'H-15',
    'that are programs go on for others when somebody gives up, at the start and later',
    async () => {
      const providers = new Providers({ one: stdio('echo') }, { log: () => undefined })
      const started = async (): Promise<readonly string[]> => {
        const stop = new AbortController()
        const [given, other] = [providers.gather('save', about, stop.signal), providers.gather('save', about)]
        stop.abort()
        await expect(given).rejects.toMatchObject({ code: 'aborted' })
        return (await other).provided.map(({ from }) => from)
      }
      expect([await started(), await started()]).toEqual([['one'], ['one']])
      await providers.close()
    },
    patient,
  )

  const leaks: readonly (readonly [what: string, config: ProviderConfig, why: string])[] = [
    [
      'the address',
      { url: 'http://ann:s3cret@127.0.0.1:9/mcp', tool: 'echo', timeout: patient },
      'Version negotiation probe failed: Request cannot be constructed from a URL that includes credentials: …',
    ],
    [
      'a header',
      { url: 'http://127.0.0.1:9/mcp', headers: { authorization: 'Bearer\ns3cret' }, tool: 'echo', timeout: patient },
      'Version negotiation probe failed: Headers.append: "…" is an invalid header value.',
    ],
    [
      'a variable, with what a terminal would obey',
      stdio(undefined, { resource: 'leaks://all', env: { TICKETS_KEY: 's3cret' } }),
      'the key … [2J is wrong',
    ],
    [
      'a variable in an error it answers with',
      stdio('tells', { env: { TICKETS_KEY: 's3cret' } }),
      'it answered with an error: the key … is wrong',
    ],
  ]
  for (const [what, config, why] of leaks)
    verifies(
      'H-15',
      `that fail with ${what} in what they say are told of without it`,
      async () => expect((await gathered({ one: config })).why).toEqual({ one: why }),
      patient,
    )

  it('fill in each place once', () => {
    expect(filled('{workspace} {session} {other} {text}', { ...about, text: '{workspace}' })).toBe(
      'shop session_1 {other} {workspace}',
    )
  })

  it('need a tool or a resource to be asked for', () => {
    const message = 'providers.one is ["command"]; it must be given either a tool or a resource.'
    expect(() => new Providers({ one: { command: 'x' } }, { log: () => undefined })).toThrow(message)
  })
})
