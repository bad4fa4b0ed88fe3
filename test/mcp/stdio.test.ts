import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { readLines } from '../../src/mcp/transports/stdio.ts'
import { type RunningProcess, startCommand, startProgram } from '../cli/command.ts'
import { verifies } from '../requirements/verifies.ts'
import { createTempPaths } from '../stores/tempPaths.ts'

const fresh = createTempPaths()
const line = (message: object): string => `${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`
const initialize = line({
  id: 0,
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'raw', version: '1' } },
})
const initialized = line({ method: 'notifications/initialized' })
const toolCall = (id: number, name: string, args: object): string =>
  line({ id, method: 'tools/call', params: { name, arguments: args } })
const create = (id: number, name: string): string =>
  toolCall(id, 'create_entities', { entities: [{ name, entityType: 'person', observations: [] }] })

type Answer = {
  readonly id?: number | null
  readonly result?: Record<string, unknown>
  readonly error?: { readonly code: number; readonly message: string }
}
const answersIn = (stdout: string): readonly Answer[] =>
  stdout
    .split('\n')
    .filter(Boolean)
    .map((text) => JSON.parse(text) as Answer)
const answerTo = (stdout: string, id: number | null): Answer | undefined =>
  answersIn(stdout).find((answer) => answer.id === id)

/** Sends all input at once and closes stdin, like a pipe in a shell. */
const runWithInput = (input: string, args: readonly string[] = []) =>
  startProgram('src/cli/main.ts', ['mcp', ...args], {}, initialize + initialized + input).result

const startSession = async (args: readonly string[] = []): Promise<RunningProcess> => {
  const running = startCommand(['mcp', ...args])
  running.process.stdin?.write(initialize + initialized)
  await running.waitForOutput('"id":0}')
  return running
}

describe('readLines', () => {
  const chunks = (...texts: readonly string[]): AsyncIterable<Uint8Array> =>
    (async function* () {
      for (const text of texts) yield Buffer.from(text)
    })()
  const read = async (input: AsyncIterable<Uint8Array>, maxBytes: number): Promise<unknown[]> => {
    const lines: unknown[] = []
    for await (const inputLine of readLines(input, maxBytes)) lines.push(inputLine)
    return lines
  }

  it('joins lines across chunks', async () =>
    expect(await read(chunks('on', 'e\ntwo\nthr', 'ee'), 10)).toEqual([
      { text: 'one' },
      { text: 'two' },
      { text: 'three' },
    ]))

  it('yields the start and end of an oversized line, and reads the lines after it', async () => {
    const long = `{"a":"${'x'.repeat(5_000)}","id":7}`
    const [first, second] = (await read(chunks(long.slice(0, 3_000), `${long.slice(3_000)}\nnext\n`), 4_000)) as {
      start: string
      end: string
    }[]
    expect([first?.start.slice(0, 6), first?.end.slice(-9)]).toEqual(['{"a":"', 'x","id":7}'.slice(-9)])
    expect(second).toEqual({ text: 'next' })
  })
})

describe('threadkeep mcp', () => {
  verifies('S-04', 'answers all requests sent before stdin closed, then exits with 0', async () => {
    const { code, stdout, stderr } = await runWithInput(create(1, 'Ann') + create(2, 'Bob'))
    expect(code).toBe(0)
    expect(answerTo(stdout, 1)?.result).toMatchObject({ structuredContent: { entities: [{ name: 'Ann' }] } })
    expect(answerTo(stdout, 2)?.result).toMatchObject({ structuredContent: { entities: [{ name: 'Bob' }] } })
    expect(stderr).toBe('threadkeep: MCP server ready on standard input and output. Workspace: default. Store: ram:.\n')
  })

  verifies('S-04', 'writes only messages to standard output', async () => {
    const { stdout } = await runWithInput('garbage\n')
    expect(answersIn(stdout).every((answer) => 'jsonrpc' in answer)).toBe(true)
  })

  it('answers invalid lines with errors', async () => {
    const { stdout } = await runWithInput(
      `garbage\n${line({ id: 4 })}{"jsonrpc":"1.0","id":5,"method":"ping"}\n[]\n${line({ id: 6, method: 'ping' })}`,
    )
    expect(answerTo(stdout, null)?.error).toEqual({
      code: -32_700,
      message: 'The line is not JSON. Send one JSON-RPC message per line.',
    })
    expect(answerTo(stdout, 4)?.error).toEqual({ code: -32_600, message: 'The line is not a JSON-RPC 2.0 message.' })
    expect(answerTo(stdout, 5)?.error).toEqual({ code: -32_600, message: 'The line is not a JSON-RPC 2.0 message.' })
    expect(answerTo(stdout, 6)?.result).toEqual({})
  })

  it('rejects deeply nested messages and keeps working', async () => {
    const nested = (id: number, levels: number): string =>
      `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"upsert_entity","arguments":{"type":"a","id":"b","properties":{"deep":${'['.repeat(levels)}${']'.repeat(levels)}}}}}\n`
    const { stdout } = await runWithInput(nested(1, 60) + nested(2, 61) + nested(3, 1_000_000))
    const tooDeep = {
      code: -32_600,
      message: 'The message is nested deeper than 64 levels. Send deeply nested data as text.',
    }
    expect(answerTo(stdout, 1)?.result).toMatchObject({ structuredContent: { changed: true } })
    expect([2, 3].map((id) => answerTo(stdout, id)?.error)).toEqual([tooDeep, tooDeep])
  })

  it('rejects unknown tools, resources, methods and prompts', async () => {
    const unknown = [
      toolCall(1, 'drop_everything', {}),
      line({ id: 2, method: 'resources/read', params: { uri: 'file:///etc/passwd' } }),
    ]
    const { stdout } = await runWithInput(
      unknown.join('') +
        line({ id: 3, method: 'no/such/method' }) +
        line({ id: 4, method: 'prompts/get', params: { name: 'x' } }),
    )
    expect([1, 2, 3, 4].map((id) => answerTo(stdout, id)?.error)).toMatchObject([
      { code: -32_602, message: 'Tool drop_everything not found' },
      { message: 'Resource not found: file:///etc/passwd' },
      { code: -32_601, message: 'Method not found' },
      { code: -32_602, message: 'Prompt x not found' },
    ])
  })

  verifies('S-04', 'rejects an argument of 100 MB under its id and keeps working', async () => {
    const running = await startSession()
    const { stdin } = running.process
    if (stdin === null) throw new Error('no pipe')
    stdin.write('{"jsonrpc":"2.0","method":"tools/call","params":{"name":"search_nodes","arguments":{"query":"')
    const megabyte = Buffer.alloc(1_000_000, 'x')
    for (let sent = 0; sent < 100; sent++) if (!stdin.write(megabyte)) await once(stdin, 'drain')
    stdin.write(`"}},"id":9}\n${create(10, 'Ann')}`)
    const stdout = await running.waitForOutput('"id":10}')
    expect(answerTo(stdout, 9)?.error).toEqual({
      code: -32_600,
      message: 'The message is larger than 33554432 bytes. Send smaller messages.',
    })
    stdin.end()
    expect((await running.result).code).toBe(0)
  })

  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    it(`on ${signal} exits with 0 and keeps stored data`, async () => {
      const file = fresh()
      const running = await startSession(['--store', `sqlite:${file}`])
      running.process.stdin?.write(create(1, 'Ann'))
      await running.waitForOutput('"id":1}')
      running.process.kill(signal)
      expect((await running.result).code).toBe(0)
      const { stdout } = await runWithInput(toolCall(2, 'read_graph', {}), ['--store', `sqlite:${file}`])
      expect(answerTo(stdout, 2)?.result).toMatchObject({ structuredContent: { entities: [{ name: 'Ann' }] } })
    })
  }

  it('survives a disconnected client', async () => {
    const file = fresh()
    const running = await startSession(['--store', `sqlite:${file}`])
    running.process.stdout?.destroy()
    running.process.stdin?.end(create(1, 'Ann') + create(2, 'Bob'))
    expect((await running.result).code).toBe(0)
    const { stdout } = await runWithInput(toolCall(3, 'read_graph', {}), ['--store', `sqlite:${file}`])
    expect(answerTo(stdout, 3)?.result).toMatchObject({
      structuredContent: { entities: [{ name: 'Ann' }, { name: 'Bob' }] },
    })
  })

  verifies('S-04', 'imports the file of the reference server into an empty graph only', async () => {
    const [store, file] = [`sqlite:${fresh()}`, fresh('.jsonl')]
    const entity = (name: string): string =>
      `${JSON.stringify({ type: 'entity', name, entityType: 'person', observations: ['likes tea'] })}\n`
    writeFileSync(
      file,
      `${entity('Ann')}${entity('Bob')}{"type":"relation","from":"Ann","to":"Bob","relationType":"knows"}\n`,
    )
    const first = await runWithInput(toolCall(1, 'delete_entities', { entityNames: ['Bob'] }), [
      '--store',
      store,
      '--import',
      file,
    ])
    expect(first.stderr).toContain(`threadkeep: Imported 2 entities and 1 relation from ${file}.\n`)
    const again = startProgram(
      'src/cli/main.ts',
      ['mcp', '--store', store],
      { MEMORY_FILE_PATH: file },
      initialize + initialized + toolCall(2, 'read_graph', {}),
    )
    expect(answerTo((await again.result).stdout, 2)?.result).toMatchObject({
      structuredContent: {
        entities: [{ name: 'Ann', entityType: 'person', observations: ['likes tea'] }],
        relations: [],
      },
    })
  })

  it('imports nothing from an invalid file', async () => {
    const file = fresh('.jsonl')
    writeFileSync(file, '{"type":"entity","name":"Ann","entityType":"person","observations":[]}\n{"type":"cat"}\n')
    const message = `${file}, line 2 is neither an entity nor a relation of the reference memory server. Nothing was imported.`
    expect(await startCommand(['mcp', '--import', file]).result).toEqual({
      code: 1,
      stdout: '',
      stderr: `threadkeep: ${message}\n`,
    })
  })

  verifies('S-02', 'has help with examples and exit codes', async () => {
    const { code, stdout, stderr } = await startCommand(['mcp', '--help']).result
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toContain('\nExamples:\n  threadkeep mcp\n')
    expect(stdout).toContain('Exit codes: 0 success, 1 failure, 2 usage error, 130 interrupted.')
  })

  it('rejects invalid options', async () => {
    const wrong: readonly (readonly [args: readonly string[], message: string])[] = [
      [['--workspace', 'a b'], 'mcp.workspace is "a b"; it must be a workspace such as my-project, without a session.'],
      [
        ['--store', 'mysql://x'],
        'store is "mysql://x"; it must be ram:, sqlite:PATH, postgres://…, pglite:PATH or redis://….',
      ],
      [
        ['--config', '/no/such/file.json'],
        'The configuration /no/such/file.json cannot be used: it cannot be opened. Check the path and permissions.',
      ],
    ]
    for (const [args, message] of wrong)
      expect(await startCommand(['mcp', ...args]).result).toEqual({
        code: 2,
        stdout: '',
        stderr: `threadkeep: ${message}\n`,
      })
  })
})
