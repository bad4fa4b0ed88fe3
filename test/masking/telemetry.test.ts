import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base'
import { expect } from 'vitest'
import { parseKey } from '../../src/domain/key.ts'
import { openTracing } from '../../src/server/observability/tracing.ts'
import { newChange, newMessage } from '../../src/stores/conformance/fixtures.ts'
import { ramStore } from '../../src/stores/ram.ts'
import { replyWith, startUpstream } from '../providers/upstream.ts'
import { verifies } from '../requirements/verifies.ts'
import { startServer, user } from '../server/start.ts'
import { Canaries } from './canaries.ts'

type Turn = {
  readonly key?: string
  readonly path?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: object
}

/** Model requests with a secret in one place each. */
const turns: Readonly<Record<string, (secret: string) => Turn>> = {
  model: (secret) => ({ body: { model: secret } }),
  'model of a provider': (secret) => ({ body: { model: `openai/${secret}` } }),
  'request id': (secret) => ({ headers: { 'x-request-id': secret } }),
  'session id': (secret) => ({ key: `acme:${secret}` }),
  'session id in a header': (secret) => ({
    path: '/v1/chat/completions',
    headers: { 'x-threadkeep-key': `acme:${secret}` },
  }),
  scope: (secret) => ({ key: `${secret}:ann` }),
  person: (secret) => ({ headers: { 'x-threadkeep-person': secret } }),
  'user in the body': (secret) => ({ path: '/v1/chat/completions', body: { user: secret } }),
  'user agent': (secret) => ({ headers: { 'user-agent': secret } }),
}

verifies(
  ['R-02', 'S-07'],
  'a secret as model, request id, session, scope or person › is in no span and in no metric',
  async () => {
    const [canaries, exporter, store] = [new Canaries(), new InMemorySpanExporter(), ramStore()]
    const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
    const tracing = await openTracing({ provider })
    await using upstream = await startUpstream(() => replyWith('Fine.'))
    await using server = await startServer({ upstream: upstream.url, tracing, memory: { store, sessions: store } })
    // A new session or scope is refused with such a name. One that exists is continued.
    const stored = [
      parseKey(`acme:${canaries.create('stored session')}`),
      parseKey(`${canaries.create('stored scope')}:ann`),
    ]
    for (const key of stored) await store.commit(newChange(key.id, { key, append: [newMessage('Hello.')] }))
    const send = async ({ key = 'acme:ann', path = `/v1/${key}/chat/completions`, headers = {}, body }: Turn) => {
      const response = await fetch(server.url + path, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify({ model: 'gpt-5.4-mini', messages: [user('How is the cat?')], ...body }),
      })
      await response.text()
      return response.status
    }
    const statuses: Record<string, number> = {}
    for (const { scope, id } of stored)
      statuses[id === 'ann' ? 'stored scope' : 'stored session'] = await send({ key: `${scope}:${id}` })
    for (const [name, create] of Object.entries(turns)) statuses[name] = await send(create(canaries.create(name)))
    const spans = exporter.getFinishedSpans()
    const refused = Object.keys(statuses).filter((name) => statuses[name] === 400)
    expect(new Set(Object.values(statuses))).toEqual(new Set([200, 400]))
    expect(refused).toEqual(['session id', 'session id in a header', 'scope'])
    expect(spans.length).toBeGreaterThan(2 * Object.keys(statuses).length)
    const traced = spans.map(({ name, attributes, events, status, links, resource }) =>
      JSON.stringify([name, attributes, events, status, links, resource.attributes]),
    )
    expect(canaries.findInText(traced.join('\n'))).toEqual([])
    const metrics = await (await fetch(`${server.url}/metrics`)).text()
    expect(metrics).toContain('threadkeep_')
    expect(canaries.findInText(metrics)).toEqual([])
  },
)
