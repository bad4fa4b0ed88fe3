import { describe, expect } from 'vitest'
import { verifies } from '../requirements/verifies.ts'
import { freshFiles } from '../stores/tempPaths.ts'
import { dataIn, modelName, openStaged, startScribe, takeTurn } from './stage.ts'
import { briefTurnAt, linesOf } from './turns.ts'

const fresh = freshFiles()
const key = 'acme:ann'

describe('the model behind a long chat', () => {
  for (const [profile, fewest, most] of [
    ['summary', 20, 80],
    ['thread', 4, 12],
  ] as const) {
    verifies(
      ['C-02', 'C-08'],
      `is asked for one summary and one extraction in each cycle of 1,000 turns (profile ${profile})`,
      async () => {
        await using scribe = await startScribe()
        await using memory = await openStaged({ profile, store: `sqlite:${fresh()}`, model: scribe.model })
        for (let turn = 0; turn < 1_000; turn++) {
          await takeTurn(memory, key, briefTurnAt(turn))
          if (profile === 'thread') await memory.upkeep.settled()
        }
        await memory.upkeep.settled()
        const [summary] = await memory.upkeep.summaries(key)
        const cycles = summary?.version ?? 0
        expect([cycles >= fewest, cycles <= most]).toEqual([true, true])
        expect([scribe.asked('summary').length, scribe.asked('facts').length, scribe.requests.length]).toEqual([
          cycles,
          cycles,
          2 * cycles,
        ])
        expect(memory.committed.map(({ version, by }) => [version, by])).toEqual(
          Array.from({ length: cycles }, (_, at) => [at + 1, modelName]),
        )
        // every message is put before it once, so that the price of a turn does not grow with the conversation
        const lines = linesOf(await memory.transcript(key)).slice(0, summary?.covers[1])
        for (const purpose of ['summary', 'facts'] as const)
          expect(scribe.asked(purpose).flatMap((request) => dataIn(request).at(-1)?.split('\n'))).toEqual(lines)
        expect(memory.health().degraded).toEqual([])
      },
    )
  }
})
