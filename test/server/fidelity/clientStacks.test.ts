import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { verifies } from '../../requirements/verifies.ts'
import { agentStacks } from './agentStacks.ts'
import { findDifferences, findPrefixChanges } from './compareRequests.ts'
import { frameworkStacks } from './frameworkStacks.ts'
import { knownFact, type Recorder, startRecorder } from './recorder.ts'
import { steps } from './scenario.ts'
import { sdkStacks } from './sdkStacks.ts'

const allSteps = Object.values(steps).flat()
const failedStep = 'a failed attempt (500)'

for (const stack of [...sdkStacks, ...frameworkStacks, ...agentStacks]) {
  describe(stack.name, () => {
    let recorder: Recorder
    let errors: ReadonlyMap<string, unknown>
    beforeAll(async () => {
      recorder = await startRecorder(stack.protocol)
      errors = await stack.run(recorder)
    })
    afterAll(() => recorder[Symbol.asyncDispose]())

    it('without the server › raises no error, and the recorder finds no difference', async () => {
      await using direct = await startRecorder(stack.protocol, 'model server')
      expect([...(await stack.run(direct)).keys()]).toEqual([failedStep])
      expect(new Set(direct.exchanges.map(({ step }) => step))).toEqual(new Set(allSteps))
      expect(direct.exchanges.flatMap(findDifferences)).toEqual([])
      expect(findPrefixChanges(direct.exchanges)).toEqual([])
    })

    for (const step of allSteps)
      verifies(['F-01', 'F-02', 'S-03'], `${step} › reaches the upstream as the client sent it`, () => {
        if (step !== failedStep) expect(errors.get(step)).toBeUndefined()
        const exchanges = recorder.exchanges.filter((exchange) => exchange.step === step)
        expect(exchanges.length).toBeGreaterThan(0)
        expect(exchanges.flatMap(findDifferences)).toEqual([])
      })

    verifies(['F-01', 'S-03'], 'knowledge of the tenant › reaches the upstream', () => {
      const outgoing = recorder.exchanges.flatMap(({ forwarded }) => forwarded.map(({ text }) => text))
      expect(outgoing.filter((text) => text.includes(knownFact)).length).toBeGreaterThan(0)
    })

    verifies(['F-01', 'F-02', 'S-03'], 'consecutive requests › share their prefix byte for byte', () => {
      const conversations = [steps.main, steps.subAgent, [...steps.compacted, ...steps.resumed]]
      const changes = conversations.flatMap((names: readonly string[]) =>
        findPrefixChanges(recorder.exchanges.filter(({ step }) => names.includes(step))),
      )
      expect(changes).toEqual([])
    })
  })
}
