import { renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { type ErrorCode, MemoryError } from '../../src/domain/error.ts'
import { toClientError } from '../../src/mcp/errors.ts'
import { errorHeaders, HttpError, statusByCode, toErrorResponse } from '../../src/server/http/httpError.ts'
import { toMemoryError } from '../../src/stores/sqlite/errors.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { mountSmallDisk } from '../fault/smallDisk.ts'
import { verifies } from '../requirements/verifies.ts'
import { createTempPaths } from '../stores/tempPaths.ts'
import { assistant, startServer, type TestServer, user } from './start.ts'
import { openTestSession } from './turn/testSession.ts'

const newPath = createTempPaths()
const secretPath = '/srv/private/memory.db'
const sql = 'near "SELECT": syntax error'

/** Status, code, and whether the client sees the text of the error. */
const responses: Readonly<Record<ErrorCode, readonly [status: number, code: string, showsText: boolean]>> = {
  'bad-key': [400, 'bad-key', true],
  'bad-message': [400, 'bad-message', true],
  'bad-option': [400, 'bad-option', true],
  'bad-profile': [400, 'bad-profile', true],
  'bad-bundle': [400, 'bad-bundle', true],
  'budget-too-small': [400, 'budget-too-small', true],
  full: [429, 'full', true],
  erased: [409, 'erased', true],
  conflict: [409, 'conflict', true],
  moved: [410, 'moved', true],
  closed: [503, 'closed', false],
  busy: [503, 'busy', false],
  'not-durable': [503, 'not-durable', false],
  'file-changed': [503, 'file-changed', false],
  'disk-full': [507, 'disk-full', false],
  corrupt: [500, 'corrupt', false],
  'bad-store': [500, 'bad-store', false],
  'bad-secret': [500, 'bad-secret', false],
  aborted: [500, 'internal', false],
  upstream: [502, 'upstream', true],
  timeout: [504, 'timeout', true],
}

describe('toErrorResponse', () => {
  it('masks a secret in the name of the field that is wrong', () => {
    const name = `gh${'p_'}${'aB3dE5gH7jK9'.repeat(3)}`
    for (const error of [
      new HttpError(400, 'unknown_field', 'Unknown field.', name),
      new MemoryError('bad-option', 'Unknown option.', { param: name }),
    ])
      expect(toErrorResponse(error).error.param).toBe('⟨secret:0⟩')
  })

  it('maps every error code to a status, and shows the text only of errors that are about the request', () => {
    expect(Object.keys(statusByCode).sort()).toEqual(Object.keys(responses).sort())
    for (const [code, [status, clientCode, showsText]] of Object.entries(responses)) {
      const error = new MemoryError(code as ErrorCode, `${secretPath}: ${sql}`, { cause: new Error(sql) })
      const response = toErrorResponse(error)
      expect([code, response.status, response.error.code]).toEqual([code, status, clientCode])
      expect([code, response.error.message.includes(secretPath)]).toEqual([code, showsText])
      expect([code, errorHeaders(error)['retry-after']]).toEqual([code, status === 503 ? '2' : undefined])
      if (code !== 'aborted')
        expect([code, toClientError(error).message.includes(secretPath)]).toEqual([code, showsText])
    }
    expect(toErrorResponse(new MemoryError('corrupt', secretPath)).error.message).toContain('threadkeep doctor')
  })
})

it('toMemoryError › with a full disk, as SQLite or the file system says it › is disk-full', () => {
  for (const fields of [{ errcode: 13 }, { code: 'ENOSPC' }])
    expect(toMemoryError(Object.assign(new Error('full'), fields), secretPath)).toMatchObject({ code: 'disk-full' })
})

async function post(
  server: TestServer,
  content: string,
): Promise<readonly [status: number, code: unknown, text: string]> {
  const response = await server.postChat('demo:me', { messages: [{ role: 'user', content }] })
  const text = await response.text()
  return [response.status, (JSON.parse(text) as { error?: { code?: unknown } }).error?.code, text]
}

describe('a server whose store fails', () => {
  verifies('R-05', 'with a deleted file › answers 503 without paths, is not ready, and logs the path', async () => {
    const path = newPath()
    await using server = await startServer({ memory: { store: sqliteStore(path, { onWarning: () => undefined }) } })
    expect((await post(server, 'one'))[0]).toBe(200)
    renameSync(path, `${path}.old`)
    const [status, code, text] = await post(server, 'two')
    expect([status, code, text.includes(path)]).toEqual([503, 'file-changed', false])
    const health = await server.requestJson('GET /readyz')
    expect([health.status, JSON.stringify(health.body).includes(path)]).toEqual([503, false])
    expect(JSON.stringify(health.body)).toContain('file-changed: The file of the store was deleted or replaced')
    expect(server.faults.join()).toContain(`${path} was deleted or moved while it was open`)
    renameSync(`${path}.old`, path)
    expect((await post(server, 'two'))[0]).toBe(200)
    expect((await server.requestJson('GET /readyz')).status).toBe(200)
  })

  verifies('C-11', 'with a file that goes before the reply › relays it, and says that it is not stored', async () => {
    const path = newPath()
    const store = sqliteStore(path, { onWarning: () => undefined })
    await using session = await openTestSession({ memory: { store } })
    const hold = session.model.hold('one')
    const answer = session.chat([user('one')])
    await hold.arrived
    renameSync(path, `${path}.old`)
    hold.release()
    const { status, headers, body } = await answer
    expect([status, body.choices[0].message.content]).toEqual([200, 'Re: one'])
    expect(headers.get('x-threadkeep-degraded')).toBe('reply-not-stored')
    renameSync(`${path}.old`, path)
    const metrics = await (await fetch(`${session.server.url}/metrics`)).text()
    expect(metrics).toMatch(/degrad\w*\{[^}]*reply-not-stored[^}]*\} 1\n/)
    expect(metrics).toMatch(/messages_appended_total\{[^}]*\} 1\n/)
    const { headers: next } = await session.chat([user('one'), assistant('Re: one'), user('two')])
    expect(next.get('x-threadkeep-degraded')).toBe(null)
    expect(await session.transcript()).toEqual(['user: one', 'assistant: Re: one', 'user: two', 'assistant: Re: two'])
  })

  it('with a full disk › answers 507 without paths, and works again when there is space', async ({ skip }) => {
    using disk = mountSmallDisk(3_000_000)
    if (disk === undefined) return skip('no permission to mount a file system')
    const filler = join(disk.path, 'filler')
    writeFileSync(filler, Buffer.alloc(1_500_000))
    await using server = await startServer({ memory: { store: `sqlite:${join(disk.path, 'a.db')}` } })
    let outcome = await post(server, 'x'.repeat(200_000))
    for (let turns = 0; turns < 20 && outcome[0] === 200; turns++) outcome = await post(server, 'x'.repeat(200_000))
    expect([outcome[0], outcome[1], outcome[2].includes(disk.path)]).toEqual([507, 'disk-full', false])
    expect(server.faults.join()).toContain(disk.path)
    rmSync(filler)
    expect((await post(server, 'small'))[0]).toBe(200)
  })
})
