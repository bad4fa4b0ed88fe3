import { readFileSync } from 'node:fs'
import { describe, expect } from 'vitest'
import { parseKey } from '../../src/domain/key.ts'
import { replyWith, sendRaw, startUpstream, type Upstream } from '../providers/upstream.ts'
import { verifies } from '../requirements/verifies.ts'
import { type ConfiguredServer, openConfiguredServer } from '../server/config/harness.ts'
import { createTempPaths } from '../stores/tempPaths.ts'

const fresh = createTempPaths()
const hour = 3_600_000
const start = Date.UTC(2026, 2, 2, 9)
const policy = 'Refunds take 14 days and need the receipt'

type Scenario = AsyncDisposable & {
  readonly opened: ConfiguredServer
  readonly upstream: Upstream
  /** File of the tenant's memory. */
  readonly file: string
  readonly clock: { now: number }
  /** Asks as a client that sends only its newest message, and returns the prompt that reached the model. */
  ask(key: string, content: string): Promise<string>
  /** Ends expired sessions and delivers their end events. */
  sweep(): Promise<void>
  post(path: string, body: string, headers?: Readonly<Record<string, string>>): Promise<Response>
  transcript(key: string): Promise<readonly string[]>
}

/** Starts the server with the profile `support` and a model that answers "Noted.". */
async function startScenario(config: object = {}): Promise<Scenario> {
  const upstream = await startUpstream(replyWith('Noted.'))
  const [file, clock] = [fresh(), { now: start }]
  const opened = await openConfiguredServer(
    fresh('.json'),
    { profile: 'support', store: `sqlite:${file}`, upkeep: 'builtin', upstreams: [{ base: upstream.url }], ...config },
    { clock: () => clock.now, environment: { HOOK: 'sesame' } },
  )
  const memoryOf = async (key: string) => (await opened.server.memories.resolve(parseKey(key))).memory
  return {
    opened,
    upstream,
    file,
    clock,
    ask: async (key, content) => {
      expect((await opened.ask(key, content)).status).toBe(200)
      await (await memoryOf(key)).upkeep.whenIdle()
      return upstream.requests.findLast(({ text }) => text.includes(JSON.stringify(content)))?.text ?? ''
    },
    sweep: async () => {
      for (const memory of opened.server.memories.all()) {
        await memory.sweep()
        await memory.lifecycle.whenIdle()
      }
    },
    post: (path, body, headers = { 'content-type': 'application/json' }) =>
      fetch(`${opened.server.url}${path}`, { method: 'POST', headers, body }),
    transcript: async (key) => (await (await memoryOf(key)).transcript(key)).map(({ content }) => content),
    [Symbol.asyncDispose]: async () => {
      await opened.server.close(0)
      await upstream.close()
    },
  }
}

const addPolicy = ({ post }: Scenario): Promise<Response> =>
  post('/api/scopes/acme/knowledge', JSON.stringify({ category: 'domain', key: 'refunds', value: policy }))

describe('testing scenarios of the tenants document', () => {
  verifies(['T-02', 'T-06'], '1. Basic Session Flow', async () => {
    await using scenario = await startScenario()
    const { ask, clock } = scenario
    await ask('acme:session1', 'I need help with order #12345.')
    await ask('acme:session1', 'It was to arrive on Monday.')
    const third = await ask('acme:session1', 'Can you check again?')
    for (const earlier of ['order #12345', 'arrive on Monday', 'Noted.']) expect(third).toContain(earlier)
    for (let turn = 0; turn < 3; turn++) {
      clock.now += 20 * hour
      await scenario.sweep()
      expect(await ask('acme:session1', `Any news on day ${turn}?`)).toContain('order #12345')
    }
    clock.now += 24 * hour
    await scenario.sweep()
    expect(await ask('acme:session1', 'Hello again.')).not.toContain('order #12345')
  })

  verifies(['T-04', 'T-08', 'T-12'], '2. Memory Overflow', async () => {
    await using scenario = await startScenario({
      profile: 'small',
      profiles: { small: { extends: 'support', lifetime: { messages: 110 } } },
    })
    const { ask, transcript } = scenario
    let prompt = ''
    for (let turn = 1; turn <= 60; turn++)
      prompt = await ask('acme:busy', `Parcel PX-${1_000 + turn} must go to Town ${turn} before Friday, please.`)
    expect(prompt).toContain('[CONVERSATION SUMMARY]')
    expect(prompt).toContain('PX-1060')
    const { messages } = JSON.parse(prompt) as { messages: { role: string }[] }
    expect(messages.filter(({ role }) => role !== 'system').length).toBeLessThan(50)
    const stored = await transcript('acme:busy')
    expect([stored.length, stored[0]?.includes('PX-1001'), stored[1]?.includes('PX-1002')]).toEqual([110, true, false])
  })

  verifies(['T-06', 'T-07'], '3. Session Expiration', async () => {
    await using hook = await startUpstream(sendRaw('application/json', '{}'))
    await using scenario = await startScenario({ webhook: { url: `${hook.origin}/ended`, secretEnv: 'HOOK' } })
    const { ask, clock, opened } = scenario
    await ask('acme:session1', 'My cat is called Miso.')
    clock.now += 24 * hour - 1
    await scenario.sweep()
    expect(hook.requests).toEqual([])
    clock.now++
    await scenario.sweep()
    await scenario.sweep()
    expect(hook.requests.map(({ body }) => [body.key, body.reason, body.data.messageCount])).toEqual([
      ['acme:session1', 'expired', 2],
    ])
    expect(hook.requests[0]?.text).toContain('Miso')
    expect(await scenario.transcript('acme:session1')).toEqual([])
    const listed = await fetch(`${opened.server.url}/api/sessions?scope=acme`)
    expect(await listed.text()).not.toContain('acme:session1')
  })

  verifies('T-09', '4. File Upload Blocking', async () => {
    await using scenario = await startScenario()
    const { post, upstream } = scenario
    const data = `data:text/plain;base64,${Buffer.from('A secret plan').toString('base64')}`
    const filePart = { type: 'file', file: { filename: 'plan.txt', file_data: data } }
    const chat = { model: 'any', messages: [{ role: 'user', content: [filePart] }] }
    const refused = [
      await post('/api/sessions/acme:session1/files', 'A secret plan', {
        'x-filename': 'plan.txt',
        'content-type': 'text/plain',
      }),
      await post('/v1/acme:session1/chat/completions', JSON.stringify(chat)),
    ]
    for (const response of refused) {
      expect(response.status).toBe(400)
      expect(await response.json()).toMatchObject({
        error: { message: 'File uploads not allowed for ephemeral sessions' },
      })
    }
    expect([upstream.requests, await scenario.transcript('acme:session1')]).toEqual([[], []])
    const files = await fetch(`${scenario.opened.server.url}/api/scopes/acme/files`)
    expect(await files.text()).not.toContain('plan.txt')
  })

  verifies(['T-03', 'T-13'], '5. Concurrent Sessions', async () => {
    await using scenario = await startScenario()
    const { ask, file } = scenario
    expect((await addPolicy(scenario)).ok).toBe(true)
    const keys = Array.from({ length: 8 }, (_, index) => `acme:user${index}`)
    await Promise.all(keys.map((key) => ask(key, `My name is Visitor-${key.slice(5)}.`)))
    const prompts = await Promise.all(
      keys.map((key) => ask(key, `I am ${key.slice(5)}. How many days do refunds take, and what do they need?`)),
    )
    for (const [index, prompt] of prompts.entries()) {
      expect(prompt).toContain(policy)
      expect(new Set(prompt.match(/Visitor-user\d/g))).toEqual(new Set([`Visitor-user${index}`]))
    }
    expect(await ask('other:user0', 'How many days do refunds take, and what do they need?')).not.toContain(policy)
    await scenario.opened.server.close(0)
    const stored = readFileSync(file)
    expect([stored.includes(policy), stored.includes('Visitor')]).toEqual([true, false])
  })
})
