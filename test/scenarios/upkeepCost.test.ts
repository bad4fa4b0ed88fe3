import { describe, expect } from 'vitest'
import { verifies } from '../requirements/verifies.ts'
import { toLines } from '../server/start.ts'
import { createTempPaths } from '../stores/tempPaths.ts'
import { briefTurn } from './sampleTurns.ts'
import { memoryBlocksIn, modelName, openRecordingMemory, runTurn, startUpkeepModel } from './upkeepHarness.ts'

const fresh = createTempPaths()
const key = 'acme:ann'

describe('the upkeep model of a long chat', () => {
  for (const [profile, minCycles, maxCycles] of [
    ['summary', 20, 80],
    ['thread', 4, 12],
  ] as const) {
    verifies(
      ['C-02', 'C-08'],
      `profile ${profile}, 1,000 turns › is called once per cycle, for the summary and the facts`,
      async () => {
        await using upkeepModel = await startUpkeepModel()
        await using memory = await openRecordingMemory({
          profile,
          store: `sqlite:${fresh()}`,
          model: upkeepModel.model,
        })
        for (let turn = 0; turn < 1_000; turn++) {
          await runTurn(memory, key, briefTurn(turn))
          if (profile === 'thread') await memory.upkeep.whenIdle()
        }
        await memory.upkeep.whenIdle()
        const [summary] = await memory.upkeep.summaries(key)
        const cycles = summary?.version ?? 0
        expect([cycles >= minCycles, cycles <= maxCycles]).toEqual([true, true])
        expect([
          upkeepModel.requestsFor('summary').length,
          upkeepModel.requestsFor('facts').length,
          upkeepModel.requests.length,
        ]).toEqual([cycles, 0, cycles])
        expect(memory.committed.map(({ version, by }) => [version, by])).toEqual(
          Array.from({ length: cycles }, (_, at) => [at + 1, modelName]),
        )
        // Each message is sent to the model once, so the cost per turn does not grow with the conversation.
        const lines = toLines(await memory.transcript(key)).slice(0, summary?.covers[1])
        expect(upkeepModel.requests.flatMap((request) => memoryBlocksIn(request).at(-1)?.split('\n'))).toEqual(lines)
        expect(memory.health().degraded).toEqual([])
      },
    )
  }
})
