import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { fileURLToPath } from 'node:url'

const cpuMeter = new URL('./cpuMeter.ts', import.meta.url).href

/** Measured process and its address. */
export type Child = {
  readonly origin: string
  /** Returns the CPU time so far in microseconds. */
  readCpuTime(): Promise<number>
  /** Sends a message and waits for the response. */
  request<T>(message: object): Promise<T>
  stop(): void
}

/** Runs a module of this folder in a process. Its first message contains its port, or is empty. */
export async function startChild(module: string, ...args: readonly string[]): Promise<Child> {
  const child = forkModule(module, args)
  const { port = 0 } = await nextMessage<{ port?: number }>(child)
  return createChild(child, port)
}

/** Runs a server that takes its port as a flag, and waits until it accepts connections. */
export async function startServer(module: string, flags: (port: number) => readonly string[]): Promise<Child> {
  const port = await findFreePort()
  const child = forkModule(module, flags(port))
  const server = createChild(child, port)
  while (
    !(await fetch(server.origin).then(
      () => true,
      () => false,
    ))
  ) {
    if (child.exitCode !== null) throw new Error(`${module} exited with ${child.exitCode} before it responded`)
    await new Promise((resume) => setTimeout(resume, 50))
  }
  return server
}

const forkModule = (module: string, args: readonly string[]): ChildProcess =>
  fork(fileURLToPath(new URL(module, import.meta.url)), [...args], {
    execArgv: ['--import', cpuMeter],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })

const createChild = (child: ChildProcess, port: number): Child => ({
  origin: `http://127.0.0.1:${port}`,
  async readCpuTime() {
    child.send('cpu')
    const { user, system } = (await nextMessage<{ cpu: NodeJS.CpuUsage }>(child)).cpu
    return user + system
  },
  request(message) {
    child.send(message)
    return nextMessage(child)
  },
  stop: () => child.disconnect(),
})

/** Waits for the next message of a process. Throws if it exits first. */
async function nextMessage<T>(child: ChildProcess): Promise<T> {
  const received = new AbortController()
  const exited = once(child, 'exit', { signal: received.signal }).then(([code]) => {
    throw new Error(`${child.spawnargs.at(-1)} exited with ${code} before it responded`)
  })
  exited.catch(() => undefined)
  const [message] = (await Promise.race([once(child, 'message'), exited])) as [T]
  received.abort()
  return message
}

async function findFreePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address() as { port: number }
  probe.close()
  await once(probe, 'close')
  return port
}
