import { type DerivedEntry, type Message, type Millis, parseMessageId } from '../domain/entry.ts'
import type { Key } from '../domain/key.ts'
import type { Store } from '../domain/ports.ts'
import type { SessionHead } from '../domain/session.ts'
import { type Pause, runInSlices } from '../domain/work.ts'
import { extractRemindersInSteps } from './extract/extract.ts'
import { mayRemind } from './extract/reminders.ts'
import { createOutcomeApplier, type StepOutcome } from './outcome.ts'
import { type RevisionResult, revise } from './revise.ts'

/** Messages before a reminder among which the statement that it refers to is searched. */
const maxEarlierMessages = 8
/** Content beyond this many characters of one message is most likely pasted. */
const maxMessageChars = 65_536

/** True if a message asks to remember something, judged by its words alone. */
export const asksToRemember = ({ role, content }: Message): boolean => role === 'user' && mayRemind(content)

/**
 * Stores what the user asks to remember in new messages, without waiting for the next compaction. Resolves to undefined
 * if there is nothing to store. A lease of the session stays as it is: work in progress continues.
 */
export async function storeReminders(
  store: Store,
  key: Key,
  epoch: number,
  messages: readonly Message[],
  { now, pause }: { readonly now: Millis; readonly pause: Pause },
): Promise<RevisionResult | undefined> {
  const earlier = await store.readMessages(key, {
    before: messages[0]?.sequence ?? 0,
    limit: maxEarlierMessages,
    newest: true,
  })
  const read = [...earlier, ...messages].map((message) => ({
    ...message,
    content: message.content.slice(0, maxMessageChars),
  }))
  const facts = await runInSlices(extractRemindersInSteps(read), pause)
  if (facts.length === 0) return undefined
  const sequences = [...new Set(facts.map(({ source }) => parseMessageId(source.message) ?? 0))]
  const outcome: StepOutcome = {
    basis: { epoch, messages: sequences, summaries: [] },
    put: [],
    drop: [],
    facts,
    notes: {},
  }
  const applyInSteps = createOutcomeApplier(outcome)
  return revise(store, key, async (head) => {
    const change = await runInSlices(applyInSteps(head, now), pause)
    return change && { ...change, put: change.put.map((entry) => withLease(entry, head)) }
  })
}

/** Keeps the lease of the session in its notes. */
function withLease(entry: DerivedEntry, { derived }: SessionHead): DerivedEntry {
  const lease = derived.find((known) => known.kind === 'notes')?.lease
  return entry.kind === 'notes' && lease !== undefined ? { ...entry, lease } : entry
}
