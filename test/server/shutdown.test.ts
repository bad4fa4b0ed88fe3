import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { openMemory } from '../../src/index.ts'
import { command } from '../cli/command.ts'
import { newFolder } from '../fault/tempFolder.ts'
import { type Received, startUpstream } from '../providers/upstream.ts'
import { verifies } from '../requirements/verifies.ts'

const [streams, clients] = [20, 4]

/** The real command on a file, in front of this model server. */
async function start(upstream: string, folder: string) {
  const store = `sqlite:${join(folder, 'stopped.db')}`
  const running = command(['serve', '--port', '0', '--json', '--upstream', upstream, '--store', store])
  const { url } = JSON.parse(await running.until('}\n')) as { readonly url: string }
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
  return { store, ask, isReached, stop: (signal: NodeJS.Signals) => running.process.kill(signal), ended: running.ended }
}

type Started = Awaited<ReturnType<typeof start>>

/** Clients that go on talking until nobody answers any more; `first` resolves when one of them has been answered. */
function talkers({ ask }: Started) {
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

/** What a file holds, read by somebody else. */
async function linesIn(store: string): Promise<AsyncDisposable & { said(key: string): Promise<string[]> }> {
  const memory = await openMemory({ profile: 'thread', store })
  const said = async (key: string) => (await memory.transcript(key)).map(({ role, content }) => `${role}: ${content}`)
  return { said, [Symbol.asyncDispose]: () => memory.close() }
}

describe('a server that is asked to stop', () => {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    verifies(
      'X-07',
      `under load (${signal}) finishes what is under way, loses nothing it has acknowledged and ends well`,
      async () => {
        using folder = newFolder()
        // Every byte by itself, so that the streams are far from their end when the signal comes.
        await using upstream = await startUpstream({ does: 'reply', pieces: ['One', ' two', ' three'], split: true })
        const server = await start(upstream.url, folder.path)
        const { acknowledged, first, done } = talkers(server)
        const under = await Promise.all(
          Array.from({ length: streams }, (_, at) => server.ask(`acme:stream${at}`, 'Count', true)),
        )
        await first
        server.stop(signal)
        const texts = await Promise.all(under.map((response) => response.text()))
        expect(texts.filter((text) => !text.endsWith('data: [DONE]\n\n'))).toEqual([])
        await done
        expect(await server.ended).toMatchObject({ code: 0, stderr: '' })
        await using kept = await linesIn(server.store)
        for (let at = 0; at < streams; at++)
          expect(await kept.said(`acme:stream${at}`)).toEqual(['user: Count', 'assistant: One two three'])
        for (const { key, content } of acknowledged) {
          const said = await kept.said(key)
          const place = said.indexOf(`user: ${content}`)
          expect([key, content, said[place + 1]]).toEqual([key, content, 'assistant: One two three'])
        }
      },
    )
  }

  verifies('X-07', 'a second time stops at once, and keeps what it has acknowledged', async () => {
    using folder = newFolder()
    const arrived = Promise.withResolvers<Received>()
    await using upstream = await startUpstream((received) => {
      if (received.body.messages.at(-1).content !== 'Wait') return { does: 'reply', pieces: ['Yes.'] }
      arrived.resolve(received)
      return { does: 'stall', pieces: ['One'] }
    })
    const server = await start(upstream.url, folder.path)
    await (await server.ask('acme:a', 'Hello', false)).text()
    const waiting = await server.ask('acme:b', 'Wait', true)
    server.stop('SIGTERM')
    // Nobody is let in any more as soon as the first signal has been heard.
    while (await server.isReached()) await new Promise(setImmediate)
    server.stop('SIGTERM')
    expect((await server.ended).code).toBe(130)
    await expect(waiting.text()).rejects.toThrow()
    expect(await (await arrived.promise).over).toBe('hung up')
    await using kept = await linesIn(server.store)
    expect([await kept.said('acme:a'), await kept.said('acme:b')]).toEqual([
      ['user: Hello', 'assistant: Yes.'],
      ['user: Wait'],
    ])
  })
})
