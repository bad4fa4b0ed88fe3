import { describe, expect } from 'vitest'
import type { MessageInput } from '../../../src/domain/chat.ts'
import { profiles } from '../../../src/index.ts'
import { openaiModel } from '../../../src/providers/openai.ts'
import {
  type RecordedRequest,
  replyWith,
  respondWithStatus,
  type Script,
  startUpstream,
} from '../../providers/upstream.ts'
import { verifies } from '../../requirements/verifies.ts'
import { openRecordingMemory } from '../../scenarios/upkeepHarness.ts'
import { importJob, inventoryService } from './modelOutputs/coding.ts'
import { anniversaire, umzug } from './modelOutputs/european.ts'
import { bloodPressure, kitchen } from './modelOutputs/health.ts'
import { lisbonTrip, summerParty } from './modelOutputs/planning.ts'
import type { ModelOutput, RecordedDialogue } from './modelOutputs/recorded.ts'
import { brokenMachine, factura } from './modelOutputs/support.ts'
import { hiring } from './modelOutputs/work.ts'

const dialogues = [
  brokenMachine,
  factura,
  inventoryService,
  importJob,
  lisbonTrip,
  summerParty,
  bloodPressure,
  kitchen,
  umzug,
  anniversaire,
  hiring,
]
const key = 'acme:ann'
const maxWords = 120

/** Summarises a whole dialogue as soon as it is appended. */
const profile = {
  ...profiles.summary,
  upkeep: [
    {
      when: { tokens: 100 },
      do: { summarise: 'progressive', words: [[30, maxWords]], keep: { tokens: 4 }, facts: false },
    },
  ],
} as const

const toMessage = ([speaker, content]: RecordedDialogue['turns'][number]): MessageInput => {
  if (speaker === 'user' || speaker === 'assistant') return { role: speaker, content }
  return { role: 'user', name: speaker, content }
}

/** Result of upkeep with a model server that answers by a script. */
type Outcome = {
  readonly by: string
  readonly text: string
  readonly requests: readonly RecordedRequest[]
  readonly degraded: readonly string[]
}

async function summariseWith(dialogue: RecordedDialogue, script: Script): Promise<Outcome> {
  await using upstream = await startUpstream(script)
  const model = openaiModel({ baseUrl: upstream.url, model: 'm', apiKey: 'sk-upkeep', sleep: async () => undefined })
  const clock = (): number => Date.UTC(2026, 1, 20)
  await using memory = await openRecordingMemory({ profile, model, clock })
  // The last two messages are not summarised.
  await memory.append(key, [
    ...dialogue.turns.map(toMessage),
    { role: 'user', content: 'Bye.' },
    { role: 'assistant', content: 'Bye.' },
  ])
  await memory.upkeep.whenIdle()
  const [summary] = await memory.upkeep.summaries(key)
  const degraded = memory.health().degraded.map(({ why }) => why)
  return { by: summary?.by ?? '', text: summary?.text ?? '', requests: upstream.requests, degraded }
}

const replay = (dialogue: RecordedDialogue, { reply, second = reply }: ModelOutput): Promise<Outcome> =>
  summariseWith(dialogue, [replyWith(reply), replyWith(second)])

const outputs = dialogues.flatMap((dialogue) => dialogue.outputs.map((output) => ({ dialogue, output })))
const label = ({ dialogue, output }: (typeof outputs)[number]): string => `${dialogue.name}: ${output.manner}`

describe('a recorded model summary', () => {
  verifies('K-05', 'that is faithful › is accepted after at most one more request, most at once', async () => {
    const faithful = outputs.filter(({ output }) => output.unfaithful === undefined)
    const results = await Promise.all(
      faithful.map(async (recorded) => ({ recorded, ...(await replay(recorded.dialogue, recorded.output)) })),
    )
    const refused = results.filter(({ by }) => by === 'builtin').map(({ recorded }) => label(recorded))
    expect(refused.length, refused.join('\n')).toBeLessThanOrEqual(0.05 * faithful.length)
    const atOnce = results.filter(({ by, requests }) => by !== 'builtin' && requests.length === 1)
    expect(atOnce.length).toBeGreaterThanOrEqual(0.85 * faithful.length)
    for (const { text } of results) expect(text.split(/\s+/).length).toBeLessThanOrEqual(maxWords)
  })

  verifies('K-05', 'that is unfaithful or empty › is requested once more and never stored', async () => {
    const unfaithful = outputs.filter(
      ({ output }) => output.unfaithful !== undefined && output.undetected === undefined,
    )
    const results = await Promise.all(
      unfaithful.map(async (recorded) => ({ recorded, ...(await replay(recorded.dialogue, recorded.output)) })),
    )
    expect(results.filter(({ by }) => by !== 'builtin').map(({ recorded }) => label(recorded))).toEqual([])
    expect(results.filter(({ requests }) => requests.length !== 2).map(({ recorded }) => label(recorded))).toEqual([])
  })

  verifies('K-05', 'that is refused › is requested again with the same prompt, the reply and its faults', async () => {
    const [accepted, wrong] = [inventoryService.outputs[0], inventoryService.outputs[5]] as const
    const { by, text, requests, degraded } = await summariseWith(inventoryService, [
      replyWith(wrong?.reply ?? ''),
      replyWith(accepted?.reply ?? ''),
    ])
    expect([by, degraded, text.startsWith(accepted?.reply ?? '-')]).toEqual(['m', [], true])
    const [first, second] = requests.map(({ body }) => body.messages)
    expect(second.slice(0, 2)).toEqual(first)
    expect(second[2]).toEqual({ role: 'assistant', content: wrong?.reply })
    expect(second[3].content).toContain('<memory>src/db/connection.ts</memory>')
  })

  verifies('K-05', 'with instructions › is requested again without them', async () => {
    const injected = inventoryService.outputs.find(({ unfaithful }) => unfaithful === 'injected instruction')
    const { requests } = await summariseWith(inventoryService, replyWith(injected?.reply ?? ''))
    expect(requests).toHaveLength(2)
    expect(requests[1]?.body.messages.at(-1).content).toMatch(
      /^The summary was refused:\n- It repeats instructions\.\n/,
    )
  })

  for (const [fault, behaviour] of [
    ['status 500', respondWithStatus(500, { 'retry-after': '0' })],
    ['an empty reply', replyWith('')],
    ['a broken stream', { does: 'drop', pieces: ['The inventory'] }],
  ] as const)
    verifies(['K-05', 'C-11'], `that is refused, and then ${fault} › is replaced by the built-in one`, async () => {
      const wrong = inventoryService.outputs.find(({ unfaithful }) => unfaithful === 'stale value')
      const { by, degraded } = await summariseWith(inventoryService, [replyWith(wrong?.reply ?? ''), behaviour])
      expect([by, degraded]).toEqual(['builtin', ['refused, stale']])
    })

  verifies('K-05', 'in at least 60 manners for at least 8 dialogues, of every kind of fault › is recorded', () => {
    const kinds = new Set(outputs.flatMap(({ output }) => output.unfaithful ?? []))
    const undetected = outputs.filter(({ output }) => output.undetected !== undefined)
    expect([outputs.length >= 60, dialogues.length >= 8, kinds.size, undetected.length <= 3]).toEqual([
      true,
      true,
      14,
      true,
    ])
  })
})
