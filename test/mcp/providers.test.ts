import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, vi } from 'vitest'
import { type ProviderConfig, Providers } from '../../src/mcp/providers/providers.ts'
import { fillTemplate } from '../../src/mcp/providers/query.ts'
import { startProgram } from '../cli/command.ts'
import { verifies } from '../requirements/verifies.ts'
import { root } from '../shape/source.ts'

const variables = { workspace: 'shop', session: 'session_1', text: 'Fix the {session} login' }
const program = join(root, 'test/mcp/providers/provider.ts')
/** Long enough for a busy machine. */
const longTimeout = 60_000
const exited = 'it exited, or sent more than 1048576 bytes, before it answered'

/** Configures a provider process. */
const stdio = (tool: string | undefined, more: Partial<ProviderConfig> = {}, ...faults: string[]): ProviderConfig => ({
  ...{
    command: process.execPath,
    args: [program, 'stdio', ...faults],
    timeout: longTimeout,
    ...(tool === undefined ? {} : { tool }),
  },
  ...more,
})

/** Queries providers once, checks the log, and returns the answers and the reasons of failures. */
async function gather(configs: Readonly<Record<string, ProviderConfig>>, on: 'save' | 'restore' = 'save') {
  const logged: string[] = []
  const providers = new Providers(configs, { log: (level, message) => logged.push(`${level}: ${message}`) })
  const { provided, degraded } = await providers.gather(on, variables)
  await providers.close()
  expect(logged.sort()).toEqual(degraded.map(({ step, why }) => `warning: Context ${step} is skipped: ${why}.`).sort())
  return { provided, why: Object.fromEntries(degraded.map(({ step, why }) => [step.replace('provider ', ''), why])) }
}

/** Runs the provider over HTTP during `work`. */
async function withHttpProvider<T>(work: (url: string) => Promise<T>): Promise<T> {
  const server = startProgram('test/mcp/providers/provider.ts', ['http'])
  try {
    return await work((await server.waitForOutput('/mcp\n')).trim())
  } finally {
    server.process.kill('SIGKILL')
    await server.result
  }
}

/** Runs an HTTP server with a single listener during `work`. */
async function withHttpServer<T>(listener: RequestListener, work: (url: string) => Promise<T>): Promise<T> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  try {
    return await work(`http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`)
  } finally {
    server.closeAllConnections()
    server.close()
  }
}

/** A zombie does not count as running. */
const isRunning = (pid: number): boolean =>
  /^\d/.test(execFileSync('sh', ['-c', `ps -o pid=,stat= -p ${pid} | grep -v Z || true`], { encoding: 'utf8' }).trim())

describe('context providers', () => {
  verifies(
    'H-15',
    'are queried with the variables of the session, over stdio and HTTP, in configuration order',
    () =>
      withHttpProvider(async (url) => {
        const query = { arguments: { query: '{text}', where: ['{workspace}/{session}', 7], deep: { '{text}': true } } }
        const { provided, why } = await gather({
          'over HTTP': { url, tool: 'echo', timeout: longTimeout, ...query },
          'over pipes': stdio('echo', query),
          'a resource': { url, resource: 'notes://{workspace}', timeout: longTimeout },
        })
        const echoed = '{"query":"Fix the {session} login","where":["shop/session_1",7],"deep":{"{text}":true}}'
        expect(why).toEqual({})
        expect(provided).toEqual([
          { from: 'over HTTP', text: echoed },
          { from: 'over pipes', text: echoed },
          { from: 'a resource', text: 'notes at notes://shop' },
        ])
      }),
    longTimeout,
  )

  verifies(
    'H-15',
    'are queried on the configured occasions only',
    async () => {
      const configs = { saving: stdio('echo', { on: ['save'] }), restoring: stdio('echo', { on: ['restore'] }) }
      expect((await gather(configs, 'save')).provided.map(({ from }) => from)).toEqual(['saving'])
      expect((await gather(configs, 'restore')).provided.map(({ from }) => from)).toEqual(['restoring'])
    },
    longTimeout,
  )

  verifies(
    'H-15',
    'are clipped, stripped of control characters, and reduced to text',
    async () => {
      const { provided } = await gather({
        long: stdio('long'),
        escapes: stdio('escapes'),
        pictures: stdio('pictures'),
      })
      expect(provided).toEqual([
        { from: 'long', text: `${'x'.repeat(20_000)}…` },
        { from: 'escapes', text: 'red [31mtext\ufffd' },
      ])
    },
    longTimeout,
  )

  verifies(
    'H-15',
    'that hang, crash, flood, fail or answer nonsense are skipped, and the others are used',
    async () => {
      const late = { timeout: 3_000 }
      const { provided, why } = await gather({
        hangs: stdio('hangs', late),
        dies: stdio('dies'),
        huge: stdio('huge'),
        floods: stdio('floods', late),
        nonsense: stdio('nonsense', late),
        fails: stdio('fails'),
        unknown: stdio('unknown'),
        ends: stdio('echo', {}, 'ends'),
        'floods at once': stdio('echo', late, 'floods'),
        absent: { command: '/nowhere/provider', tool: 'echo', timeout: longTimeout },
        good: stdio('echo'),
      })
      expect(provided).toEqual([{ from: 'good', text: '{}' }])
      expect(why).toEqual({
        hangs: 'timeout',
        dies: exited,
        huge: exited,
        floods: 'timeout',
        nonsense: 'timeout',
        fails: 'it answered with an error: no such ticket',
        unknown: expect.stringContaining('unknown'),
        ends: exited,
        'floods at once': 'timeout',
        absent: 'it cannot be started (ENOENT)',
      })
    },
    longTimeout,
  )

  const servers: readonly (readonly [what: string, listener: RequestListener, timeout: number, why: unknown])[] = [
    ['hangs', () => undefined, 300, 'timeout'],
    [
      'hangs after its headers',
      (_, response) => void response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders(),
      300,
      'timeout',
    ],
    [
      'closes the connection',
      (request) => request.socket.destroy(),
      longTimeout,
      expect.stringContaining('it cannot be reached ('),
    ],
    [
      'is no MCP server',
      (_, response) => void response.writeHead(404).end('nothing here'),
      longTimeout,
      expect.any(String),
    ],
    [
      'answers nonsense',
      (_, response) => void response.writeHead(200, { 'content-type': 'application/json' }).end('}{'),
      longTimeout,
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
      longTimeout,
      expect.any(String),
    ],
  ]
  for (const [what, listener, timeout, why] of servers)
    verifies(
      'H-15',
      `at a URL are skipped if the server ${what}`,
      () =>
        withHttpServer(listener, async (url) => {
          const result = await gather({
            faulty: { url: `${url}?key=s3cret`, headers: { authorization: 'Bearer s3cret' }, tool: 'echo', timeout },
          })
          expect(result).toEqual({ provided: [], why: { faulty: why } })
          expect(JSON.stringify(result)).not.toContain('s3cret')
        }),
      longTimeout,
    )

  verifies(
    'H-15',
    'get the configured headers, and processes get only the configured environment',
    async () => {
      const received: unknown[] = []
      await withHttpServer(
        (request, response) => {
          received.push(request.headers.authorization)
          response.writeHead(404).end()
        },
        (url) => gather({ one: { url, headers: { authorization: 'Bearer abc' }, tool: 'echo', timeout: longTimeout } }),
      )
      expect(new Set(received)).toEqual(new Set(['Bearer abc']))
      process.env.THREADKEEP_TEST_SECRET = 'hidden'
      const { provided } = await gather({ one: stdio('environment', { env: { TICKETS_KEY: 'abc' } }) })
      delete process.env.THREADKEEP_TEST_SECRET
      expect(provided[0]?.text.split(' ')).toContain('TICKETS_KEY')
      expect(provided[0]?.text).not.toContain('THREADKEEP_TEST_SECRET')
    },
    longTimeout,
  )

  verifies(
    'H-15',
    'that are processes are started once, restarted after a crash, and always killed on close',
    async () => {
      const folder = mkdtempSync(join(realpathSync(tmpdir()), 'threadkeep-providers-'))
      const pidFile = join(folder, 'pid')
      const pid = (): number => Number(readFileSync(pidFile, 'utf8'))
      const env = { PID_FILE: pidFile }
      const silent = { log: () => undefined }
      const providers = new Providers({ one: stdio('echo', { env }) }, silent)
      await providers.gather('save', variables)
      const first = pid()
      await providers.gather('restore', variables)
      expect([pid(), isRunning(first)]).toEqual([first, true])
      process.kill(first, 'SIGKILL')
      const results = [await providers.gather('save', variables), await providers.gather('save', variables)]
      expect(results.at(-1)?.provided).toEqual([{ from: 'one', text: '{}' }])
      expect(pid()).not.toBe(first)
      await providers.close()
      expect(isRunning(pid())).toBe(false)
      const stubborn = new Providers({ one: stdio('echo', { env, timeout: 2_000 }, 'stubborn') }, silent)
      expect((await stubborn.gather('save', variables)).degraded).toEqual([{ step: 'provider one', why: 'timeout' }])
      await stubborn.close()
      expect(isRunning(pid())).toBe(false)
      const wrapper = { command: 'sh', args: ['-c', '"$0" "$@"; true', process.execPath, program, 'stdio', 'stubborn'] }
      const wrapped = new Providers({ one: stdio('echo', { ...wrapper, env, timeout: 2_000 }) }, silent)
      expect((await wrapped.gather('save', variables)).degraded).toEqual([{ step: 'provider one', why: 'timeout' }])
      await wrapped.close()
      // The shell has ended; the kernel delivers the group's SIGKILL to its child a moment later.
      await vi.waitFor(() => expect(isRunning(pid())).toBe(false), { timeout: longTimeout / 2 })
      rmSync(folder, { recursive: true })
    },
    longTimeout,
  )

  verifies('H-15', 'without a timeout are skipped after five seconds, with one after that time', async () => {
    const timeouts: number[] = []
    const spy = vi.spyOn(AbortSignal, 'timeout').mockImplementation((ms) => {
      timeouts.push(ms)
      return AbortSignal.abort(new DOMException('The operation timed out.', 'TimeoutError'))
    })
    const url = 'http://127.0.0.1:9/mcp'
    const configs = { usual: { url, tool: 'echo' }, patient: { url, tool: 'echo', timeout: 7_000 } }
    expect((await gather(configs)).why).toEqual({ usual: 'timeout', patient: 'timeout' })
    expect(timeouts).toEqual([5_000, 7_000])
    spy.mockRestore()
  })

  it('with an aborted request reject with aborted', async () => {
    const providers = new Providers({ one: stdio('hangs') }, { log: () => expect.unreachable() })
    const stop = new AbortController()
    const gathering = providers.gather('save', variables, stop.signal)
    stop.abort()
    await expect(gathering).rejects.toMatchObject({ code: 'aborted' })
    await providers.close()
  }, 60_000)

  verifies(
    'H-15',
    'that are processes keep running for other callers when one aborts, during start and later',
    async () => {
      const providers = new Providers({ one: stdio('echo') }, { log: () => undefined })
      const abortOneOfTwo = async (): Promise<readonly string[]> => {
        const stop = new AbortController()
        const [aborted, other] = [providers.gather('save', variables, stop.signal), providers.gather('save', variables)]
        stop.abort()
        await expect(aborted).rejects.toMatchObject({ code: 'aborted' })
        return (await other).provided.map(({ from }) => from)
      }
      expect([await abortOneOfTwo(), await abortOneOfTwo()]).toEqual([['one'], ['one']])
      await providers.close()
    },
    longTimeout,
  )

  const leaks: readonly (readonly [what: string, config: ProviderConfig, why: string])[] = [
    [
      'the URL',
      { url: 'http://ann:s3cret@127.0.0.1:9/mcp', tool: 'echo', timeout: longTimeout },
      'Version negotiation probe failed: Request cannot be constructed from a URL that includes credentials: …',
    ],
    [
      'a header',
      {
        url: 'http://127.0.0.1:9/mcp',
        headers: { authorization: 'Bearer\ns3cret' },
        tool: 'echo',
        timeout: longTimeout,
      },
      'Version negotiation probe failed: Headers.append: "…" is an invalid header value.',
    ],
    [
      'a variable and control characters',
      stdio(undefined, { resource: 'leaks://all', env: { TICKETS_KEY: 's3cret' } }),
      'the key … [2J is wrong',
    ],
    [
      'a variable in a tool error',
      stdio('tells', { env: { TICKETS_KEY: 's3cret' } }),
      'it answered with an error: the key … is wrong',
    ],
  ]
  for (const [what, config, why] of leaks)
    verifies(
      'H-15',
      `that fail with ${what} in the message are reported without it`,
      async () => expect((await gather({ one: config })).why).toEqual({ one: why }),
      longTimeout,
    )

  it('replace each placeholder once', () => {
    expect(fillTemplate('{workspace} {session} {other} {text}', { ...variables, text: '{workspace}' })).toBe(
      'shop session_1 {other} {workspace}',
    )
  })

  it('require a tool or a resource', () => {
    const message = 'providers.one is ["command"]; it must be given either a tool or a resource.'
    expect(() => new Providers({ one: { command: 'x' } }, { log: () => undefined })).toThrow(message)
  })
})
