import { mapConcurrently } from '../../fault/mapConcurrently.ts'
import type { StoredMessage } from '../load/serverProcess.ts'
import { type PromptRecorder, replyTo } from './promptRecorder.ts'
import type { RoundRobinClient, Turn } from './roundRobin.ts'

/** Sends turns one after the other in each session, many sessions at once; returns the acknowledged ones. */
export async function runSessions(
  client: RoundRobinClient,
  {
    sessions,
    turns,
    concurrency,
    name,
    scope = 'tenant',
    waitForStart,
  }: {
    readonly sessions: number
    readonly turns: number
    readonly concurrency: number
    readonly name: string
    readonly scope?: string
    /** Waits until the next turn may start; turns start at once without it. */
    readonly waitForStart?: () => Promise<void>
  },
): Promise<readonly Turn[]> {
  const acknowledged: Turn[] = []
  const numbers = Array.from({ length: sessions }, (_, index) => index)
  const runSession = async (session: number): Promise<void> => {
    const key = `${scope}-${session % 100}:${name}${session}`
    for (let turn = 1; turn <= turns; turn++) {
      const question = `Turn ${turn} of ${name}${session}: where is parcel ${turn * 7} of mine?`
      await waitForStart?.()
      const reply = await client.ask({ key, question })
      if (reply !== replyTo(question)) throw new Error(`${key} got ${JSON.stringify(reply)} for ${question}`)
      acknowledged.push({ key, question })
    }
  }
  await mapConcurrently(numbers, runSession, concurrency)
  return acknowledged
}

/** Deviations of the stored sessions from the acknowledged turns: lost, repeated or displaced messages. */
export async function findDeviations(
  client: RoundRobinClient,
  acknowledged: readonly Turn[],
  { isOrdered }: { readonly isOrdered: boolean },
): Promise<readonly string[]> {
  const deviations: string[] = []
  for (const [key, turns] of Map.groupBy(acknowledged, (turn) => turn.key)) {
    const stored = await readTranscript(client, key)
    const expected = turns.flatMap(({ question }) => [`user: ${question}`, `assistant: ${replyTo(question)}`])
    const lines = stored.map(({ role, content }) => `${role}: ${content}`)
    const pairsOf = (all: readonly string[]) =>
      all.flatMap((line, index) => (index % 2 === 0 ? [`${line}\n${all[index + 1]}`] : [])).toSorted()
    const isEqual = isOrdered
      ? JSON.stringify(lines) === JSON.stringify(expected)
      : JSON.stringify(pairsOf(lines)) === JSON.stringify(pairsOf(expected))
    if (!isEqual) deviations.push(`${key}: ${describeDifference(lines, expected)}`)
  }
  return deviations
}

function describeDifference(lines: readonly string[], expected: readonly string[]): string {
  const lost = expected.filter((line) => !lines.includes(line))
  const repeated = lines.filter((line, index) => lines.indexOf(line) !== index)
  const foreign = lines.filter((line) => !expected.includes(line))
  return JSON.stringify({ lost, repeated, foreign, stored: lines.length, expected: expected.length })
}

async function readTranscript(client: RoundRobinClient, key: string): Promise<readonly StoredMessage[]> {
  const all: StoredMessage[] = []
  for (let after: string | number | null = ''; after !== null; ) {
    const query: string = after === '' ? '' : `&after=${encodeURIComponent(after)}`
    const page = (await client.get(`/api/sessions/${key}/messages?limit=500${query}`)) as {
      readonly items: readonly StoredMessage[]
      readonly next: string | number | null
    }
    all.push(...page.items)
    after = page.next
  }
  return all
}

/** Questions whose prompts differ between two runs of the same turns. */
export const findOtherPrompts = (
  acknowledged: readonly Turn[],
  { prompts }: Pick<PromptRecorder, 'prompts'>,
  other: Pick<PromptRecorder, 'prompts'>,
): readonly string[] =>
  acknowledged.flatMap(({ question }) => (prompts.get(question) === other.prompts.get(question) ? [] : [question]))
