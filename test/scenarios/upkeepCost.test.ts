import { describe, expect } from 'vitest'
import { profiles } from '../../src/index.ts'
import { isCampaign } from '../context/campaign.ts'
import { verifies } from '../requirements/verifies.ts'
import { toLines } from '../server/start.ts'
import { briefTurn, sampleTurn } from './sampleTurns.ts'
import { memoryBlocksIn, modelName, openRecordingMemory, runTurn, startUpkeepModel } from './upkeepHarness.ts'

const key = 'acme:ann'

describe('the upkeep model of a long chat', () => {
  for (const [name, profile, turns, minCycles, maxCycles] of [
    ['summary', profiles.summary, isCampaign ? 250 : 120, isCampaign ? 5 : 2, isCampaign ? 20 : 10],
    // A thread is summarised for the first time after more than 300 turns.
    ['thread', profiles.thread, isCampaign ? 1_000 : 500, isCampaign ? 4 : 1, 12],
  ] as const) {
    verifies(
      ['C-02', 'C-08'],
      `profile ${name}, ${turns} turns › is called once per cycle, for the summary and the facts`,
      async () => {
        await using upkeepModel = await startUpkeepModel()
        await using memory = await openRecordingMemory({
          profile,
          store: 'ram:',
          model: upkeepModel.model,
        })
        for (let turn = 0; turn < turns; turn++) {
          await runTurn(memory, key, briefTurn(turn))
          if (name === 'thread') await memory.upkeep.whenIdle()
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

  /** Message lengths in words at ten quantiles, as in real conversations. */
  const lengths = {
    'small talk': { user: [8, 12, 16, 19, 22, 25, 29, 34, 42, 70], assistant: [7, 11, 14, 17, 20, 23, 27, 32, 40, 66] },
    'long replies': {
      user: [12, 18, 24, 29, 34, 39, 45, 53, 68, 300],
      assistant: [350, 450, 520, 570, 610, 650, 700, 760, 850, 1_400],
    },
    'reports of an agent': {
      user: [4, 6, 8, 10, 12, 15, 19, 25, 36, 120],
      assistant: [40, 90, 160, 300, 520, 800, 1_300, 2_200, 3_500, 6_000],
    },
  } as const

  for (const [name, { user, assistant }] of Object.entries(lengths))
    verifies('K-04', `${name} › is called at most once per 1,500 tokens of new text`, async () => {
      await using upkeepModel = await startUpkeepModel()
      await using memory = await openRecordingMemory({ store: 'ram:', model: upkeepModel.model })
      // Small talk is short: fewer turns are not summarised.
      const turns = isCampaign || name === 'small talk' ? 60 : 25
      let tokens = 0
      for (let turn = 0; turn < turns; turn++) {
        const quantile = (turn * 7 + 3) % 10
        await runTurn(memory, key, turnOf(turn, user[quantile] ?? 0, assistant[(turn * 3 + 1) % 10] ?? 0))
        await memory.upkeep.whenIdle()
      }
      for (const message of await memory.transcript(key)) tokens += message.tokens
      const cycles = memory.committed.length
      expect(cycles).toBeGreaterThan(0)
      expect(cycles).toBeLessThanOrEqual(tokens / 1_500)
      // A refused summary is requested once more.
      expect(upkeepModel.requests.length).toBeLessThanOrEqual(2 * cycles)
    })
})

/** A turn with a question and a reply of these lengths in words. */
function turnOf(turn: number, questionWords: number, replyWords: number): ReturnType<typeof sampleTurn> {
  const contents = sampleTurn(turn).map(({ role }, side) => {
    const words: string[] = []
    const wanted = side === 0 ? questionWords : replyWords
    for (let part = 0; words.length < wanted; part++)
      words.push(...String(sampleTurn(1_000 * turn + part)[side]?.content).split(' '))
    return { role, content: `${words.slice(0, wanted).join(' ')}.` }
  })
  return contents as unknown as ReturnType<typeof sampleTurn>
}
