import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  afterPendingReads,
  type MinTransferRate,
  readBytes,
  readJson,
  readUpload,
} from '../../../src/server/http/body.ts'
import { HttpError, toErrorResponse } from '../../../src/server/http/httpError.ts'

type BodyReader = (request: IncomingMessage) => Promise<unknown>

/** Server that reads bodies and responds with the result, or with the error and the `connection` header. */
async function startBodyServer(
  read: BodyReader,
): Promise<AsyncDisposable & { readonly port: number; readonly url: string }> {
  const server = createServer(async (request, response) => {
    try {
      response.end(JSON.stringify(await read(request)))
    } catch (error) {
      const { status, ...problem } = toErrorResponse(error)
      response.writeHead(status, error instanceof HttpError ? error.headers : {}).end(JSON.stringify(problem))
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const close = async (): Promise<void> => {
    server.closeAllConnections()
    await new Promise((closed) => server.close(closed))
  }
  return { port, url: `http://127.0.0.1:${port}`, [Symbol.asyncDispose]: close }
}

const parseResponse = async (response: Response): Promise<unknown> => {
  const body = (await response.json()) as { error?: { code: string; message: string } }
  return body.error === undefined ? body : `${response.status} ${body.error.code}: ${body.error.message}`
}
const json = { 'content-type': 'application/json' }
const tooDeep = '400 too_deep: The body is nested deeper than 64 levels. Send deep data as text.'

describe('a JSON body', () => {
  const nested = (levels: number, filler = ''): string =>
    `{"filler":"${filler}","a":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}}`
  const large = 'x'.repeat(70_000)

  it('nested deeper than 64 levels › is refused, whatever its size', async () => {
    await using server = await startBodyServer(async (request) => Object.keys(await readJson(request, 10_000_000)))
    const post = async (body: string) => parseResponse(await fetch(server.url, { method: 'POST', headers: json, body }))
    for (const filler of ['', large]) {
      expect(await post(nested(64, filler))).toEqual(['filler', 'a'])
      expect(await post(nested(65, filler))).toBe(tooDeep)
      expect(await post(nested(66, filler).replaceAll('[', '{"b":[').replaceAll(']', ']}'))).toBe(tooDeep)
      expect(await post(`{"filler":"${filler}","a":${'[],'.repeat(100)}[]}`)).toBe(
        '400 invalid_json: The body is not valid JSON in UTF-8.',
      )
      expect(await post(`{"filler":"${filler}","a":[${'[],'.repeat(100)}[]]}`)).toEqual(['filler', 'a'])
      expect(await post(`{"filler":"${filler}${'\\"[\\\\'.repeat(300)}","a":"]["}`)).toEqual(['filler', 'a'])
    }
    expect(await post(nested(4_000_000))).toBe(tooDeep)
    expect(await post(`{"a":"${large}`)).toBe('400 invalid_json: The body is not valid JSON in UTF-8.')
  })

  it('of megabytes › keeps every character, and only drops a byte order mark at its start', async () => {
    await using server = await startBodyServer(async (request) => readJson(request, 10_000_000))
    const post = async (body: Uint8Array) =>
      parseResponse(await fetch(server.url, { method: 'POST', headers: json, body: Buffer.from(body) }))
    for (const sign of ['é', '漢', '😀', '\ufeff'])
      for (const start of ['', 'x', 'xx', 'xxx']) {
        const value = { start, text: sign.repeat(2_200_000 / Buffer.byteLength(sign)) }
        expect((await post(Buffer.from(`\ufeff${JSON.stringify(value)}`))) as typeof value).toEqual(value)
      }
    for (const byte of [0x80, 0xe6, 0xff])
      for (const at of [0, 600_000, 1_200_000, 1_199_998]) {
        const body = Buffer.from(JSON.stringify({ text: 'x'.repeat(1_200_000) }))
        body[at] = byte
        expect(await post(body)).toBe('400 invalid_json: The body is not valid JSON in UTF-8.')
      }
  })

  it('with over 500,000 values or 100,000 fields › is refused, whatever its strings contain', async () => {
    await using server = await startBodyServer(async (request) => Object.keys(await readJson(request, 10_000_000)))
    const post = async (body: string) => parseResponse(await fetch(server.url, { method: 'POST', headers: json, body }))
    const tooMany =
      '413 too_many_values: The body contains more than 500000 values or 100000 fields. Send less at once, or large data as text.'
    expect(await post(`{"a":[${'1,'.repeat(499_997)}1],"b":",,,"}`)).toEqual(['a', 'b'])
    expect(await post(`{"a":[${'1,'.repeat(499_998)}1],"b":",,,"}`)).toBe(tooMany)
    expect(await post(`{"a":[${'[],'.repeat(1_000_000)}1]}`)).toBe(tooMany)
    expect(await post(`{"a":[${'{"b":1},'.repeat(99_999)}1]}`)).toEqual(['a'])
    expect(await post(`{"a":[${'{"b":1},'.repeat(100_000)}1]}`)).toBe(tooMany)
    expect(await post(`{"a":"${'{\\":1},'.repeat(1_000_000)}"}`)).toEqual(['a'])
    expect(await post(`{"a":${'1'.repeat(100_000)}}`)).toBe(
      '400 invalid_number: The body contains a number of thousands of digits. Send it as text.',
    )
  })

  it('in one packet with its head or in pieces › is read and refused alike', async () => {
    let requestReceived = Promise.withResolvers<IncomingMessage>()
    await using server = await startBodyServer((request) => {
      requestReceived.resolve(request)
      return readJson(request, 20)
    })
    /** Sends the first piece with the head; each piece is read before the next is sent. */
    const post = async (first: string, ...pieces: readonly string[]): Promise<string | undefined> => {
      requestReceived = Promise.withResolvers()
      const socket = connect(server.port, '127.0.0.1')
      const answer = once(socket, 'data')
      const length = first.length + pieces.join('').length
      socket.write(
        `POST / HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n\r\n${first}`,
      )
      const request = await requestReceived.promise
      for (const piece of pieces) {
        while (request.listenerCount('data') === 0) await new Promise(setImmediate)
        const read = once(request, 'data')
        socket.write(piece)
        await read
      }
      const text = String(((await answer) as [Buffer])[0])
      socket.destroy()
      return /(?:\r\n\r\n|"code":")(\{"a[^"]*"[^\r]*|[a-z_]+)/.exec(text)?.[1]
    }
    expect([await post('{"a":[1]}'), await post('', '{"a":[1]}'), await post('{"a', '":[', '1]}')]).toEqual([
      '{"a":[1]}',
      '{"a":[1]}',
      '{"a":[1]}',
    ])
    expect([await post(''), await post('{"a":'), await post('', '{"a":')]).toEqual([
      'invalid_json',
      'invalid_json',
      'invalid_json',
    ])
    expect([await post('"aaaaaaaaaaaaaaaaaaaaa"'), await post('"aaaaa', 'aaaaaaaaaaaaaaaa"')]).toEqual([
      'body_too_large',
      'body_too_large',
    ])
  })

  it('with any strings › equals JSON.parse', async () => {
    await using server = await startBodyServer((request) => readJson(request, 10_000_000))
    const text = fc.string({ unit: fc.constantFrom('"', '\\', '[', '{', ']', '}', 'a', '\n', 'é'), maxLength: 200 })
    await fc.assert(
      fc.asyncProperty(text, fc.constantFrom('', large), async (text, filler) => {
        const body = { said: text, [text]: [filler] }
        expect(
          await parseResponse(await fetch(server.url, { method: 'POST', headers: json, body: JSON.stringify(body) })),
        ).toEqual(body)
      }),
      { numRuns: 50 },
    )
  })
})

describe('body bytes', () => {
  it('compressed › are refused with a reason', async () => {
    await using server = await startBodyServer(async (request) => (await readBytes(request, 1000)).length)
    const post = (encoding: string) =>
      fetch(server.url, {
        method: 'POST',
        headers: { 'content-encoding': encoding },
        body: gzipSync('{"messages":[]}'),
      })
    const message = '415 unsupported_media_type: The body has content-encoding: gzip. Send it uncompressed.'
    const refused = await post('gzip')
    expect([await parseResponse(refused), refused.headers.get('accept-encoding')]).toEqual([message, 'identity'])
    expect(await parseResponse(await post('Identity'))).toBe(35)
  })

  it('over the limit › are refused with a reason, and far more are not read', async () => {
    await using server = await startBodyServer(async (request) => (await readBytes(request, 1000)).length)
    const post = (size: number) => fetch(server.url, { method: 'POST', body: Buffer.alloc(size) })
    expect(await parseResponse(await post(1000))).toBe(1000)
    const tooLarge = '413 body_too_large: The body is larger than 1000 bytes.'
    expect([await parseResponse(await post(1001)), await parseResponse(await post(10_000))]).toEqual([
      tooLarge,
      tooLarge,
    ])
    const socket = connect(server.port, '127.0.0.1')
    socket.write(`POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n1388\r\n${'x'.repeat(5000)}`)
    const [answer] = (await once(socket, 'data')) as [Buffer]
    expect(answer.toString()).toMatch(/^HTTP\/1\.1 413 [\s\S]*\r\nconnection: close\r\n/)
    await once(socket, 'close')
  })

  /** Timer under the test's control. */
  function createManualTimer(): MinTransferRate & { fire(): void; readonly pendingCount: number } {
    const waiting = new Set<() => void>()
    const alarm: MinTransferRate['startTimer'] = (_, ring) => {
      waiting.add(ring)
      return () => void waiting.delete(ring)
    }
    const fire = (): void => {
      for (const bell of [...waiting]) {
        waiting.delete(bell)
        bell()
      }
    }
    return {
      intervalMs: 10_000,
      bytes: 4,
      startTimer: alarm,
      fire: fire,
      get pendingCount() {
        return waiting.size
      },
    }
  }

  /** Sends a body in pieces; each piece is read before the next is sent. */
  async function sendInPieces(pieces: readonly string[], pace: ReturnType<typeof createManualTimer>): Promise<string> {
    const requestReceived = Promise.withResolvers<IncomingMessage>()
    await using server = await startBodyServer((request) => {
      requestReceived.resolve(request)
      return readBytes(request, 1000, pace).then(String)
    })
    const socket = connect(server.port, '127.0.0.1')
    const answer = once(socket, 'data').then(([bytes]) => String(bytes))
    socket.write(`POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 12\r\n\r\n`)
    const request = await requestReceived.promise
    for (const piece of pieces) {
      if (piece !== '') {
        const read = once(request, 'data')
        socket.write(piece)
        await read
      }
      if (request.complete) break
      pace.fire()
    }
    const text = await answer
    socket.destroy()
    return text
  }

  it('below the minimum transfer rate › are refused', async () => {
    const late =
      /^HTTP\/1\.1 408 [\s\S]*\r\nconnection: close\r\n[\s\S]*The body arrived too slowly: less than 4 bytes in 10 seconds\. Try again\./
    const steady = createManualTimer()
    expect(await sendInPieces(['abcd', 'efgh', 'ijkl'], steady)).toMatch(/^HTTP\/1\.1 200 [\s\S]*"abcdefghijkl"$/)
    expect(steady.pendingCount).toBe(0)
    for (const pieces of [[''], ['abc'], ['abcdefgh', 'i'], ['abcd', '']]) {
      const pace = createManualTimer()
      expect(await sendInPieces(pieces, pace)).toMatch(late)
      expect(pace.pendingCount).toBe(0)
    }
  })

  it('of an aborted request › are discarded', async () => {
    const pace = createManualTimer()
    const abortReason = Promise.withResolvers<string>()
    const requestReceived = Promise.withResolvers<void>()
    await using server = await startBodyServer((request) => {
      requestReceived.resolve()
      return readBytes(request, 1000, pace).catch((error: Error) => abortReason.resolve(error.message))
    })
    const socket = connect(server.port, '127.0.0.1')
    socket.write('POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 12\r\n\r\nabc')
    await requestReceived.promise
    socket.destroy()
    expect([await abortReason.promise, pace.pendingCount]).toEqual(['aborted', 0])
  })
})

describe('an upload', () => {
  const describeUpload: BodyReader = async (request) => {
    const { name, type, bytes } = await readUpload(request, 100_000)
    return { name, type, text: Buffer.from(bytes).toString('latin1') }
  }
  const form = (...parts: string[]): string => `${parts.map((part) => `--XX\r\n${part}\r\n`).join('')}--XX--\r\n`
  const file = (disposition: string, body = 'hello') =>
    `Content-Disposition: form-data; ${disposition}\r\nContent-Type: text/plain\r\n\r\n${body}`

  const text = (field: string) => `Content-Disposition: form-data; name="${field}"\r\n\r\n1`

  it('by fetch › arrives byte for byte', async () => {
    await using server = await startBodyServer(describeUpload)
    const bytes = Uint8Array.from({ length: 3000 }, (_, at) => at % 256)
    const data = new FormData()
    data.set('file', new File([bytes, '\r\n--XX\r\n'], 'hand "book" ä.txt', { type: 'text/markdown' }))
    expect(await parseResponse(await fetch(server.url, { method: 'POST', body: data }))).toEqual({
      name: 'hand "book" ä.txt',
      type: 'text/markdown',
      text: `${Buffer.from(bytes).toString('latin1')}\r\n--XX\r\n`,
    })
  })

  const post = async (url: string, body: string, type = 'multipart/form-data; boundary=XX') =>
    parseResponse(await fetch(url, { method: 'POST', headers: { 'content-type': type }, body }))

  it('in the encodings of different clients › is read', async () => {
    await using server = await startBodyServer(describeUpload)
    const hello = { type: 'text/plain', text: 'hello' }
    for (const [disposition, name] of [
      ['name="file"; filename="a.txt"', 'a.txt'],
      ['name=file; filename=a.txt', 'a.txt'],
      ['filename="a;b.txt"; name="file"', 'a;b.txt'],
      ['name="file"; filename="a\\"b.txt"', 'a"b.txt'],
      ['name="file"; filename="a%22b.txt"', 'a"b.txt'],
      ['name="file"; filename="plain"; filename*=UTF-8\'\'%C3%A4.txt', 'ä.txt'],
      ['name="file"; filename="../../etc/passwd"', 'passwd'],
      ['name="file"; filename="C:\\\\Users\\\\ann\\\\a.txt"', 'a.txt'],
      ['name="file"; filename="a\u202e.txt"', 'a.txt'],
    ] as const)
      expect(await post(server.url, form(file(disposition)))).toEqual({ ...hello, name })
    const types = [
      'multipart/form-data; boundary="XX"',
      'Multipart/Form-Data; charset=utf-8; boundary=XX',
      'multipart/form-data;boundary=XX; charset=utf-8',
    ]
    for (const type of types)
      expect(
        await post(server.url, `preamble\r\n${form(file('name="file"; filename="a.txt"'))}epilogue`, type),
      ).toEqual({ ...hello, name: 'a.txt' })
    expect(await post(server.url, form(file('name="file"; filename="a.txt"', '')))).toEqual({
      ...hello,
      name: 'a.txt',
      text: '',
    })
  })

  it('malformed › is refused with a reason', async () => {
    await using server = await startBodyServer(describeUpload)
    const one = file('name="file"; filename="a.txt"')
    const refused = (why: string) =>
      `400 invalid_upload: The upload cannot be read: ${why}. Send one file as multipart/form-data.`
    for (const [body, why] of [
      ['', 'unexpected end of form'],
      [form(one).slice(0, -8), 'unexpected end of form'],
      ['--XX', 'unexpected end of form'],
      ['--XX--', 'it contains no file'],
      [form(), 'it contains no file'],
      [form(text('file')), 'it contains no file'],
      [form(one, text('file')), 'it contains the field "file" as a text too'],
      [form(one, one), 'it contains more than one file'],
      [form(...Array.from({ length: 17 }, () => text('file'))), 'it has more than 16 parts'],
      [form('no headers'), 'malformed part header'],
      [form(file('name="file"; filename="a\u0007.txt"')), 'malformed part header'],
      [form(`X: ${'x'.repeat(90_000)}\r\n\r\n`), 'malformed part header'],
      [form('Content-Type: text/plain\r\n\r\nhello'), 'it contains no file'],
      [form(file('name="file"; filename=""')), 'it contains no file'],
      [form(file('name="file"; filename=".."')), 'its file has no name'],
      [form(file(`name="file"; filename="${'a'.repeat(256)}"`)), 'the name of its file is longer than 255 characters'],
      [form(file('name="file"; filename*=UTF-8\'\'%C3')), 'the name of its file is not valid UTF-8'],
    ] as const)
      expect(await post(server.url, body)).toBe(refused(why))
    for (const [body, field] of [
      [form(text('purpose'), one), 'purpose'],
      [form(one, text('a; filename=b')), 'a; filename=b'],
      [form(file('name="upload"; filename="a.txt"')), 'upload'],
      [form(one, file('name=""; filename="a.txt"')), ''],
    ] as const)
      expect(await post(server.url, body)).toBe(`400 unknown_field: Unknown field "${field}". Use one of: file.`)
    expect(await post(server.url, form(file('name="file"; filename="a"', 'x'.repeat(100_000))))).toBe(
      '413 body_too_large: The body is larger than 100000 bytes.',
    )
    for (const type of [
      'application/json',
      'multipart/form-data',
      'multipart/form-data; boundary=',
      `multipart/form-data; boundary=${'x'.repeat(71)}`,
    ])
      expect(await post(server.url, form(one), type)).toBe(
        '415 unsupported_media_type: The body must be multipart/form-data with one file.',
      )
  })
})

describe('waiting for pending reads', () => {
  it('concurrent callers › share one wait and continue in call order, step by step', async () => {
    const steps: string[] = []
    const run = async (name: string): Promise<void> => {
      await afterPendingReads()
      steps.push(`${name} begins`)
      await undefined
      steps.push(`${name} ends`)
    }
    await Promise.all([run('first'), Promise.resolve().then(() => run('second'))])
    expect(steps).toEqual(['first begins', 'second begins', 'first ends', 'second ends'])
  })

  it('resolves after everything pending at the call', async () => {
    let isDone = false
    process.nextTick(() => queueMicrotask(() => process.nextTick(() => (isDone = true))))
    await afterPendingReads()
    expect(isDone).toBe(true)
  })

  it('a later caller › waits again', async () => {
    const first = afterPendingReads()
    await first
    const second = afterPendingReads()
    expect(second).not.toBe(first)
    await second
  })
})
