import { describe, expect, it } from 'vitest'
import { verifies } from '../../requirements/verifies.ts'
import { type Started, startServer, user } from '../start.ts'
import { places } from './places.ts'

const began = Date.UTC(2026, 2, 2, 9)
const start = (store: string): Promise<Started> =>
  startServer({ clock: () => began, memory: { store, clock: () => began } })
type File = { readonly id: string; readonly status: string }

/** A file as a browser or curl sends it. */
async function upload(
  { url }: Started,
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

/** A file as it is, with its name in a header. */
async function put(
  { url }: Started,
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

describe.each(places)('files over HTTP, kept in %s', (_, store) => {
  verifies('T-10', 'are uploaded, listed, read, found and deleted, under their tenant alone', async () => {
    await using server = await start(store())
    const { status, body } = await upload(server, '/api/scopes/acme/files', 'handbook.md', handbook, 'text/markdown')
    const { id } = body
    const info = {
      id,
      name: 'handbook.md',
      type: 'text/markdown',
      bytes: 54,
      characters: 54,
      chunks: 1,
      at: began,
      status: 'ready',
      done: 1,
    }
    expect([status, body]).toEqual([201, { ...info, sha256: expect.stringMatching(/^[0-9a-f]{64}$/) }])
    expect(await server.ask(`GET /api/scopes/acme/files/${id}`)).toEqual({ status: 200, body })
    const text = await fetch(`${server.url}/api/scopes/acme/files/${id}/text`)
    expect([text.headers.get('content-type'), await text.text()]).toEqual(['text/plain; charset=utf-8', handbook])
    expect(await server.ask('GET /api/scopes/acme/search?q=refunds')).toMatchObject({
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
    expect(await server.ask('GET /api/sessions')).toEqual({ status: 200, body: { items: [], next: null } })
    expect(await server.ask('GET /api/scopes/other/files')).toEqual({ status: 200, body: { items: [], next: null } })
    expect(await server.ask(`GET /api/scopes/other/files/${id}`)).toMatchObject({ status: 404 })
    expect(await server.ask(`DELETE /api/scopes/acme/files/${id}`)).toEqual({ status: 204, body: undefined })
    for (const request of [
      `GET /api/scopes/acme/files/${id}`,
      `GET /api/scopes/acme/files/${id}/text`,
      `DELETE /api/scopes/acme/files/${id}`,
    ])
      expect([request, (await server.ask(request)).status]).toEqual([request, 404])
    expect(await server.ask('GET /api/scopes/acme/search?q=refunds')).toEqual({
      status: 200,
      body: { items: [], next: null },
    })
  })

  it('are answered at once for whoever does not wait, and tell how far they are', async () => {
    await using server = await start(store())
    const { status, body } = await upload(server, '/api/scopes/acme/files?wait=false', 'handbook.md', handbook)
    expect([status, body]).toMatchObject([202, { status: 'indexing', done: 0 }])
    // The same file again is the one that is there, and whoever waits for it does.
    expect(await upload(server, '/api/scopes/acme/files', 'handbook.md', handbook)).toMatchObject({
      status: 201,
      body: { id: body.id, status: 'ready' },
    })
    expect(await server.ask(`GET /api/scopes/acme/files/${body.id}`)).toMatchObject({
      status: 200,
      body: { status: 'ready', done: 1 },
    })
  })

  it('are listed page by page', async () => {
    await using server = await start(store())
    const ids: string[] = []
    for (const name of ['a.txt', 'b.txt', 'c.txt'])
      ids.push((await put(server, '/api/scopes/acme/files', { 'x-filename': name }, `This is ${name}.`)).body.id)
    const first = (await server.ask('GET /api/scopes/acme/files?limit=2')).body as { items: File[]; next: string }
    const rest = (await server.ask(`GET /api/scopes/acme/files?limit=2&after=${first.next}`)).body as {
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

describe('uploads', () => {
  verifies('T-09', 'are refused for a key with a session half, wherever they are sent', async () => {
    await using server = await start('ram:')
    await server.memory.append('acme:ann', [user('Hello')])
    for (const path of [
      '/api/sessions/acme:ann/files',
      '/api/sessions/acme:new/files',
      '/api/scopes/acme:ann/files',
      '/api/scopes/acme%3Aann/files',
    ]) {
      expect([path, await upload(server, path, 'a.txt', 'Hello')]).toEqual([path, { status: 400, body: notAllowed }])
      expect([path, await put(server, path, { 'x-filename': 'a.txt', 'content-type': 'text/plain' }, 'Hello')]).toEqual(
        [path, { status: 400, body: notAllowed }],
      )
    }
    expect(await server.ask('GET /api/scopes/acme/files')).toEqual({ status: 200, body: { items: [], next: null } })
    expect((await upload(server, '/api/sessions/acme/files', 'a.txt', 'Hello')).status).toBe(201)
  })

  it('need a name, and something that can be read', async () => {
    await using server = await startServer({ largestFile: 1_000 })
    const faults = [
      [{}, 'Hello', 'missing_name'],
      [{ 'x-filename': '%FF' }, 'Hello', 'missing_name'],
      [{ 'x-filename': '..%2Fetc%2Fpasswd' }, 'Hello', 'missing_name'],
      [{ 'x-filename': 'a.bin' }, '\u0000\u0001\u0002\u0003', 'bad-message'],
      [{ 'x-filename': 'a.txt' }, 'a'.repeat(1_001), 'body_too_large'],
    ] as const
    for (const [headers, content, code] of faults)
      expect([code, (await put(server, '/api/scopes/acme/files', headers, content)).body]).toMatchObject([
        code,
        { error: { code } },
      ])
    expect(await put(server, '/api/scopes/acme/files?wait=no', { 'x-filename': 'a.txt' }, 'Hello')).toMatchObject({
      status: 400,
      body: { error: { param: 'wait' } },
    })
    expect(await put(server, '/api/scopes/acme/files', { 'x-filename': '%E2%82%AC.txt' }, 'Hello')).toMatchObject({
      status: 201,
      body: { name: '€.txt' },
    })
  })
})
