import { Agent, get } from 'node:http'
import { describe, expect, it } from 'vitest'
import { parseKey } from '../../../src/domain/key.ts'
import { SessionEvents } from '../../../src/server/inspector/sessionEvents.ts'
import { UsageSeries } from '../../../src/server/observability/usageSeries.ts'
import { withChangeListener } from '../../../src/stores/changeListener.ts'
import { ramStore } from '../../../src/stores/ram.ts'
import { sqliteStore } from '../../../src/stores/sqlite.ts'
import { person, requireGraph } from '../../graph/fixtures.ts'
import { createTempPaths } from '../../stores/tempPaths.ts'
import { startServer, user } from '../start.ts'

const fresh = createTempPaths()
const json = async (response: Response | Promise<Response>) => (await response).json()

/** Reads an event stream until a pattern appears. */
async function readUntil(response: Response, pattern: RegExp): Promise<string> {
  let text = ''
  for await (const chunk of response.body ?? []) {
    text += Buffer.from(chunk).toString()
    if (pattern.test(text)) return text
  }
  return text
}

describe('GET /api/events', () => {
  it('a session changes › sends its key to subscribers of the tenant only, and ends at shutdown', async () => {
    const sessionEvents = new SessionEvents()
    const store = withChangeListener(ramStore(), (change) => sessionEvents.publish(change, 7))
    await using server = await startServer({ memory: { store }, sessionEvents })
    const acme = await fetch(`${server.url}/api/events?scope=acme`)
    const all = await fetch(`${server.url}/api/events`)
    expect(acme.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
    await server.memory.append('globex:bob', [user('Hello')])
    await server.memory.append('acme:ann', [user('Hello')])
    const text = await readUntil(acme, /acme:ann/)
    expect(text).toContain('event: session\ndata: {"key":"acme:ann","at":7}\n\n')
    expect(text).not.toContain('globex')
    expect(await readUntil(all, /acme:ann/)).toContain('globex:bob')
    await server.memory.end('acme:ann')
    const later = await fetch(`${server.url}/api/events`)
    await server.close(1_000)
    expect(await readUntil(later, /never/)).toContain('retry: 2000')
  })

  it('HEAD › ends with the headers, so that the connection serves the next request', async () => {
    await using server = await startServer()
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    const request = (method: string, path: string) =>
      new Promise<number | undefined>((resolve, reject) => {
        const sent = get(server.url + path, { method, agent, timeout: 5_000 }, (response) => {
          response.resume().on('end', () => resolve(response.statusCode))
        })
        sent.on('timeout', () => sent.destroy(new Error('no response'))).on('error', reject)
      })
    expect([await request('HEAD', '/api/events'), await request('GET', '/healthz')]).toEqual([200, 200])
    agent.destroy()
  })

  it('a client does not read › gets each session once, and a reset when too many wait', async () => {
    const sessionEvents = new SessionEvents()
    await using server = await startServer({ sessionEvents })
    const response = await fetch(`${server.url}/api/events`)
    for (let session = 0; session < 1_200; session++)
      for (let repeat = 0; repeat < 2; repeat++)
        sessionEvents.publish({ kind: 'entries', key: parseKey(`acme:s${session}`) }, 1)
    const text = await readUntil(response, /s1199/)
    expect(text).toContain('event: reset\ndata: {}\n\n')
    expect(text.split('"acme:s1199"')).toHaveLength(2)
  })
})

describe('GET /api/sessions', () => {
  it('with a text › lists the sessions whose key contains it, page by page', async () => {
    await using server = await startServer()
    for (const key of ['acme:Ann', 'acme:bob', 'globex:joann']) await server.memory.append(key, [user('Hello')])
    const list = async (query: string) =>
      (await server.requestJson(`GET /api/sessions?${query}`)).body as { items: { key: string }[]; next: string | null }
    expect((await list('q=ANN')).items.map(({ key }) => key)).toEqual(['acme:Ann', 'globex:joann'])
    const first = await list('q=ann&limit=1')
    expect([first.items.map(({ key }) => key), first.next]).toEqual([['acme:Ann'], 'acme:Ann'])
    expect((await list('q=ann&limit=1&after=acme:Ann')).items.map(({ key }) => key)).toEqual(['globex:joann'])
    expect((await list('template=none')).items).toEqual([])
  })
})

describe('replay, export, import and preview', () => {
  it('replay › with another profile › returns both ledgers, and names the profiles for an unknown one', async () => {
    await using server = await startServer()
    await server.memory.append('acme:ann', [user('My cat is called Miso.')])
    const { status, body } = await server.requestJson('GET /api/sessions/acme:ann/replay?profile=summary')
    expect([status, body]).toMatchObject([
      200,
      { ledger: { profile: 'summary' }, was: { profile: 'thread' }, differences: [] },
    ])
    const refused = await server.requestJson('GET /api/sessions/acme:ann/replay?profile=suport')
    expect([refused.status, JSON.stringify(refused.body)]).toEqual([400, expect.stringContaining('support')])
  })

  it('export and import › into another tenant › copies the session, and refuses other contents', async () => {
    await using server = await startServer()
    await server.memory.append('acme:ann', [user('My cat is called Miso.')])
    const response = await fetch(`${server.url}/api/sessions/acme:ann/export`)
    expect(response.headers.get('content-disposition')).toBe('attachment; filename="acme_ann.jsonl"')
    const bundle = await response.text()
    const importTo = (query: string) =>
      fetch(`${server.url}/api/scopes/copy/import${query}`, { method: 'POST', body: bundle })
    expect(await json(importTo(''))).toMatchObject({ sessions: 1, messages: 1 })
    expect(await server.transcriptLines('copy:ann')).toEqual(['user: My cat is called Miso.'])
    await server.memory.append('copy:ann', [user('Another one.')])
    expect((await importTo('')).status).toBe(409)
    expect((await importTo('?existing=maybe')).status).toBe(400)
    expect(await json(importTo('?existing=replace'))).toMatchObject({ replaced: ['copy:ann'] })
  })

  it('forget preview › for a text › lists its messages and deletes nothing', async () => {
    await using server = await startServer()
    await server.memory.append('acme:ann', [user('The walrus sleeps.'), user('Hello')])
    const { body } = await server.requestJson('POST /api/forget/preview', { scope: 'acme', text: 'walrus' })
    expect(body).toMatchObject({
      counts: { messages: 1 },
      sessions: [{ key: 'acme:ann', first: [{ id: 'm1', text: 'user: The walrus sleeps.' }] }],
    })
    expect(await server.transcriptLines('acme:ann')).toHaveLength(2)
  })

  it('forget preview › for a session › names the summaries that go with it', async () => {
    await using server = await startServer()
    await server.postChat('acme:ann', { messages: [user('Hello')] })
    await server.requestJson('POST /api/sessions/acme:ann/record', { conversation_summary: 'They greeted.' })
    const { body } = await server.requestJson('POST /api/forget/preview', { key: 'acme:ann' })
    expect(body).toMatchObject({ sessions: [{ summaries: 1, derived: [{ text: 'summary: They greeted.' }] }] })
  })

  it('context › with masked=true › has placeholders in the place of secrets', async () => {
    await using server = await startServer()
    await server.postChat('acme:ann', { messages: [user('My API key is sk-proj-4f9aK2mQ7xLw0ZbT8vRn3yUe.')] })
    const read = async (query: string) =>
      JSON.stringify((await server.requestJson(`GET /api/sessions/acme:ann/context${query}`)).body)
    expect(await read('')).toContain('sk-proj-4f9aK2mQ7xLw0ZbT8vRn3yUe')
    const masked = await read('?masked=true')
    expect(masked).toMatch(/My API key is ⟨secret:\d+⟩/)
    expect(masked).not.toContain('sk-proj')
  })

  it('receipts › without ledgers › have everything else', async () => {
    await using server = await startServer()
    await server.postChat('acme:ann', { messages: [user('Hello')] })
    const { body } = await server.requestJson('GET /api/sessions/acme:ann/receipts?ledger=false')
    const [receipt] = (body as { items: object[] }).items
    expect(receipt).toMatchObject({ key: 'acme:ann', tokens: {} })
    expect(receipt).not.toHaveProperty('ledger')
  })
})

describe('usage over time', () => {
  it('turns of a tenant › are summed by minute, and old minutes are dropped', async () => {
    await using server = await startServer({ clock: () => 600_000 })
    await server.postChat('acme:ann', { messages: [user('Hello')] })
    await server.postChat('globex:bob', { messages: [user('Hello')] })
    const read = async (query: string) => (await server.requestJson(`GET /api/usage${query}`)).body
    expect(await read('?scope=acme')).toMatchObject({
      intervalMs: 60_000,
      points: [{ at: 600_000, turns: 1, failed: 0 }],
    })
    expect(await read('')).toMatchObject({ points: [{ turns: 2 }] })
    expect(await read('?scope=nobody')).toMatchObject({ points: [] })
    const series = new UsageSeries()
    const turn = { scope: 'acme', status: 500, isAborted: false } as Parameters<UsageSeries['recordTurn']>[0]
    series.recordTurn(turn, 0)
    series.recordTurn(turn, 360 * 60_000)
    expect(series.read('acme', 360 * 60_000).map(({ at }) => at)).toEqual([360 * 60_000])
  })

  it('state of the server › names upstreams and upkeep', async () => {
    await using server = await startServer()
    expect((await server.requestJson('GET /api/operations')).body).toMatchObject({
      status: 'ok',
      upstreams: [{ name: 'threadkeep-offline', state: 'ok' }],
      upkeep: [{ profile: 'thread', by: 'builtin' }],
      steps: [],
    })
  })

  it('steps of upkeep › are listed with what they stored, until their tenant is forgotten', async () => {
    await using server = await startServer()
    await server.memory.append('acme:ann', [user('My cat is called Miso.'), user('My rent is $915 a month.')])
    await server.memory.upkeep.run('acme:ann')
    const read = async () => (await server.requestJson('GET /api/operations')).body
    expect(await read()).toMatchObject({ steps: [{ key: 'acme:ann', step: 'reextractFacts', facts: 3, faults: [] }] })
    expect((await server.requestJson('GET /healthz')).body).not.toHaveProperty('upkeep.recent')
    await server.memory.forget({ scope: 'acme' })
    expect(await read()).toMatchObject({ steps: [] })
  })
})

describe('GET /api/scopes/{scope}/graph', () => {
  it('of a large graph › returns the first nodes and links that fit, and the number of all nodes', async () => {
    const store = sqliteStore(fresh())
    await using server = await startServer({ memory: { store } })
    const graph = await requireGraph(store)
    const long = 'x'.repeat(1_000_000)
    await graph.write('acme', { entities: [person('e1', { city: 'Oslo' }), person('e2', { long }), person('e3')] })
    const entities = Array.from({ length: 2_500 }, (_, at) => ({ name: `n${at}`, entityType: 't', observations: [] }))
    const relations = entities.slice(0, 2_100).flatMap(({ name }) => [
      { from: name, to: 'hub', relationType: 'a' },
      { from: name, to: 'hub', relationType: 'b' },
    ])
    await graph.nodes.createEntities('acme', entities)
    await graph.nodes.createRelations('acme', relations)
    await graph.close()
    const { nodes, links, total } = await json(fetch(`${server.url}/api/scopes/acme/graph`))
    expect(nodes.slice(0, 3)).toEqual([
      { id: 'e1', type: 'person', properties: { city: 'Oslo' }, sources: [] },
      { id: 'e3', type: 'person', properties: {}, sources: [] },
      { id: 'n0', type: 't', properties: { observations: [] }, sources: [] },
    ])
    expect([nodes.length, links.length, total]).toEqual([2_000, 4_000, 2_503])
    expect(links[3_999]).toEqual({ from: 'n1999', to: 'hub', type: 'b' })
    expect(await json(fetch(`${server.url}/api/scopes/none/graph`))).toEqual({ nodes: [], links: [], total: 0 })
  })
})
