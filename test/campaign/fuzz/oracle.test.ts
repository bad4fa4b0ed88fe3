import { describe, expect, it } from 'vitest'
import { Counter, type Finding } from '../part.ts'
import { FuzzRun } from './fuzz.ts'
import { canaries, type HttpStep } from './input.ts'
import { checkAnswer } from './oracle.ts'
import type { Answer } from './target.ts'

const folder = '/tmp/threadkeep-campaign-x'
const step: HttpStep = {
  surface: 'http',
  route: 'GET /api/sessions',
  caller: 'acme',
  method: 'GET',
  path: '/api/sessions',
  headers: {},
}
const errorBody = (message: string): string =>
  JSON.stringify({ error: { message, type: 'invalid_request_error', param: null, code: 'bad-option' } })
const answer = (status: number, body: string): Answer => ({
  status,
  body,
  headers: { 'content-type': 'application/json' },
})
const problemsOf = (status: number, body: string, changes: Partial<HttpStep> = {}): readonly string[] =>
  checkAnswer({ folder }, { ...step, ...changes }, answer(status, body)).map(({ kind }) => kind)

describe('the oracle of the fuzzer', () => {
  it('with ordinary responses and errors › has nothing to report', () => {
    expect(problemsOf(200, JSON.stringify({ text: canaries.acme }))).toEqual([])
    expect(problemsOf(400, errorBody('limit is 0; it must be 1 or more.'))).toEqual([])
    expect(problemsOf(200, JSON.stringify({ text: `${folder}/shared/a.txt` }))).toEqual([])
  })

  it('with a status of 500 › reports it', () => {
    expect(problemsOf(500, errorBody('Internal error.'))).toEqual(['status 500 GET /api/sessions'])
  })

  it('with a refusal of a busy server › reports only one that does not tell when to try again', () => {
    const busy = { ...answer(503, '{"error":{"message":"Busy.","type":"server_error","param":null,"code":"busy"}}') }
    const kindsOf = (response: Answer) => checkAnswer({ folder }, step, response).map(({ kind }) => kind)
    expect(kindsOf(busy)).toEqual(['status 503 GET /api/sessions'])
    expect(kindsOf({ ...busy, headers: { ...busy.headers, 'retry-after': '1' } })).toEqual([])
  })

  it('with internals in an error › reports them, unless the client has sent them', () => {
    for (const [name, text] of [
      ['path', `cannot open ${folder}/a.db`],
      ['stack', 'failed\\n    at Object.run (main)'.replaceAll('\\n', '\n')],
      ['source', 'in /src/server/serve.ts'],
      ['SQL', 'SQLITE_BUSY'],
      ['engine error', "Cannot read properties of undefined (reading 'a')"],
    ] as const)
      expect([name, problemsOf(400, name === 'stack' ? text : errorBody(text))]).toEqual([
        name,
        expect.arrayContaining([`${name} in response GET /api/sessions`]),
      ])
    expect(
      problemsOf(400, errorBody('Unknown parameter SQLITE_BUSY.'), { path: '/api/sessions?SQLITE_BUSY=1' }),
    ).toEqual([])
  })

  it('with text of another tenant › reports it, except to the operator and to whoever has sent it', () => {
    const body = JSON.stringify({ text: `The code word is ${canaries.globex}.` })
    expect(problemsOf(200, body)).toEqual(['text of globex for acme GET /api/sessions'])
    expect(problemsOf(200, body, { caller: 'nobody' })).toEqual(['text of globex for nobody GET /api/sessions'])
    expect(problemsOf(200, body, { caller: 'operator' })).toEqual([])
    expect(problemsOf(200, body, { caller: 'globex' })).toEqual([])
    expect(problemsOf(200, body, { path: `/api/sessions?q=${canaries.globex}` })).toEqual([])
  })

  it('without a response, with invalid JSON or another error format › reports it', () => {
    expect(checkAnswer({ folder }, step, { ...answer(0, ''), failure: 'closed' })).toEqual([
      { kind: 'no response GET /api/sessions', detail: 'closed' },
    ])
    expect(problemsOf(200, '{')).toEqual(['invalid JSON GET /api/sessions'])
    expect(problemsOf(400, '{"message":"No."}')).toEqual(['error shape GET /api/sessions'])
  })
})

describe('a run of the fuzzer', () => {
  /** Runs a request on a server whose stretches are given: of the batch or the first run, and of each repetition. */
  const findStalls = async (bytes: number, { firstMs, againMs }: { firstMs: number; againMs: number }) => {
    const findings: Finding[] = []
    const options = { seed: 1, inputs: 1, isOver: () => false, counter: new Counter(), onProgress: () => undefined }
    const run = new FuzzRun(
      {
        server: { state: async () => ({ stretchMs: firstMs, faults: [], rssBytes: 0, cpuMs: 0 }) },
        run: async () => [],
        runAlone: async () => ({ problems: [], stretchMs: firstMs }),
        shortestStretch: async () => againMs,
      },
      { ...options, onFinding: (finding) => findings.push(finding) },
    )
    await run.runBatch([{ ...step, body: 'x'.repeat(bytes) }])
    return findings.map(({ kind }) => kind)
  }

  it('with a stretch over the limit of its size that repeats › reports a stall', async () => {
    const stretch = (ms: number) => ({ firstMs: ms, againMs: ms })
    expect(await findStalls(100, stretch(51))).toEqual(['stall GET /api/sessions ≤ 100 kB'])
    expect(await findStalls(900_000, stretch(51))).toEqual(['stall GET /api/sessions ≤ 1 MB'])
    expect(await findStalls(4_000_000, stretch(251))).toEqual(['stall GET /api/sessions ≤ body limit'])
    for (const [bytes, ms] of [
      [100, 49],
      [900_000, 49],
      [4_000_000, 249],
    ] as const)
      expect(await findStalls(bytes, stretch(ms))).toEqual([])
  })

  it('with a stretch that does not repeat › reports it only if it is too long for a collection of garbage', async () => {
    expect(await findStalls(900_000, { firstMs: 240, againMs: 20 })).toEqual([])
    expect(await findStalls(900_000, { firstMs: 260, againMs: 20 })).toEqual([
      'single stall in 1 GET /api/sessions ≤ 1 MB',
    ])
  })
})
