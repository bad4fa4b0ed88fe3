import { describe, expect, it } from 'vitest'
import { verifies } from '../../requirements/verifies.ts'
import { startServer, type TestServer, user } from '../start.ts'
import { createTestStores } from './testStores.ts'

const testStores = createTestStores()
const startedAt = Date.UTC(2026, 2, 2, 9)
const start = (store: string): Promise<TestServer> =>
  startServer({ clock: () => startedAt, memory: { store, clock: () => startedAt } })
type File = { readonly id: string; readonly status: string }

/** Uploads a file as a form. */
async function uploadForm(
  { url }: TestServer,
  path: string,
  name: string,
  content: string,
  type = 'text/plain',
): Promise<{ status: number; body: File }> {
  const form = new FormData()
  form.set('file', new Blob([content], { type }), name)
  const response = await fetch(`${url}${path}`, { method: 'POST', body: form })
  return { status: response.status, body: (await response.json()) as File }
}

/** Uploads a file as the whole body, with its name in a header. */
async function uploadRaw(
  { url }: TestServer,
  path: string,
  headers: Readonly<Record<string, string>>,
  body: string,
): Promise<{ status: number; body: File }> {
  const response = await fetch(`${url}${path}`, { method: 'POST', headers, body })
  return { status: response.status, body: (await response.json()) as File }
}

const handbook = '# Refunds\n\nRefunds take 14 days and need the receipt.\n'
const notAllowed = {
  error: {
    message: 'File uploads not allowed for ephemeral sessions',
    type: 'invalid_request_error',
    param: 'key',
    code: 'files_not_allowed',
  },
}

describe.each(testStores)('files API with %s', (_, store) => {
  verifies('T-10', 'uploads, lists, reads, searches and deletes files of one tenant', async () => {
    await using server = await start(store())
    const { status, body } = await uploadForm(
      server,
      '/api/scopes/acme/files',
      'handbook.md',
      handbook,
      'text/markdown',
    )
    const { id } = body
    const info = {
      id,
      name: 'handbook.md',
      type: 'text/markdown',
      bytes: 54,
      characters: 54,
      chunks: 1,
      at: startedAt,
      status: 'ready',
      done: 1,
    }
    expect([status, body]).toEqual([201, { ...info, sha256: expect.stringMatching(/^[0-9a-f]{64}$/) }])
    expect(await server.requestJson(`GET /api/scopes/acme/files/${id}`)).toEqual({ status: 200, body })
    const text = await fetch(`${server.url}/api/scopes/acme/files/${id}/text`)
    expect([text.headers.get('content-type'), await text.text()]).toEqual(['text/plain; charset=utf-8', handbook])
    expect(await server.requestJson('GET /api/scopes/acme/search?q=refunds')).toMatchObject({
      status: 200,
      body: {
        items: [
          {
            key: 'acme',
            from: 'files',
            entry: { kind: 'message', name: 'handbook.md', content: expect.stringContaining('14 days') },
          },
        ],
        next: null,
      },
    })
    expect(await server.requestJson('GET /api/sessions')).toEqual({ status: 200, body: { items: [], next: null } })
    expect(await server.requestJson('GET /api/scopes/other/files')).toEqual({
      status: 200,
      body: { items: [], next: null },
    })
    expect(await server.requestJson(`GET /api/scopes/other/files/${id}`)).toMatchObject({ status: 404 })
    expect(await server.requestJson(`DELETE /api/scopes/acme/files/${id}`)).toEqual({ status: 204, body: undefined })
    for (const request of [
      `GET /api/scopes/acme/files/${id}`,
      `GET /api/scopes/acme/files/${id}/text`,
      `DELETE /api/scopes/acme/files/${id}`,
    ])
      expect([request, (await server.requestJson(request)).status]).toEqual([request, 404])
    expect(await server.requestJson('GET /api/scopes/acme/search?q=refunds')).toEqual({
      status: 200,
      body: { items: [], next: null },
    })
  })

  it('with wait=false responds at once and reports the progress', async () => {
    await using server = await start(store())
    const { status, body } = await uploadForm(server, '/api/scopes/acme/files?wait=false', 'handbook.md', handbook)
    expect([status, body]).toMatchObject([202, { status: 'indexing', done: 0 }])
    // Uploading the same file again waits for the existing one.
    expect(await uploadForm(server, '/api/scopes/acme/files', 'handbook.md', handbook)).toMatchObject({
      status: 201,
      body: { id: body.id, status: 'ready' },
    })
    expect(await server.requestJson(`GET /api/scopes/acme/files/${body.id}`)).toMatchObject({
      status: 200,
      body: { status: 'ready', done: 1 },
    })
  })

  it('lists files in pages', async () => {
    await using server = await start(store())
    const ids: string[] = []
    for (const name of ['a.txt', 'b.txt', 'c.txt'])
      ids.push((await uploadRaw(server, '/api/scopes/acme/files', { 'x-filename': name }, `This is ${name}.`)).body.id)
    const first = (await server.requestJson('GET /api/scopes/acme/files?limit=2')).body as {
      items: File[]
      next: string
    }
    const rest = (await server.requestJson(`GET /api/scopes/acme/files?limit=2&after=${first.next}`)).body as {
      items: File[]
      next: null
    }
    expect([first.items.map(({ id }) => id), rest.items.map(({ id }) => id), rest.next]).toEqual([
      ids.slice(0, 2),
      ids.slice(2),
      null,
    ])
  })
})

describe('file upload', () => {
  verifies('T-09', 'is refused for the key of a session on every path', async () => {
    await using server = await start('ram:')
    await server.memory.append('acme:ann', [user('Hello')])
    for (const path of [
      '/api/sessions/acme:ann/files',
      '/api/sessions/acme:new/files',
      '/api/scopes/acme:ann/files',
      '/api/scopes/acme%3Aann/files',
    ]) {
      expect([path, await uploadForm(server, path, 'a.txt', 'Hello')]).toEqual([
        path,
        { status: 400, body: notAllowed },
      ])
      expect([
        path,
        await uploadRaw(server, path, { 'x-filename': 'a.txt', 'content-type': 'text/plain' }, 'Hello'),
      ]).toEqual([path, { status: 400, body: notAllowed }])
    }
    expect(await server.requestJson('GET /api/scopes/acme/files')).toEqual({
      status: 200,
      body: { items: [], next: null },
    })
    expect((await uploadForm(server, '/api/sessions/acme/files', 'a.txt', 'Hello')).status).toBe(201)
  })

  it('is refused without a name or with unreadable content', async () => {
    await using server = await startServer({ maxFileBytes: 1_000 })
    const invalid = [
      [{}, 'Hello', 'missing_name'],
      [{ 'x-filename': '%FF' }, 'Hello', 'missing_name'],
      [{ 'x-filename': '..%2Fetc%2Fpasswd' }, 'Hello', 'missing_name'],
      [{ 'x-filename': 'a.bin' }, '\u0000\u0001\u0002\u0003', 'bad-message'],
      [{ 'x-filename': 'a.txt' }, 'a'.repeat(1_001), 'body_too_large'],
    ] as const
    for (const [headers, content, code] of invalid)
      expect([code, (await uploadRaw(server, '/api/scopes/acme/files', headers, content)).body]).toMatchObject([
        code,
        { error: { code } },
      ])
    expect(await uploadRaw(server, '/api/scopes/acme/files?wait=no', { 'x-filename': 'a.txt' }, 'Hello')).toMatchObject(
      {
        status: 400,
        body: { error: { param: 'wait' } },
      },
    )
    expect(await uploadRaw(server, '/api/scopes/acme/files', { 'x-filename': '%E2%82%AC.txt' }, 'Hello')).toMatchObject(
      {
        status: 201,
        body: { name: '€.txt' },
      },
    )
  })
})
