import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { openMemory } from '../../src/index.ts'
import { command, type Running } from '../cli/command.ts'
import { newFolder } from '../fault/folder.ts'
import { type Received, startUpstream } from '../models/upstream.ts'
import { verifies } from '../requirements/verifies.ts'

const streams = 20

const urlOf = async (running: Running): Promise<string> => (JSON.parse(await running.until('}\n')) as { readonly url: string }).url

const ask = (url: string, key: string, content: string, stream: boolean): Promise<Response> =>
  fetch(`${url}/v1/${key}/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'any', stream, messages: [{ role: 'user', content }] }),
  })

describe('a server that is asked to stop', () => {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    verifies('X-07', `under load (${signal}) finishes what is under way, loses nothing it has acknowledged and ends well`, async () => {
      using folder = newFolder()
      // Every byte by itself, so that the streams are far from their end when the signal comes.
      await using upstream = await startUpstream({ does: 'reply', pieces: ['One', ' two', ' three'], split: true })
      const store = `sqlite:${join(folder.path, 'stopped.db')}`
      const running = command(['serve', '--port', '0', '--json', '--upstream', upstream.url, '--store', store])
      const url = await urlOf(running)
      const acknowledged: string[] = []
      let isOpen = true
      const talk = async (client: number): Promise<void> => {
        for (let turn = 0; isOpen; turn++) {
          const response = await ask(url, `acme:plain${client}`, `Turn ${turn}`, false).catch(() => undefined)
          if (response === undefined) return
          expect([response.status, await response.text()]).toEqual([200, expect.stringContaining('One two three')])
          acknowledged.push(`acme:plain${client} Turn ${turn}`)
        }
      }
      const talking = [1, 2, 3, 4].map(talk)
      const under = await Promise.all(Array.from({ length: streams }, (_, at) => ask(url, `acme:stream${at}`, 'Count', true)))
      running.process.kill(signal)
      const texts = await Promise.all(under.map((response) => response.text()))
      isOpen = false
      await Promise.all(talking)
      expect(texts.filter((text) => !text.endsWith('data: [DONE]\n\n'))).toEqual([])
      expect(await running.ended).toMatchObject({ code: 0, stderr: '' })
      await expect(fetch(`${url}/healthz`)).rejects.toThrow()
      await using memory = await openMemory({ profile: 'thread', store })
      for (let at = 0; at < streams; at++) {
        expect((await memory.transcript(`acme:stream${at}`)).map(({ role, content }) => `${role}: ${content}`)).toEqual([
          'user: Count',
          'assistant: One two three',
        ])
      }
      expect(acknowledged.length).toBeGreaterThan(0)
      for (const one of acknowledged) {
        const [key = '', ...words] = one.split(' ')
        const said = (await memory.transcript(key)).map(({ role, content }) => `${role}: ${content}`)
        const place = said.indexOf(`user: ${words.join(' ')}`)
        expect([one, said[place + 1]]).toEqual([one, 'assistant: One two three'])
      }
    })
  }

  verifies('X-07', 'a second time stops at once, and keeps what it has acknowledged', async () => {
    using folder = newFolder()
    const arrived = Promise.withResolvers<Received>()
    await using upstream = await startUpstream((received) => {
      if (received.body.messages.at(-1).content !== 'Wait') return { does: 'reply', pieces: ['Yes.'] }
      arrived.resolve(received)
      return { does: 'stall', pieces: ['One'] }
    })
    const store = `sqlite:${join(folder.path, 'stopped.db')}`
    const running = command(['serve', '--port', '0', '--json', '--upstream', upstream.url, '--store', store])
    const url = await urlOf(running)
    await (await ask(url, 'acme:a', 'Hello', false)).text()
    const waiting = await ask(url, 'acme:b', 'Wait', true)
    running.process.kill('SIGTERM')
    // The port is closed as soon as the first signal has been heard.
    while (
      await fetch(`${url}/healthz`).then(
        () => true,
        () => false,
      )
    )
      await new Promise(setImmediate)
    running.process.kill('SIGTERM')
    expect((await running.ended).code).toBe(130)
    await expect(waiting.text()).rejects.toThrow()
    expect(await (await arrived.promise).over).toBe('hung up')
    await using memory = await openMemory({ profile: 'thread', store })
    const said = async (key: string) => (await memory.transcript(key)).map(({ role, content }) => `${role}: ${content}`)
    expect([await said('acme:a'), await said('acme:b')]).toEqual([['user: Hello', 'assistant: Yes.'], ['user: Wait']])
  })
})
