import { connect, type Socket } from 'node:net'

export type HttpRequest = {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Uint8Array | undefined
}
export type HttpResponse = {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

type Pending = {
  readonly request: HttpRequest
  readonly resolve: (response: HttpResponse) => void
  readonly reject: (error: Error) => void
}

/**
 * HTTP client that sends everything it is given, on connections that are kept open. Other clients refuse or repair
 * hostile methods, paths and headers.
 */
export class HttpClient {
  private readonly port: number
  private readonly hostname: string
  private readonly timeoutMs: number
  private readonly queue: Pending[] = []
  private readonly idle: Connection[] = []
  private readonly all = new Set<Connection>()
  private readonly maxConnections: number

  constructor(url: string, options: { readonly connections?: number; readonly timeoutMs?: number } = {}) {
    const { hostname, port } = new URL(url)
    this.hostname = hostname
    this.port = Number(port)
    this.maxConnections = options.connections ?? 8
    this.timeoutMs = options.timeoutMs ?? 60_000
  }

  request(request: HttpRequest): Promise<HttpResponse> {
    const { promise, resolve, reject } = Promise.withResolvers<HttpResponse>()
    this.queue.push({ request, resolve, reject })
    this.sendNext()
    return promise
  }

  close(): void {
    for (const connection of this.all) connection.destroy()
    for (const { reject } of this.queue.splice(0)) reject(new Error('The client was closed'))
  }

  private sendNext(): void {
    if (this.queue.length === 0) return
    const connection = this.idle.pop() ?? (this.all.size < this.maxConnections ? this.connect() : undefined)
    if (connection === undefined) return
    const pending = this.queue.shift() as Pending
    connection.send(pending.request, this.hostname, this.timeoutMs).then(
      (response) => {
        if (connection.isOpen) this.idle.push(connection)
        else this.all.delete(connection)
        pending.resolve(response)
        this.sendNext()
      },
      (error: Error) => {
        connection.destroy()
        this.all.delete(connection)
        pending.reject(error)
        this.sendNext()
      },
    )
  }

  private connect(): Connection {
    const connection = new Connection(connect({ port: this.port, host: this.hostname, noDelay: true }), () => {
      const at = this.idle.indexOf(connection)
      if (at !== -1) this.idle.splice(at, 1)
      this.all.delete(connection)
    })
    this.all.add(connection)
    return connection
  }
}

class Connection {
  isOpen = true
  private readonly socket: Socket
  private data: Buffer = Buffer.alloc(0)
  private chunks: Buffer[] = []
  private bytes = 0
  /** Bytes that must have arrived before the response is parsed again. */
  private minBytes = 0
  private current:
    | { method: string; resolve: (response: HttpResponse) => void; reject: (error: Error) => void }
    | undefined

  constructor(socket: Socket, onClose: () => void) {
    this.socket = socket
    socket.on('data', (chunk) => this.receive(chunk))
    socket.on('error', () => undefined)
    socket.on('close', () => {
      this.isOpen = false
      onClose()
      this.finish(true)
    })
  }

  async send({ method, path, headers, body }: HttpRequest, host: string, timeoutMs: number): Promise<HttpResponse> {
    const { promise, resolve, reject } = Promise.withResolvers<HttpResponse>()
    this.current = { method, resolve, reject }
    const names = new Set(Object.keys(headers).map((name) => name.toLowerCase()))
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
    if (!names.has('host')) lines.push(`host: ${host}\r\n`)
    if (body !== undefined) lines.push(`content-length: ${body.length}\r\n`)
    const head = Buffer.from(`${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n`, 'latin1')
    this.socket.write(body === undefined ? head : Buffer.concat([head, body]))
    const timer = setTimeout(() => reject(new Error(`no response in ${timeoutMs} ms`)), timeoutMs)
    try {
      return await promise
    } finally {
      clearTimeout(timer)
      this.current = undefined
    }
  }

  destroy(): void {
    this.isOpen = false
    this.socket.destroy()
  }

  private receive(chunk: Buffer): void {
    this.chunks.push(chunk)
    this.bytes += chunk.length
    if (this.bytes >= this.minBytes) this.finish(false)
  }

  /** Resolves the current request if its response is complete. */
  private finish(hasEnded: boolean): void {
    if (this.current === undefined) return
    if (this.chunks.length > 1 || this.data.length > 0) this.data = Buffer.concat([this.data, ...this.chunks])
    else if (this.chunks.length === 1) this.data = this.chunks[0] as Buffer
    this.chunks = []
    const parsed = parseResponse(this.data, this.current.method, hasEnded)
    if (typeof parsed !== 'object') {
      this.minBytes = parsed
      if (hasEnded) this.current.reject(new Error(`connection closed after ${this.data.length} bytes`))
      return
    }
    if (parsed.response.headers.connection === 'close') this.destroy()
    const { resolve } = this.current
    this.data = this.data.subarray(parsed.end)
    this.bytes = this.data.length
    this.minBytes = 0
    resolve(parsed.response)
  }
}

/** Parses a response; returns the number of bytes to wait for if it is incomplete. */
export function parseResponse(
  data: Buffer,
  method: string,
  hasEnded: boolean,
): { readonly response: HttpResponse; readonly end: number } | number {
  const headEnd = data.indexOf('\r\n\r\n')
  if (headEnd === -1) return data.length + 1
  const [statusLine = '', ...lines] = data.toString('latin1', 0, headEnd).split('\r\n')
  const status = Number(statusLine.split(' ')[1])
  const start = headEnd + 4
  // Interim responses come before the final one.
  if (status >= 100 && status < 200) {
    const rest = parseResponse(data.subarray(start), method, hasEnded)
    return typeof rest === 'number' ? rest + start : { ...rest, end: rest.end + start }
  }
  const headers = Object.fromEntries(
    lines.map((line) => {
      const at = line.indexOf(':')
      return [line.slice(0, at).toLowerCase(), line.slice(at + 1).trim()]
    }),
  )
  const complete = (body: Buffer, end: number) => ({ response: { status, headers, body }, end })
  if (method === 'HEAD' || status === 204 || status === 304) return complete(Buffer.alloc(0), start)
  // A stream of changes has no end: its headers are the response, and the connection is closed.
  if (method === 'GET' && headers['content-type']?.startsWith('text/event-stream') === true)
    return {
      response: { status, headers: { ...headers, connection: 'close' }, body: Buffer.alloc(0) },
      end: data.length,
    }
  if (headers['content-length'] !== undefined) {
    const end = start + Number(headers['content-length'])
    return data.length < end ? end : complete(data.subarray(start, end), end)
  }
  if (headers['transfer-encoding'] === 'chunked') {
    const chunked = parseChunks(data, start)
    return chunked === undefined ? data.length + 1 : complete(chunked.body, chunked.end)
  }
  return hasEnded ? complete(data.subarray(start), data.length) : data.length + 1
}

function parseChunks(data: Buffer, start: number): { readonly body: Buffer; readonly end: number } | undefined {
  const chunks: Buffer[] = []
  for (let at = start; ; ) {
    const lineEnd = data.indexOf('\r\n', at)
    if (lineEnd === -1) return undefined
    const size = Number.parseInt(data.toString('latin1', at, lineEnd), 16)
    const end = lineEnd + 2 + size + 2
    if (data.length < end) return undefined
    if (size === 0) return { body: Buffer.concat(chunks), end }
    chunks.push(data.subarray(lineEnd + 2, lineEnd + 2 + size))
    at = end
  }
}
