import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { ChatMessage } from '../../src/domain/ledger.ts'
import { type ProfileName, profiles } from '../../src/profiles/index.ts'
import { isCampaign } from '../context/campaign.ts'
import { startUpstream } from '../providers/upstream.ts'
import { assistant, startServer, toLines, user } from './start.ts'
import { isMemoryText } from './turn/heldModel.ts'

/** The part of the history that a client sends with its question. */
const sends = fc.constantFrom('everything', 'the last four', 'only the question')
const turns = fc.array(
  fc.record({ question: fc.string({ minLength: 1, maxLength: 400 }).filter((text) => text.trim() !== ''), sends }),
  {
    minLength: 1,
    maxLength: 6,
  },
)
const names = fc.constantFrom(...(Object.keys(profiles) as ProfileName[]))

describe('any client history', () => {
  it('is stored once and in order, and the newest turn reaches the model unchanged and within the budget', async () => {
    await using upstream = await startUpstream()
    const check = async (
      name: ProfileName,
      budget: number,
      talk: readonly { question: string; sends: string }[],
    ): Promise<void> => {
      await using server = await startServer({
        upstream: upstream.url,
        memory: { profile: { ...profiles[name], budget } },
      })
      const history: { role: 'user' | 'assistant'; content: string }[] = []
      for (const { question, sends } of talk) {
        history.push(user(question))
        const messages = sends === 'everything' ? history : history.slice(sends === 'the last four' ? -5 : -1)
        // Without it, a single question of a client that has resent its history begins a new conversation.
        const headers = sends === 'only the question' ? { 'x-threadkeep-history': 'thin' } : {}
        const response = await server.postChat('demo:me', { messages }, headers)
        const [spent, allowed] = response.headers.get('x-threadkeep-tokens')?.split('/').map(Number) ?? []
        const sent: readonly ChatMessage[] = upstream.requests.at(-1)?.body.messages
        expect(sent.findLast(({ content }) => !isMemoryText(String(content)))).toEqual(user(question))
        const passedThrough = /^(budget|messages)/.test(response.headers.get('x-threadkeep-degraded') ?? '')
        // Only a newest turn that exceeds the budget by itself passes through with all that precedes it.
        if (!passedThrough) expect(spent).toBeLessThanOrEqual(allowed ?? 0)
        else if ((spent ?? 0) > (allowed ?? 0)) expect(sent).toEqual(messages)
        history.push(assistant('Hello from upstream.'))
      }
      expect(await server.transcriptLines('demo:me')).toEqual(toLines(history))
    }
    await fc.assert(fc.asyncProperty(names, fc.integer({ min: 20, max: 600 }), turns, check), {
      numRuns: isCampaign ? 40 : 15,
    })
  })
})
