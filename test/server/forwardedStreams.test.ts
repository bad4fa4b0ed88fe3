import { once } from 'node:events'
import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import { verifies } from '../requirements/verifies.ts'
import { startRecordingServer } from './recordingServer.ts'
import { startServer } from './start.ts'

/** Opens an upload without ending it. */
function openUpload(url: string, headers: Readonly<Record<string, string>> = {}): ClientRequest {
  const upload = httpRequest(`${url}/v1/acme:ann/files`, { method: 'POST', headers, agent: false })
  upload.on('error', () => undefined)
  return upload
}

const responseTo = async (request: ClientRequest): Promise<IncomingMessage> => {
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  return response
}

const nextChunk = async (stream: IncomingMessage): Promise<string> => {
  const [chunk] = (await once(stream, 'data')) as [Buffer]
  return chunk.toString()
}

const errorOf = async (response: IncomingMessage): Promise<unknown> => {
  const { error } = JSON.parse((await buffer(response)).toString()) as { error: { code: string } }
  return [response.statusCode, error.code]
}

describe('forwarded streams', () => {
  verifies('F-05', 'request and response › arrive chunk by chunk while both are still open', async () => {
    await using upstream = await startRecordingServer()
    await using server = await startServer({ upstream: upstream.url })
    const intercepted = upstream.intercept()
    const upload = openUpload(server.url, { 'content-type': 'application/octet-stream' })
    upload.write('first')
    const [received, response] = await intercepted
    expect(await nextChunk(received)).toBe('first')
    response.writeHead(201, { 'x-early': 'yes' }).flushHeaders()
    const reply = await responseTo(upload)
    expect([reply.statusCode, reply.headers['x-early']]).toEqual([201, 'yes'])
    response.write('reply 1')
    expect(await nextChunk(reply)).toBe('reply 1')
    upload.write('second')
    expect(await nextChunk(received)).toBe('second')
    upload.end('third')
    expect((await buffer(received)).toString()).toBe('third')
    response.end('reply 2')
    expect((await buffer(reply)).toString()).toBe('reply 2')
  })

  it('a slow upstream › slows the client down instead of filling memory', async () => {
    await using upstream = await startRecordingServer()
    await using server = await startServer({ upstream: upstream.url })
    const intercepted = upstream.intercept()
    const upload = openUpload(server.url)
    let written = 0
    while (upload.write(Buffer.alloc(65_536)) || written < 1_000_000) written += 65_536
    const [received, response] = await intercepted
    received.pause()
    const stopped = await new Promise<number>((resolve) => {
      const writeMore = (): void => {
        clearTimeout(timer)
        timer = setTimeout(() => resolve(written), 500)
        while (upload.write(Buffer.alloc(65_536))) written += 65_536
        written += 65_536
      }
      let timer = setTimeout(() => resolve(written), 500)
      upload.on('drain', writeMore)
    })
    // Buffers of sockets hold a few megabytes.
    expect(stopped).toBeLessThan(32_000_000)
    received.resume()
    upload.removeAllListeners('drain').end()
    await once(received, 'end')
    response.end()
    expect((await responseTo(upload)).statusCode).toBe(200)
  })

  it('the declared length › is passed on, and a body without one is chunked', async () => {
    await using upstream = await startRecordingServer()
    await using server = await startServer({ upstream: upstream.url })
    for (const body of ['abc', null]) await (await fetch(`${server.url}/v1/files`, { method: 'POST', body })).text()
    expect(upstream.requests.map(({ headers }) => headers['content-length'])).toEqual(['3', '0'])
    for (const declared of [{}, { 'content-length': '3' }]) {
      const intercepted = upstream.intercept()
      const upload = openUpload(server.url, declared)
      upload.write('ab')
      const [{ headers }, response] = await intercepted
      const { 'transfer-encoding': encoding, 'content-length': length } = headers
      expect([encoding, length]).toEqual('content-length' in declared ? [undefined, '3'] : ['chunked', undefined])
      response.end()
      upload.end('c')
      await responseTo(upload)
    }
  })

  it('an upload above the limit › 413, before or while it is sent', async () => {
    await using upstream = await startRecordingServer()
    await using server = await startServer({ upstream: upstream.url, maxForwardBytes: 100_000 })
    const declared = openUpload(server.url, { 'content-length': '100001' })
    declared.write('x')
    expect(await errorOf(await responseTo(declared))).toEqual([413, 'body_too_large'])
    const intercepted = upstream.intercept()
    const chunked = openUpload(server.url, { 'transfer-encoding': 'chunked' })
    chunked.write(Buffer.alloc(90_000))
    const [received] = await intercepted
    received.resume()
    const aborted = new Promise((resolve) => received.on('error', () => undefined).on('close', resolve))
    chunked.write(Buffer.alloc(90_000))
    expect(await errorOf(await responseTo(chunked))).toEqual([413, 'body_too_large'])
    await aborted
    expect(received.complete).toBe(false)
    const exact = await fetch(`${server.url}/v1/files`, { method: 'POST', body: Buffer.alloc(100_000) })
    expect([exact.status, upstream.requests.length]).toEqual([200, 1])
    const { body } = await server.requestJson('GET /readyz')
    expect(body).toMatchObject({ status: 'ok' })
  })

  it('an upstream that responds before the upload ends › the client gets the response', async () => {
    await using upstream = await startRecordingServer()
    await using server = await startServer({ upstream: upstream.url })
    const intercepted = upstream.intercept()
    const upload = openUpload(server.url)
    upload.write('x'.repeat(1_000_000))
    const [, response] = await intercepted
    response.writeHead(422, { 'content-type': 'application/json' }).end('{"error":{"code":"bad_purpose"}}')
    expect(await errorOf(await responseTo(upload))).toEqual([422, 'bad_purpose'])
    upload.end('rest')
    await once(upload, 'close')
    expect(server.faults).toEqual([])
  })

  it('a client that disconnects › closes the request at the upstream', async () => {
    await using upstream = await startRecordingServer()
    await using server = await startServer({ upstream: upstream.url })
    for (const isUpload of [true, false]) {
      const intercepted = upstream.intercept()
      const upload = openUpload(server.url)
      if (isUpload) upload.write('x')
      else upload.end('x')
      const [received, response] = await intercepted
      received.resume()
      if (!isUpload) await once(received, 'end')
      const closed = once(response, 'close')
      upload.destroy()
      await closed
    }
    const { body } = await server.requestJson('GET /readyz')
    expect([body, server.faults]).toMatchObject([{ status: 'ok' }, []])
  })

  it('an upstream that breaks off › breaks off the response, or answers 502 before it began', async () => {
    await using upstream = await startRecordingServer()
    await using server = await startServer({ upstream: upstream.url })
    const early = upstream.intercept()
    const first = openUpload(server.url)
    first.end('x')
    const [, silent] = await early
    silent.destroy()
    expect(await errorOf(await responseTo(first))).toEqual([502, 'upstream'])
    const late = upstream.intercept()
    const second = openUpload(server.url)
    second.end('x')
    const [, broken] = await late
    broken.writeHead(200, { 'content-length': '100' }).write('half')
    const reply = await responseTo(second)
    await nextChunk(reply)
    broken.destroy()
    await expect(buffer(reply)).rejects.toThrow('aborted')
  })
})
