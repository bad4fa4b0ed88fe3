import { connect, createServer, type Server, type Socket } from 'node:net'

/** Point at which a connection is cut: before a request reaches the server, or after, before its answer returns. */
export type CutPoint = 'request' | 'answer'

/** A TCP proxy in front of PostgreSQL that counts round trips and cuts connections. */
export type PostgresProxy = {
  readonly port: number
  /** Requests that the server had to answer since the last reset, without those of connecting. */
  readonly roundTrips: number
  /** Bytes that the server has sent since the last reset. */
  readonly receivedBytes: number
  reset(): void
  /** Cuts the connection of the request with this number, counted from now. */
  cutAt(request: number, point: CutPoint): void
  close(): Promise<void>
}

export async function startProxy(target: number): Promise<PostgresProxy> {
  const state = { roundTrips: 0, receivedBytes: 0, cutAt: 0, point: 'request' as CutPoint }
  const sockets = new Set<Socket>()
  const server = createServer((client) => forward(client, target, state, sockets))
  server.listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  return {
    port: portOf(server),
    get roundTrips() {
      return state.roundTrips
    },
    get receivedBytes() {
      return state.receivedBytes
    },
    reset: () => {
      state.roundTrips = 0
      state.receivedBytes = 0
      state.cutAt = 0
    },
    cutAt: (request, point) => {
      state.cutAt = state.roundTrips + request
      state.point = point
    },
    close: async () => {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

type ProxyState = { roundTrips: number; receivedBytes: number; cutAt: number; point: CutPoint }

function forward(client: Socket, target: number, state: ProxyState, sockets: Set<Socket>): void {
  const upstream = connect(target, '127.0.0.1')
  const cut = (): void => {
    client.destroy()
    upstream.destroy()
  }
  for (const socket of [client, upstream]) {
    sockets.add(socket)
    socket.on('error', cut)
    socket.on('close', cut)
    socket.on('close', () => sockets.delete(socket))
  }
  let isCutAtAnswer = false
  const countRequests = createRequestCounter()
  client.on('data', (data) => {
    for (let requests = countRequests(data); requests > 0; requests--) {
      state.roundTrips++
      if (state.roundTrips !== state.cutAt) continue
      if (state.point === 'request') return cut()
      isCutAtAnswer = true
    }
    upstream.write(data)
  })
  upstream.on('data', (data) => {
    state.receivedBytes += data.length
    if (isCutAtAnswer) cut()
    else client.write(data)
  })
}

/** Returns a function that counts the messages in a stream which the server answers: Query and Sync. */
function createRequestCounter(): (data: Buffer) => number {
  let buffered = Buffer.alloc(0)
  let isStarted = false
  return (data) => {
    buffered = Buffer.concat([buffered, data])
    let requests = 0
    for (;;) {
      // The first message has no type.
      const header = isStarted ? 1 : 0
      if (buffered.length < header + 4) return requests
      const length = header + buffered.readInt32BE(header)
      if (buffered.length < length) return requests
      const type = isStarted ? String.fromCharCode(buffered[0] as number) : ''
      if (type === 'Q' || type === 'S') requests++
      isStarted = true
      buffered = buffered.subarray(length)
    }
  }
}

const portOf = (server: Server): number => (server.address() as { port: number }).port
