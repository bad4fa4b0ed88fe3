import { afterAll, beforeAll, describe, expect } from 'vitest'
import { verifies } from '../../requirements/verifies.ts'
import { replyWith } from '../clients/modelServer.ts'
import { findDifferences } from './compareRequests.ts'
import { knownFact, type Recorder, startRecorder } from './recorder.ts'
import { unusualRequests } from './unusualRequests.ts'

const question = 'Where is the weather warmer?'

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

    const paths = protocol === 'openai' ? ['/chat/completions', '/responses'] : ['/v1/messages']
    for (const path of paths)
      verifies('F-01', `a question about known facts (${path}) › is followed by one memory message`, async () => {
        const name = `known facts ${path}`
        const list = [
          { role: 'user', content: 'Hello.' },
          { role: 'assistant', content: 'Hello!' },
          { role: 'user', content: question },
        ]
        const body = { model: 'test-model', max_tokens: 1_000, [path === '/responses' ? 'input' : 'messages']: list }
        expect(await send(name, path, body)).toMatch(/^200 /)
        const exchanges = recorder.exchanges.filter(({ step }) => step === name)
        expect(exchanges.flatMap(findDifferences)).toEqual([])
        expect(exchanges[0]?.forwarded[0]?.text).toContain(knownFact)
      })
  })
}
