import { describe, expect, it } from 'vitest'
import {
  createPseudonymizer,
  type LogOptions,
  openLog,
  type RequestLogEntry,
} from '../../../src/server/observability/log.ts'
import { verifies } from '../../requirements/verifies.ts'
import { createTurnRecord } from './turnRecord.ts'

/** Opens a log that collects its lines. */
function openTestLog(options: LogOptions = {}) {
  const lines: string[] = []
  const log = openLog({
    clock: () => 1_700_000_000_000,
    pseudonym: (key) => `<${key.length}>`,
    ...options,
    destination: { write: (line) => lines.push(line) },
  })
  return { log, lines, read: () => lines.map((line) => JSON.parse(line)) }
}

const entry: RequestLogEntry = {
  id: 'req_1',
  method: 'POST',
  route: '/v1/{key}/chat/completions',
  status: 200,
  durationMs: 812,
  turn: createTurnRecord(),
}

describe('openLog', () => {
  verifies('S-07', 'writes one JSON line per request, with ids and numbers', () => {
    const { log, lines, read } = openTestLog()
    log.request(entry)
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

  it('writes a short line for a request that is not a turn', () => {
    const { log, read } = openTestLog()
    log.request({ id: 'req_2', method: 'GET', route: '/api/sessions', status: 200, durationMs: 3 })
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

  it('writes no session key, message text, header or unknown field', () => {
    const { log, lines } = openTestLog({ pseudonym: createPseudonymizer() })
    const more = { body: 'My cat is called Miso.', headers: { authorization: 'Bearer sk-1' } }
    const turn = {
      ...createTurnRecord({ model: 'My cat is called Miso.' }),
      ...more,
      tokens: { ...createTurnRecord().tokens, ...more },
    }
    log.request({ ...entry, ...more, turn } as RequestLogEntry)
    expect(lines.join('')).not.toMatch(/Miso|Bearer|sk-1|ann|acme/)
    expect(JSON.parse(lines.join('')).model).toBe('other')
  })

  it('derives the level from the status and degradations', () => {
    const { log, read } = openTestLog()
    for (const status of [200, 404, 500]) log.request({ ...entry, status })
    log.request({ ...entry, turn: createTurnRecord({ degraded: [{ code: 'budget', message: 'No room.' }] }) })
    expect(read().map(({ level }) => level)).toEqual(['info', 'warn', 'error', 'warn'])
  })

  it('writes faults and server events', () => {
    const { log, read } = openTestLog()
    log.fault('req_3', 'TypeError at x.ts:1')
    log.event('listening', { port: 4848 })
    const time = '2023-11-14T22:13:20.000Z'
    expect(read()).toEqual([
      { level: 'error', time, id: 'req_3', trace: 'TypeError at x.ts:1', event: 'fault' },
      { level: 'info', time, port: 4848, event: 'listening' },
    ])
  })

  it('omits lines below the configured level', () => {
    const levels = (['debug', 'info', 'warn', 'error', 'silent'] as const).map((level) => {
      const { log, lines } = openTestLog({ level })
      for (const status of [200, 404, 500]) log.request({ ...entry, status })
      return lines.length
    })
    expect(levels).toEqual([3, 3, 2, 1, 0])
  })
})

describe('createPseudonymizer', () => {
  it('maps equal keys to equal pseudonyms and others to others', () => {
    const pseudonymize = createPseudonymizer('a secret')
    expect(pseudonymize('acme:ann')).toMatch(/^[\w-]{16}$/)
    expect(pseudonymize('acme:ann')).toBe(pseudonymize('acme:ann'))
    expect(pseudonymize('acme:ann')).not.toBe(pseudonymize('acme:ben'))
  })

  it('depends on the secret, which is random by default', () => {
    expect(createPseudonymizer('a secret')('acme:ann')).toBe(createPseudonymizer('a secret')('acme:ann'))
    expect(createPseudonymizer('a secret')('acme:ann')).not.toBe(createPseudonymizer('another')('acme:ann'))
    expect(createPseudonymizer()('acme:ann')).not.toBe(createPseudonymizer()('acme:ann'))
  })
})
