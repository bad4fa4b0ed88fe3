import { expect } from 'vitest'
import { verifies } from '../../requirements/verifies.ts'
import { hostileTexts } from './hostileTexts.ts'
import { type ProbeClient, startStallProbe } from './stallProbe.ts'

/** The goal is 50 ms. Reading all texts in one turn took 300 to 700 ms; now it is 60 to 120 ms. */
const maxLongestMs = 250
const maxAttempts = 3
/** Values of knowledge, and messages of a session. */
const [texts, charactersPerText] = [7, 7_000_000]
const timeoutMs = 600_000

const ask = (client: ProbeClient, session: string, content = 'What do the people here like? '): Promise<unknown> =>
  client.post(`/v1/${session}/chat/completions`, { model: 'gpt-4o', messages: [{ role: 'user', content }] })
const addKnowledge = (client: ProbeClient, key: string, value: string): Promise<unknown> =>
  client.post('/api/scopes/known/knowledge', { category: 'domain', key, value })
let additions = 0

const requests: Readonly<Record<string, (client: ProbeClient) => Promise<unknown>>> = {
  'turn with knowledge': (client) => ask(client, 'known:ann'),
  'turn after new knowledge': async (client) => {
    await addKnowledge(client, `new ${additions++}`, 'They like tea.')
    await ask(client, 'known:ann')
  },
  'list of knowledge': (client) => client.get('/api/scopes/known/knowledge'),
  'turn of a session that is not cached': async (client) => {
    await ask(client, 'said:other')
    await ask(client, 'said:ann')
  },
  'list of messages': (client) => client.get('/api/sessions/said:ann/messages?limit=50'),
  'preview of an erasure': (client) => client.post('/api/forget/preview', { scope: 'said', text: 'no such text' }),
}

verifies(
  'R-03',
  'a small request of a tenant with 49 MB of knowledge or messages › leaves the event loop to other requests',
  async () => {
    await using probe = await startStallProbe({ upstreams: [] })
    const text = hostileTexts['short sentences']?.(charactersPerText) ?? ''
    expect(text.length).toBeGreaterThan(6_000_000)
    for (let index = 0; index < texts; index++) {
      await addKnowledge(probe.client, `big ${index}`, text)
      await ask(probe.client, 'said:ann', `${index}: ${text} `)
    }
    const stalls: [string, number][] = []
    for (const [name, run] of Object.entries(requests)) {
      let longestMs = Number.POSITIVE_INFINITY
      // A stall repeats, compilation and a collection of garbage do not.
      for (let attempt = 0; attempt < maxAttempts && longestMs > maxLongestMs; attempt++) {
        const stall = await probe.measure(run)
        expect(stall.refusals).toEqual([])
        longestMs = Math.min(longestMs, stall.longestMs)
      }
      stalls.push([name, Math.round(longestMs)])
    }
    expect(stalls.filter(([, longestMs]) => longestMs > maxLongestMs)).toEqual([])
  },
  timeoutMs,
)
