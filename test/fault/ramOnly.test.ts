import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { verifies } from '../requirements/verifies.ts'
import { encodingsOf, findEncodings, newCanary } from './canary.ts'
import { testTimeoutMs } from './config.ts'
import type { ConversationInput } from './conversationProcess.ts'
import { collectWrites, type ExternalWrites, withoutIoUring, writingCalls } from './externalWrites.ts'
import { ensureStrace, runTraced } from './strace.ts'
import { parseTrace, traceOptions } from './straceOutput.ts'
import { createTempFolder } from './tempFolder.ts'

/** Writes of a program: by system calls, in the files left afterwards, and on its streams. */
type Traces = ExternalWrites & { readonly inFiles: readonly string[]; readonly stdout: string; readonly stderr: string }

const secret = newCanary()
const tab = `tab-${newCanary().slice(-24)}`
const secrets = [secret, tab]

/** Searches for the conversation in all writes of a run, and in the files of a folder. */
async function collectTraces(
  folder: string,
  run: (options: readonly string[]) => Promise<{ readonly stdout: string; readonly stderr: string }>,
): Promise<Traces> {
  using traceFolder = createTempFolder()
  const trace = join(traceFolder.path, 'trace')
  const { stdout, stderr } = await run([...traceOptions(trace, ...writingCalls), ...withoutIoUring])
  const inFiles = globSync(join(folder, '*')).flatMap((file) => findEncodings(readFileSync(file), secrets))
  return { ...collectWrites(parseTrace(readFileSync(trace, 'utf8')), secrets), inFiles, stdout, stderr }
}

const converse = (folder: string, conversation: Omit<ConversationInput, 'key' | 'secret'>): Promise<Traces> =>
  collectTraces(
    folder,
    (options) =>
      runTraced(
        options,
        ['test/fault/conversationProcess.ts'],
        JSON.stringify({ ...conversation, key: `tenant:${tab}`, secret }),
      ).result,
  )

/** Starts the server command, sends one HTTP request, and stops it. */
const serve = (folder: string, ...flags: readonly string[]): Promise<Traces> =>
  collectTraces(folder, async (options) => {
    const server = runTraced(options, ['src/cli/main.ts', 'serve', '--port', '0', '--json', ...flags])
    const [, url = ''] = await server.waitForOutput(/"url":"([^"]+)"/)
    const body = JSON.stringify({ model: 'any', messages: [{ role: 'user', content: `My parcel is ${secret}.` }] })
    const response = await fetch(`${url}/v1/tenant:${tab}/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    })
    expect([response.status, await response.text()]).toEqual([200, expect.stringContaining('"role":"assistant"')])
    server.stop()
    return server.result
  })

const noTraces = { leaks: [], inFiles: [], programs: 0, stderr: '' }
const fileNames = (folder: string, { files }: Traces): readonly string[] =>
  files.map((file) => file.replace(`${folder}/`, ''))

describe('a RAM-only conversation', () => {
  beforeAll(ensureStrace, testTimeoutMs)

  verifies(
    'E-02',
    'is written to no file, stream or other program',
    async () => {
      using folder = createTempFolder()
      expect(await converse(folder.path, { profile: 'ephemeral' })).toEqual({
        ...noTraces,
        files: [],
        stdout: 'true\n',
      })
    },
    testTimeoutMs,
  )

  verifies(
    ['E-02', 'T-03'],
    "is not written to the tenant's store, which is the only file written",
    async () => {
      using folder = createTempFolder()
      const traces = await converse(folder.path, { profile: 'support', store: `sqlite:${folder.path}/a.db` })
      expect(traces).toMatchObject({ ...noTraces, stdout: 'true\n' })
      expect(fileNames(folder.path, traces)).toEqual(['a.db', 'a.db-journal', 'a.db-shm', 'a.db-wal'])
      expect(readFileSync(join(folder.path, 'a.db')).includes('nine to five')).toBe(true)
    },
    testTimeoutMs,
  )

  verifies(
    'E-02',
    'through the server command and HTTP is written nowhere',
    async () => {
      using folder = createTempFolder()
      const traces = await serve(folder.path, '--profile', 'ephemeral')
      expect(traces).toMatchObject({ ...noTraces, files: [] })
      expect(findEncodings(Buffer.from(traces.stdout), secrets)).toEqual([])
    },
    testTimeoutMs,
  )
})

describe('the trace search', () => {
  beforeAll(ensureStrace, testTimeoutMs)

  it(
    'finds a conversation in a durable store',
    async () => {
      using folder = createTempFolder()
      const traces = await converse(folder.path, { profile: 'thread', store: `sqlite:${folder.path}/a.db` })
      expect(traces.leaks).toContain(`${folder.path}/a.db-wal: plain`)
      expect(traces.inFiles).toContain('plain')
    },
    testTimeoutMs,
  )

  it(
    'finds a conversation stored by the server command',
    async () => {
      using folder = createTempFolder()
      const traces = await serve(folder.path, '--profile', 'thread', '--store', `sqlite:${folder.path}/a.db`)
      expect(traces.leaks).toContain(`${folder.path}/a.db-wal: plain`)
      expect(traces.inFiles).toContain('plain')
    },
    testTimeoutMs,
  )

  it('finds every encoding of a text at every offset', () => {
    for (const [encoding, bytes] of Object.entries(encodingsOf(secret)))
      expect(findEncodings(Buffer.concat([Buffer.from('x'), bytes, Buffer.from('y')]), [secret])).toContain(encoding)
    for (const before of ['', 'a', 'ab'])
      expect(
        findEncodings(Buffer.from(Buffer.from(`${before}${secret} and so on`).toString('base64')), [secret]),
      ).toHaveLength(1)
    expect(findEncodings(Buffer.from(JSON.stringify({ secret })), [secret])).toEqual(['plain'])
    expect(findEncodings(Buffer.from('kanárek-'), [secret])).toEqual([])
  })
})
