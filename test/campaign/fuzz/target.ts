import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { HttpClient } from '../httpClient.ts'
import { canaries, type HttpStep, type RawStep } from './input.ts'
import type { ServerEnd, ServerReady, ServerSettings, ServerState } from './serverProcess.ts'

/** Response of the server; `failure` if none arrived. */
export type Answer = {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  readonly failure?: string
}

/** A server process of its own with two tenants. */
export type Target = AsyncDisposable & {
  readonly url: string
  readonly folder: string
  readonly keys: ServerReady['keys']
  send(step: HttpStep): Promise<Answer>
  sendRaw(step: RawStep): Promise<Answer>
  /** Reads and resets the state of the process. */
  state(): Promise<ServerState>
  /** Stops the server and checks its store. */
  finish(): Promise<ServerEnd>
}

const answerTimeoutMs = 60_000

export async function startTarget(settings: Omit<ServerSettings, 'folder'> = {}): Promise<Target> {
  const folder = mkdtempSync(join(realpathSync(tmpdir()), 'threadkeep-campaign-'))
  const child = fork(new URL('./serverProcess.ts', import.meta.url), [JSON.stringify({ ...settings, folder })], {
    execArgv: ['--no-sparkplug'],
    env: { PATH: process.env.PATH },
  })
  const { url, keys } = await nextMessage<ServerReady>(child)
  const client = new HttpClient(url, { connections: 16, timeoutMs: answerTimeoutMs })
  const ids = await createResources(client, keys)
  const question = async <T>(text: 'state' | 'close'): Promise<T> => {
    const answer = nextMessage<T>(child)
    child.send(text)
    return answer
  }
  const dispose = async (): Promise<void> => {
    client.close()
    if (child.exitCode === null && child.signalCode === null) {
      const exited = once(child, 'exit')
      child.kill('SIGKILL')
      await exited
    }
    rmSync(folder, { recursive: true, force: true })
  }
  return {
    url,
    folder,
    keys,
    send: (step) => send(client, keys, ids, step),
    sendRaw: (step) => sendRaw(url, step),
    state: () => question('state'),
    finish: async () => {
      client.close()
      return question('close')
    },
    [Symbol.asyncDispose]: dispose,
  }
}

/** Waits for the next message; rejects if the process ends first. */
async function nextMessage<T>(child: ChildProcess): Promise<T> {
  const ended = new AbortController()
  try {
    const event = await Promise.race([
      once(child, 'message', ended),
      once(child, 'exit', ended).then(([code, signal]) => {
        throw new Error(`The server process ended with ${code ?? signal}`)
      }),
    ])
    return (event as [T])[0]
  } finally {
    ended.abort()
  }
}

type Ids = Readonly<Record<string, string>>

async function send(client: HttpClient, keys: ServerReady['keys'], ids: Ids, step: HttpStep): Promise<Answer> {
  const resolve = (text: string): string => text.replace(/\{(\w+)\}/g, (braces, name: string) => ids[name] ?? braces)
  const key = step.caller === 'nobody' ? undefined : keys[step.caller]
  const body = step.body === undefined ? undefined : Buffer.from(resolve(step.body), step.isBinary ? 'latin1' : 'utf8')
  try {
    const {
      status,
      headers,
      body: bytes,
    } = await client.request({
      method: step.method,
      path: resolve(step.path),
      headers: { ...step.headers, ...(key !== undefined && { authorization: `Bearer ${key}` }) },
      body,
    })
    return { status, headers, body: bytes.toString() }
  } catch (error) {
    return { status: 0, headers: {}, body: '', failure: (error as Error).message }
  }
}

async function sendRaw(url: string, { bytes }: RawStep): Promise<Answer> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  const chunks: Buffer[] = []
  socket.on('data', (chunk) => chunks.push(chunk)).on('error', () => undefined)
  // An incomplete request is answered when the client has sent its end.
  socket.end(Buffer.from(bytes, 'latin1'))
  const timer = setTimeout(() => socket.destroy(), 100)
  await once(socket, 'close').catch(() => undefined)
  clearTimeout(timer)
  const text = Buffer.concat(chunks).toString()
  const [, status = '0'] = /^HTTP\/1\.1 (\d{3}) /.exec(text) ?? []
  return { status: Number(status), headers: {}, body: text.split('\r\n\r\n').slice(1).join('\r\n\r\n') }
}

/** Creates one resource of each kind for acme, and text of both tenants; returns the ids. */
async function createResources(client: HttpClient, keys: ServerReady['keys']): Promise<Ids> {
  const ask = async (
    tenant: 'acme' | 'globex',
    line: string,
    body: object | string,
  ): Promise<Record<string, never>> => {
    const [method = '', path = ''] = line.split(' ')
    const response = await client.request({
      method,
      path,
      headers: {
        authorization: `Bearer ${keys[tenant]}`,
        'content-type': typeof body === 'string' ? 'text/plain' : 'application/json',
        'x-filename': 'a.txt',
      },
      body: Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)),
    })
    const parsed = JSON.parse(response.body.toString()) as Record<string, never>
    return { ...parsed, receipt: response.headers['x-threadkeep-receipt'] as never }
  }
  const ids: Record<string, string> = { item: 'msg_1' }
  for (const [tenant, session] of [
    ['globex', 'eve'],
    ['acme', 'ann'],
  ] as const) {
    const text = `The code word is ${canaries[tenant]}.`
    const turn = { model: 'any', messages: [{ role: 'user', content: text }] }
    const { receipt } = await ask(tenant, `POST /v1/${tenant}:${session}/chat/completions`, turn)
    const { id: conversation } = await ask(tenant, `POST /v1/${tenant}/conversations`, {
      items: [{ role: 'user', content: text }],
    })
    const { id: response } = await ask(tenant, `POST /v1/${tenant}:${session}/responses`, { model: 'any', input: text })
    const knowledge = { category: 'domain', key: 'code word', value: text }
    const { id: knowledgeId } = await ask(tenant, `POST /api/scopes/${tenant}/knowledge`, knowledge)
    const { id: file } = await ask(tenant, `POST /api/scopes/${tenant}/files`, text)
    Object.assign(ids, { conversation, response, knowledge: knowledgeId, file, receipt })
  }
  return ids
}
