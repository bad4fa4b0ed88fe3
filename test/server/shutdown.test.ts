import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { openMemory } from '../../src/index.ts'
import { startCommand } from '../cli/command.ts'
import { createTempFolder } from '../fault/tempFolder.ts'
import { encodeEventStream } from '../providers/protocols.ts'
import { type RecordedRequest, startUpstream } from '../providers/upstream.ts'
import { verifies } from '../requirements/verifies.ts'
import { startServer, toLines, user } from './start.ts'

const [streams, clients] = [20, 4]

/** Starts the CLI's serve command on a file in front of the upstream. */
async function start(upstream: string, folder: string) {
  const store = `sqlite:${join(folder, 'stopped.db')}`
  const running = startCommand(['serve', '--port', '0', '--json', '--upstream', upstream, '--store', store])
  const { url } = JSON.parse(await running.waitForOutput('}\n')) as { readonly url: string }
  const ask = (key: string, content: string, stream: boolean): Promise<Response> =>
    fetch(`${url}/v1/${key}/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'any', stream, messages: [{ role: 'user', content }] }),
    })
  const isReached = (): Promise<boolean> =>
    fetch(`${url}/healthz`).then(
      () => true,
      () => false,
    )
  return {
    store,
    ask,
    isReached,
    stop: (signal: NodeJS.Signals) => running.process.kill(signal),
    ended: running.result,
  }
}

type Started = Awaited<ReturnType<typeof start>>

/** Starts clients that send turns until the server stops answering; `first` resolves with the first reply. */
function startClients({ ask }: Started) {
  const acknowledged: { readonly key: string; readonly content: string }[] = []
  const first = Promise.withResolvers<void>()
  const talk = async (client: number): Promise<void> => {
    for (let turn = 0; ; turn++) {
      const one = { key: `acme:plain${client}`, content: `Turn ${turn}` }
      const response = await ask(one.key, one.content, false).catch(() => undefined)
      if (response === undefined) return
      expect([response.status, await response.text()]).toEqual([200, expect.stringContaining('One two three')])
      acknowledged.push(one)
      first.resolve()
    }
  }
  return {
    acknowledged,
    first: first.promise,
    done: Promise.all(Array.from({ length: clients }, (_, client) => talk(client))),
  }
}

/** Reads transcripts from a file with a separate memory. */
async function openTranscripts(store: string): Promise<AsyncDisposable & { said(key: string): Promise<string[]> }> {
  const memory = await openMemory({ profile: 'thread', store })
  const said = async (key: string) => toLines(await memory.transcript(key))
  return { said, [Symbol.asyncDispose]: () => memory.close() }
}

describe('stopping a server', () => {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    verifies(
      'X-07',
      `${signal} under load › finishes pending requests, loses nothing acknowledged and exits with 0`,
      async () => {
        using folder = createTempFolder()
        // One byte at a time, so that the streams are far from their end when the signal arrives.
        await using upstream = await startUpstream({ does: 'reply', pieces: ['One', ' two', ' three'], split: true })
        const server = await start(upstream.url, folder.path)
        const { acknowledged, first, done } = startClients(server)
        const streaming = await Promise.all(
          Array.from({ length: streams }, (_, at) => server.ask(`acme:stream${at}`, 'Count', true)),
        )
        await first
        server.stop(signal)
        const texts = await Promise.all(streaming.map((response) => response.text()))
        expect(texts.filter((text) => !text.endsWith('data: [DONE]\n\n'))).toEqual([])
        await done
        expect(await server.ended).toMatchObject({ code: 0, stderr: '' })
        await using stored = await openTranscripts(server.store)
        for (let at = 0; at < streams; at++)
          expect(await stored.said(`acme:stream${at}`)).toEqual(['user: Count', 'assistant: One two three'])
        for (const { key, content } of acknowledged) {
          const said = await stored.said(key)
          const place = said.indexOf(`user: ${content}`)
          expect([key, content, said[place + 1]]).toEqual([key, content, 'assistant: One two three'])
        }
      },
    )
  }

  verifies('X-07', 'a second signal › stops at once and keeps what was acknowledged', async () => {
    using folder = createTempFolder()
    const arrived = Promise.withResolvers<RecordedRequest>()
    await using upstream = await startUpstream((received) => {
      if (received.body.messages.at(-1).content !== 'Wait') return { does: 'reply', pieces: ['Yes.'] }
      arrived.resolve(received)
      return { does: 'stall', pieces: ['One'] }
    })
    const server = await start(upstream.url, folder.path)
    await (await server.ask('acme:a', 'Hello', false)).text()
    const waiting = await server.ask('acme:b', 'Wait', true)
    server.stop('SIGTERM')
    // New connections are refused once the first signal is handled.
    while (await server.isReached()) await new Promise(setImmediate)
    server.stop('SIGTERM')
    expect((await server.ended).code).toBe(130)
    await expect(waiting.text()).rejects.toThrow()
    expect(await (await arrived.promise).outcome).toBe('hung up')
    await using stored = await openTranscripts(server.store)
    expect([await stored.said('acme:a'), await stored.said('acme:b')]).toEqual([
      ['user: Hello', 'assistant: Yes.'],
      ['user: Wait'],
    ])
  })
})

describe('close', () => {
  it('lets streams finish and accepts no new request', async () => {
    await using upstream = await startUpstream({ does: 'reply', pieces: ['One', ' two', ' three'], split: true })
    await using server = await startServer({ upstream: upstream.url })
    const response = await server.postChat('demo:me', { messages: [user('Count')], stream: true })
    const closed = server.close()
    await expect(fetch(`${server.url}/healthz`)).rejects.toThrow()
    expect(await response.text()).toBe(encodeEventStream('openai', ['One', ' two', ' three'], true))
    await closed
  })

  verifies('X-07', 'with a delay › reports itself as not ready first and still answers', async () => {
    await using server = await startServer({ drainMs: 2_000 })
    const closed = server.close()
    const ready = await fetch(`${server.url}/readyz`)
    expect([ready.status, ready.headers.get('connection'), await ready.json()]).toMatchObject([
      503,
      'close',
      { status: 'draining' },
    ])
    expect((await server.postChat('demo:me', { messages: [user('Hello')] })).status).toBe(200)
    await closed
    await expect(fetch(`${server.url}/readyz`)).rejects.toThrow()
  })

  it('aborts requests that exceed the grace period', async () => {
    await using upstream = await startUpstream({ does: 'stall', pieces: ['One'] })
    await using server = await startServer({ upstream: upstream.url })
    const response = await server.postChat('demo:me', { messages: [user('Count')], stream: true })
    await server.close(50)
    await expect(response.text()).rejects.toThrow()
    expect(await upstream.requests[0]?.outcome).toBe('hung up')
  })
})
