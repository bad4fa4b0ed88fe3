import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { fileURLToPath } from 'node:url'

const meter = new URL('./meter.ts', import.meta.url).href

/** A process that is measured, and the address it answers at. */
export type Child = {
  readonly origin: string
  /** The CPU time it has taken so far, in microseconds. */
  cpu(): Promise<number>
  /** Gives it something to do, and waits for what comes of it. */
  ask<T>(work: object): Promise<T>
  stop(): void
}

/** Runs a module of this folder in a process of its own; its first message names the port it listens on, or is empty. */
export async function start(module: string, ...args: readonly string[]): Promise<Child> {
  const child = run(module, args)
  const { port = 0 } = await answer<{ port?: number }>(child)
  return childOf(child, port)
}

/** Runs a module that is told its port and begins to answer some time later. */
export async function startServer(module: string, flags: (port: number) => readonly string[]): Promise<Child> {
  const port = await freePort()
  const child = run(module, flags(port))
  const server = childOf(child, port)
  while (!(await fetch(server.origin).then(() => true, isRefused))) {
    if (child.exitCode !== null) throw new Error(`${module} ended with ${child.exitCode} before it answered`)
    await new Promise((resume) => setTimeout(resume, 50))
  }
  return server
}

const run = (module: string, args: readonly string[]): ChildProcess =>
  fork(fileURLToPath(new URL(module, import.meta.url)), [...args], {
    execArgv: ['--import', meter],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })

const childOf = (child: ChildProcess, port: number): Child => ({
  origin: `http://127.0.0.1:${port}`,
  async cpu() {
    child.send('cpu')
    const { user, system } = (await answer<{ cpu: NodeJS.CpuUsage }>(child)).cpu
    return user + system
  },
  ask(work) {
    child.send(work)
    return answer(child)
  },
  stop: () => child.disconnect(),
})

/** The next message of a process; what it cannot do, it ends over. */
async function answer<T>(child: ChildProcess): Promise<T> {
  const ended = new AbortController()
  const over = once(child, 'exit', { signal: ended.signal }).then(([code]) => {
    throw new Error(`${child.spawnargs.at(-1)} ended with ${code} before it answered`)
  })
  over.catch(() => undefined)
  const [message] = (await Promise.race([once(child, 'message'), over])) as [T]
  ended.abort()
  return message
}

const isRefused = (): boolean => false

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address() as { port: number }
  probe.close()
  await once(probe, 'close')
  return port
}
