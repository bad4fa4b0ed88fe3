import { describe, expect, it } from 'vitest'
import { type Handled, type LogOptions, openLog } from '../../../src/server/observability/log.ts'
import { pseudonyms } from '../../../src/server/observability/pseudonym.ts'
import { verifies } from '../../requirements/verifies.ts'
import { turnOf } from './turns.ts'

/** A log whose lines are kept. */
function opened(options: LogOptions = {}) {
  const lines: string[] = []
  const log = openLog({
    clock: () => 1_700_000_000_000,
    pseudonym: (key) => `<${key.length}>`,
    ...options,
    destination: { write: (line) => lines.push(line) },
  })
  return { log, lines, read: () => lines.map((line) => JSON.parse(line)) }
}

const handled: Handled = {
  id: 'req_1',
  method: 'POST',
  route: '/v1/{key}/chat/completions',
  status: 200,
  millis: 812,
  turn: turnOf(),
}

describe('the log', () => {
  verifies('S-07', 'has one line of JSON for each request, in ids and numbers', () => {
    const { log, lines, read } = opened()
    log.request(handled)
    expect(lines.map((line) => line.at(-1))).toEqual(['\n'])
    expect(read()).toEqual([
      {
        level: 'info',
        time: '2023-11-14T22:13:20.000Z',
        id: 'req_1',
        method: 'POST',
        route: '/v1/{key}/chat/completions',
        status: 200,
        millis: 812,
        session: '<8>',
        protocol: 'chat',
        model: 'gpt-5.4-mini',
        upstream: 'openai',
        profile: 'support',
        streamed: false,
        memoryMillis: 2,
        firstMillis: 300,
        tokens: { shown: 400, history: 1_000, saved: 600, cacheable: 300, prompt: 410, completion: 20, cached: 256 },
        retries: 0,
        aborted: false,
        stored: true,
        degraded: [],
        event: 'request',
      },
    ])
  })

  it('has a short line for what is no turn', () => {
    const { log, read } = opened()
    log.request({ id: 'req_2', method: 'GET', route: '/api/sessions', status: 200, millis: 3 })
    expect(read()).toEqual([
      {
        level: 'info',
        time: '2023-11-14T22:13:20.000Z',
        id: 'req_2',
        method: 'GET',
        route: '/api/sessions',
        status: 200,
        millis: 3,
        event: 'request',
      },
    ])
  })

  it('names no session, and takes from a request nothing but what it knows', () => {
    const { log, lines } = opened({ pseudonym: pseudonyms() })
    const more = { body: 'My cat is called Miso.', headers: { authorization: 'Bearer sk-1' } }
    const turn = { ...turnOf({ model: 'My cat is called Miso.' }), ...more, tokens: { ...turnOf().tokens, ...more } }
    log.request({ ...handled, ...more, turn } as Handled)
    expect(lines.join('')).not.toMatch(/Miso|Bearer|sk-1|ann|acme/)
    expect(JSON.parse(lines.join('')).model).toBe('other')
  })

  it('weighs lines by how the request went', () => {
    const { log, read } = opened()
    for (const status of [200, 404, 500]) log.request({ ...handled, status })
    log.request({ ...handled, turn: turnOf({ degraded: ['budget'] }) })
    expect(read().map(({ level }) => level)).toEqual(['info', 'warn', 'error', 'warn'])
  })

  it('tells of faults and of the server itself', () => {
    const { log, read } = opened()
    log.fault('req_3', 'TypeError at x.ts:1')
    log.note('listening', { port: 4848 })
    const time = '2023-11-14T22:13:20.000Z'
    expect(read()).toEqual([
      { level: 'error', time, id: 'req_3', trace: 'TypeError at x.ts:1', event: 'fault' },
      { level: 'info', time, port: 4848, event: 'listening' },
    ])
  })

  it('leaves out what weighs less than it was told to write', () => {
    const levels = (['debug', 'info', 'warn', 'error', 'silent'] as const).map((level) => {
      const { log, lines } = opened({ level })
      for (const status of [200, 404, 500]) log.request({ ...handled, status })
      return lines.length
    })
    expect(levels).toEqual([3, 3, 2, 1, 0])
  })
})

describe('the name of a session in logs and spans', () => {
  it('is the same for the same session and another for others', () => {
    const name = pseudonyms('a secret')
    expect(name('acme:ann')).toMatch(/^[\w-]{16}$/)
    expect(name('acme:ann')).toBe(name('acme:ann'))
    expect(name('acme:ann')).not.toBe(name('acme:ben'))
  })

  it('stays over a restart with the same secret, and changes without', () => {
    expect(pseudonyms('a secret')('acme:ann')).toBe(pseudonyms('a secret')('acme:ann'))
    expect(pseudonyms('a secret')('acme:ann')).not.toBe(pseudonyms('another')('acme:ann'))
    expect(pseudonyms()('acme:ann')).not.toBe(pseudonyms()('acme:ann'))
  })
})
