import { afterAll, beforeAll, describe, expect } from 'vitest'
import { verifies } from '../../requirements/verifies.ts'
import { replyWith } from '../clients/modelServer.ts'
import { findDifferences } from './compareRequests.ts'
import { knownFact, type Recorder, startRecorder } from './recorder.ts'
import { unusualRequests } from './unusualRequests.ts'

const question = 'Where is the weather warmer?'
const rules = 'Follow the rules of the house, and do not leave files behind. '
const createTurns = (count: number, filler: string) =>
  Array.from({ length: count }, (_, index) => [
    { role: 'user', content: `Step ${index}: ${filler}` },
    { role: 'assistant', content: `Step ${index} is done. ${filler}` },
  ]).flat()
/** Conversations by size; the larger ones exceed the default budget but fit the context window of the models. */
const sizes = [
  ['a short conversation', 'Be brief.', createTurns(1, 'Look.')],
  ['instructions of 28,000 tokens', rules.repeat(2_000), createTurns(1, 'Look.')],
  ['a conversation of 34,000 tokens', 'Be brief.', createTurns(40, rules.repeat(30))],
] as const

function createBody(path: string, system: string, list: readonly unknown[]): unknown {
  if (path === '/responses') return { model: 'gpt-5', instructions: system, input: list }
  if (path === '/v1/messages') return { model: 'claude-sonnet-4-5', max_tokens: 1_000, system, messages: list }
  return { model: 'gpt-5', messages: [{ role: 'system', content: system }, ...list] }
}

for (const protocol of ['openai', 'anthropic'] as const) {
  // All cases share one session: each is a conversation unlike the one before.
  describe(`a client that resends its conversation (${protocol})`, () => {
    let recorder: Recorder
    beforeAll(async () => {
      recorder = await startRecorder(protocol)
      await recorder.rememberFact()
    })
    afterAll(() => recorder[Symbol.asyncDispose]())
    const send = async (step: string, path: string, body: unknown): Promise<string> => {
      recorder.begin(step, replyWith('Fine.'))
      const response = await fetch(`${recorder.url}${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-threadkeep-history': 'full' },
        body: JSON.stringify(body),
      })
      return `${response.status} ${await response.text()}`
    }

    for (const { name, path, body } of unusualRequests.filter((request) => request.protocol === protocol)) {
      verifies(['F-01', 'F-02'], `${name} › reaches the upstream unchanged`, async () => {
        expect(await send(name, path, body)).toMatch(/^200 /)
        expect(recorder.exchanges.filter(({ step }) => step === name).flatMap(findDifferences)).toEqual([])
      })
    }

    for (const path of protocol === 'openai' ? ['/chat/completions', '/responses'] : ['/v1/messages'])
      for (const [size, system, turns] of sizes)
        verifies('F-01', `${size} (${path}) › reaches the upstream unchanged, with one memory message`, async () => {
          const name = `${size} ${path}`
          const list = [...turns, { role: 'user', content: `${question} (${size})` }]
          expect(await send(name, path, createBody(path, system, list))).toMatch(/^200 /)
          const exchanges = recorder.exchanges.filter(({ step }) => step === name)
          expect(exchanges.flatMap(findDifferences)).toEqual([])
          expect(exchanges[0]?.forwarded[0]?.text).toContain(knownFact)
        })
  })
}
