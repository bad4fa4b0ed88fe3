import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { startStreamingModel } from '../structureStalls/streamingModel.ts'
import type { WatchdogCommand, WatchdogReport } from './watchdog.ts'

/** Sends requests to the server under test and returns the last response. */
export type ProbeClient = {
  /** Sends JSON and returns the response's body; throws for a status of 500 or more. */
  post(path: string, body: unknown, headers?: Readonly<Record<string, string>>): Promise<unknown>
  get(path: string): Promise<unknown>
  upload(path: string, name: string, text: string): Promise<unknown>
  callTool(name: string, args: unknown): Promise<unknown>
  /** Text of the model's next replies. */
  setReply(text: string): void
}

export type Stall = {
  readonly longestMs: number
  readonly hotSpots: readonly string[]
  /** Requests that were answered with an error, such as a limit that the text exceeds. */
  readonly refusals: readonly string[]
}

export type StallProbe = AsyncDisposable & {
  readonly client: ProbeClient
  /** Runs requests and returns the longest stretch of the server's main thread until it has nothing left to do. */
  measure(run: (client: ProbeClient) => Promise<unknown>, options?: { readonly profile?: boolean }): Promise<Stall>
}

const quietMs = 300
/** Below the budgets of most profiles, so that long sessions are shortened, recalled and summarised. */
const smallBudget = 2_000

/** Starts the server of `threadkeep serve` in a process of its own, with the watchdog. */
export async function startStallProbe(settings: Readonly<Record<string, unknown>> = {}): Promise<StallProbe> {
  const folder = await mkdtemp(join(tmpdir(), 'stalls-'))
  const model = await startStreamingModel()
  const config = {
    store: `sqlite:${join(folder, 'memory.db')}`,
    log: { level: 'error' },
    upstreams: [{ name: 'model', base: model.url }],
    profiles: {
      small: { extends: 'thread', budget: smallBudget },
      agentSmall: { extends: 'agent', budget: smallBudget },
    },
    templates: { small: { profile: 'small' }, support: { profile: 'support' }, agent: { profile: 'agentSmall' } },
    ...settings,
  }
  await writeFile(join(folder, 'config.json'), JSON.stringify(config))
  const child = fork(
    new URL('../../../src/cli/main.ts', import.meta.url),
    ['serve', '--config', join(folder, 'config.json'), '--port', '0', '--json'],
    {
      execArgv: ['--no-sparkplug', '--import', new URL('./watchdog.ts', import.meta.url).href],
      cwd: folder,
      stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
    },
  )
  const ended = once(child, 'exit')
  const failure = ended.then(([code]) => Promise.reject(new Error(`The server ended with ${code}.`)))
  failure.catch(() => undefined)
  const [line] = (await Promise.race([once(child.stdout as NodeJS.ReadableStream, 'data'), failure])) as [Buffer]
  const { url } = JSON.parse(line.toString()) as { readonly url: string }
  const send = async (command: WatchdogCommand): Promise<WatchdogReport> => {
    const answer = once(child, 'message')
    child.send(command)
    return ((await Promise.race([answer, failure])) as [WatchdogReport])[0]
  }
  const refusals: string[] = []
  const client = createClient(url, model.setReply, (refusal) => refusals.push(refusal))
  return {
    client,
    measure: async (run, { profile = false } = {}) => {
      refusals.length = 0
      await send({ watchdog: 'arm', profile })
      await run(client)
      for (;;) {
        await delay(quietMs / 3)
        const { longestMs, quietForMs, hotSpots } = await send({ watchdog: 'report' })
        if (quietForMs > quietMs / 3) return { longestMs, hotSpots, refusals: [...refusals] }
      }
    },
    [Symbol.asyncDispose]: async () => {
      // The watchdog ends the process, without waiting for open connections.
      child.disconnect()
      await ended
      await model[Symbol.asyncDispose]()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

function createClient(
  url: string,
  setReply: (text: string) => void,
  reportRefusal: (refusal: string) => void,
): ProbeClient {
  const request = async (path: string, init: RequestInit): Promise<unknown> => {
    const response = await fetch(`${url}${path}`, init)
    const body = await response.text()
    const description = `${path.slice(0, 60)}: ${response.status} ${body.slice(0, 300)}`
    if (response.status >= 500) throw new Error(description)
    // A refusal is a valid answer to hostile input, but measures little.
    if (response.status >= 400 || /"isError":\s*true|"error":\s*\{"code"/.test(body.slice(-200) + body.slice(0, 200)))
      reportRefusal(description)
    return body.startsWith('{') ? JSON.parse(body) : body
  }
  const post: ProbeClient['post'] = (path, body, headers = {}) =>
    request(path, {
      method: 'POST',
      body: JSON.stringify(body),
      headers: { 'content-type': 'application/json', ...headers },
    })
  return {
    post,
    get: (path) => request(path, {}),
    upload: (path, name, text) =>
      request(path, { method: 'POST', body: text, headers: { 'content-type': 'text/plain', 'x-filename': name } }),
    callTool: (name, args) =>
      post(
        '/mcp',
        { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } },
        { accept: 'application/json, text/event-stream' },
      ),
    setReply,
  }
}
