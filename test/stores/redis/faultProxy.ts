import { connect, createServer, type Socket } from 'node:net'
import { onEnd } from './redisServer.ts'

/** Decides what happens to a command: it passes, the connection ends before it, or after it without its reply. */
export type Verdict = 'pass' | 'cut-before' | 'cut-after'

/** A TCP proxy in front of redis-server that sees every command. */
export type FaultProxy = {
  readonly port: number
  readonly url: string
  /** Commands of all connections so far, with their arguments. */
  readonly commands: string[][]
  /** Called for each command; default: all pass. */
  decide: (command: readonly string[]) => Verdict
  /** Ends all connections, and refuses new ones until `restore` is called. */
  cutAll(): void
  restore(): void
}

/** Starts a proxy for a port of this machine. It ends with the tests of the file. */
export async function startFaultProxy(target: number): Promise<FaultProxy> {
  const sockets = new Set<Socket>()
  let isRefusing = false
  const proxy = createServer((client) => {
    const upstream = connect(target, '127.0.0.1')
    const end = (): void => {
      for (const socket of [client, upstream]) {
        socket.destroy()
        sockets.delete(socket)
      }
    }
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.setNoDelay(true).on('error', end).on('close', end)
    }
    if (isRefusing) return end()
    let isMuted = false
    const parse = createCommandParser()
    client.on('data', (data) => {
      for (const { command, bytes } of parse(data)) {
        state.commands.push(command)
        const verdict = isMuted ? 'pass' : state.decide(command)
        if (verdict === 'cut-before') return end()
        if (verdict === 'cut-after') {
          isMuted = true
          // The reply shows that the command was executed; the client does not get it.
          upstream.once('data', end)
        }
        upstream.write(bytes)
      }
    })
    upstream.on('data', (data) => {
      if (!isMuted) client.write(data)
    })
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  const { port } = proxy.address() as { port: number }
  const state: FaultProxy = {
    port,
    url: `redis://127.0.0.1:${port}`,
    commands: [],
    decide: () => 'pass',
    cutAll: () => {
      isRefusing = true
      for (const socket of sockets) socket.destroy()
    },
    restore: () => {
      isRefusing = false
    },
  }
  onEnd(() => {
    for (const socket of sockets) socket.destroy()
    proxy.close()
  })
  return state
}

type ParsedCommand = { readonly command: string[]; readonly bytes: Buffer }

/** Splits a stream into commands: arrays of bulk strings. */
function createCommandParser(): (data: Buffer) => readonly ParsedCommand[] {
  let pending: Buffer = Buffer.alloc(0)
  return (data) => {
    pending = Buffer.concat([pending, data])
    const found: ParsedCommand[] = []
    for (;;) {
      const parsed = parseCommand(pending)
      if (parsed === undefined) return found
      found.push(parsed)
      pending = pending.subarray(parsed.bytes.length)
    }
  }
}

function parseCommand(buffer: Buffer): ParsedCommand | undefined {
  let position = 0
  const readLength = (): number | undefined => {
    const end = buffer.indexOf('\r\n', position)
    if (end < 0) return undefined
    const length = Number(buffer.toString('latin1', position + 1, end))
    position = end + 2
    return length
  }
  const count = readLength()
  if (count === undefined) return undefined
  const command: string[] = []
  for (let index = 0; index < count; index++) {
    const length = readLength()
    if (length === undefined || buffer.length < position + length + 2) return undefined
    command.push(buffer.toString('utf8', position, position + length))
    position += length + 2
  }
  return { command, bytes: Buffer.from(buffer.subarray(0, position)) }
}
