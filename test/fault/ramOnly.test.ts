import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { verifies } from '../requirements/verifies.ts'
import { formsOf, foundIn, newCanary } from './canary.ts'
import type { Conversation } from './conversation.ts'
import { patience } from './counts.ts'
import { newFolder } from './folder.ts'
import { findStrace, watch } from './strace.ts'
import { callsOf, recorded } from './trace.ts'
import { type Writings, withoutRings, writing, writingsOf } from './writings.ts'

/** What a program put anywhere: by its calls, in its files as they are afterwards, and on its streams. */
type Traces = Writings & { readonly left: readonly string[]; readonly stdout: string; readonly stderr: string }

const says = newCanary()
const tab = `tab-${newCanary().slice(-24)}`
const secrets = [says, tab]

/** Looks for the conversation in everything a run has done, and in the files of a folder. */
async function tracesOf(
  folder: string,
  run: (options: readonly string[]) => Promise<{ readonly stdout: string; readonly stderr: string }>,
): Promise<Traces> {
  using beside = newFolder()
  const trace = join(beside.path, 'trace')
  const { stdout, stderr } = await run([...recorded(trace, ...writing), ...withoutRings])
  const left = globSync(join(folder, '*')).flatMap((file) => foundIn(readFileSync(file), secrets))
  return { ...writingsOf(callsOf(readFileSync(trace, 'utf8')), secrets), left, stdout, stderr }
}

const converse = (folder: string, conversation: Omit<Conversation, 'key' | 'says'>): Promise<Traces> =>
  tracesOf(
    folder,
    (options) =>
      watch(options, ['test/fault/conversation.ts'], JSON.stringify({ ...conversation, key: `tenant:${tab}`, says }))
        .ended,
  )

/** Starts the command, asks it something over HTTP, and stops it. */
const serve = (folder: string, ...flags: readonly string[]): Promise<Traces> =>
  tracesOf(folder, async (options) => {
    const server = watch(options, ['src/cli/main.ts', 'serve', '--port', '0', '--json', ...flags])
    const [, url = ''] = await server.until(/"url":"([^"]+)"/)
    const body = JSON.stringify({ model: 'any', messages: [{ role: 'user', content: `My parcel is ${says}.` }] })
    const response = await fetch(`${url}/v1/tenant:${tab}/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    })
    expect([response.status, await response.text()]).toEqual([200, expect.stringContaining('"role":"assistant"')])
    server.stop()
    return server.ended
  })

const nothing = { leaks: [], left: [], programs: 0, stderr: '' }
const names = (folder: string, { files }: Traces): readonly string[] =>
  files.map((file) => file.replace(`${folder}/`, ''))

describe('a conversation that lives in RAM', () => {
  beforeAll(findStrace, patience)

  verifies(
    'E-02',
    'is written to no file, no stream and no other program',
    async () => {
      using folder = newFolder()
      expect(await converse(folder.path, { profile: 'ephemeral' })).toEqual({ ...nothing, files: [], stdout: 'true\n' })
    },
    patience,
  )

  verifies(
    ['E-02', 'T-03'],
    "is not in the tenant's store beside it, which is the only file written",
    async () => {
      using folder = newFolder()
      const traces = await converse(folder.path, { profile: 'support', store: `sqlite:${folder.path}/a.db` })
      expect(traces).toMatchObject({ ...nothing, stdout: 'true\n' })
      expect(names(folder.path, traces)).toEqual(['a.db', 'a.db-journal', 'a.db-shm', 'a.db-wal'])
      expect(readFileSync(join(folder.path, 'a.db')).includes('nine to five')).toBe(true)
    },
    patience,
  )

  verifies(
    'E-02',
    'is as silent through the command and over HTTP',
    async () => {
      using folder = newFolder()
      const traces = await serve(folder.path, '--profile', 'ephemeral')
      expect(traces).toMatchObject({ ...nothing, files: [] })
      expect(foundIn(Buffer.from(traces.stdout), secrets)).toEqual([])
    },
    patience,
  )
})

describe('the search for it finds', () => {
  beforeAll(findStrace, patience)

  it(
    'a conversation that is kept',
    async () => {
      using folder = newFolder()
      const traces = await converse(folder.path, { profile: 'thread', store: `sqlite:${folder.path}/a.db` })
      expect(traces.leaks).toContain(`${folder.path}/a.db-wal: plain`)
      expect(traces.left).toContain('plain')
    },
    patience,
  )

  it(
    'one that is kept through the command',
    async () => {
      using folder = newFolder()
      const traces = await serve(folder.path, '--profile', 'thread', '--store', `sqlite:${folder.path}/a.db`)
      expect(traces.leaks).toContain(`${folder.path}/a.db-wal: plain`)
      expect(traces.left).toContain('plain')
    },
    patience,
  )

  it('every form of a text, wherever it stands', () => {
    for (const [form, bytes] of Object.entries(formsOf(says)))
      expect(foundIn(Buffer.concat([Buffer.from('x'), bytes, Buffer.from('y')]), [says])).toContain(form)
    for (const before of ['', 'a', 'ab'])
      expect(foundIn(Buffer.from(Buffer.from(`${before}${says} and so on`).toString('base64')), [says])).toHaveLength(1)
    expect(foundIn(Buffer.from(JSON.stringify({ says })), [says])).toEqual(['plain'])
    expect(foundIn(Buffer.from('kanárek-'), [says])).toEqual([])
  })
})
