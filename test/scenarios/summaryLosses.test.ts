import { describe, expect } from 'vitest'
import { isCampaign } from '../context/campaign.ts'
import { verifies } from '../requirements/verifies.ts'
import { sampleTurn } from './sampleTurns.ts'
import { modelName, openRecordingMemory, runTurn, startUpkeepModel } from './upkeepHarness.ts'

const key = 'acme:ann'
const ticket = (turn: number): string => `OPS-${4_000 + turn}`

for (const by of [modelName, 'builtin']) {
  describe(`a conversation with more identifiers than a summary can hold, summarised by ${by}`, () => {
    verifies(
      ['X-04', 'C-10'],
      'has each identifier in the summary or in the list of losses with its message',
      async () => {
        await using upkeepModel = await startUpkeepModel()
        await using memory = await openRecordingMemory({
          store: 'ram:',
          model: by === modelName ? upkeepModel.model : undefined,
        })
        const makers = new Set<string>()
        for (let turn = 0; turn < (isCampaign ? 60 : 35); turn++) {
          const [question, reply] = sampleTurn(turn)
          const named = `${question.content} The tickets are ${[0, 1, 2, 3].map((place) => ticket(4 * turn + place)).join(', ')}.`
          await runTurn(memory, key, [{ role: 'user', content: named }, reply])
          await memory.upkeep.whenIdle()
          const [summary] = await memory.upkeep.summaries(key)
          if (summary === undefined) continue
          makers.add(summary.by)
          const [lost] = await memory.upkeep.losses(key)
          const losses = new Map(lost?.losses.map(({ text, source }) => [text, source.message]))
          const covered = (await memory.transcript(key))
            .slice(0, summary.covers[1])
            .filter(({ role }) => role === 'user')
          for (const { id, content } of covered)
            for (const name of content.match(/OPS-\d+/g) ?? [])
              expect([name, losses.get(name) ?? id, summary.text.includes(name)]).toEqual([name, id, !losses.has(name)])
        }
        expect(makers).toContain(by)
      },
    )
  })
}
