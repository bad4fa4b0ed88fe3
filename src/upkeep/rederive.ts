import type { Derived, Fact, Message, Summary } from '../domain/entry.ts'
import type { Tokenizer } from '../domain/ports.ts'
import type { Profile } from '../domain/profile.ts'
import { beginning, lostIn } from './draft.ts'
import { extractFacts } from './extract.ts'
import { roomOf } from './plan.ts'
import { summarise, type Target } from './summarise.ts'

/** What an entry says when it is made anew by the built-in rules from the messages that are left; undefined when nothing is left to say. */
export function rederived(
  entry: Derived,
  left: readonly Message[],
  profile: Profile,
  tokenizer: Tokenizer,
): Derived | undefined {
  if (left.length === 0) return undefined
  if (entry.kind === 'summary') return resummed(entry, left, profile, tokenizer)
  if (entry.kind === 'fact') return refound(entry, left)
  return undefined
}

function resummed(
  summary: Summary,
  left: readonly Message[],
  profile: Profile,
  tokenizer: Tokenizer,
): Summary | undefined {
  // Somebody else's words cannot be found again.
  if (summary.tier === 'batch') return undefined
  const target = targetOf(summary, left, profile, tokenizer)
  const made = summarise(left, undefined, target)
  const stretch = { messages: left, previous: undefined }
  const { text, sources } = made.text === '' ? beginning(stretch, target) : made
  return { ...summary, text, sources, by: 'builtin', lost: lostIn(text, stretch) }
}

/** As long as such a summary may be. */
function targetOf(
  { tier, version }: Summary,
  left: readonly Message[],
  profile: Profile,
  tokenizer: Tokenizer,
): Target {
  for (const { do: task } of profile.upkeep) {
    if (!('summarise' in task) || task.summarise !== tier) continue
    const room = roomOf(profile)
    if (task.summarise === 'progressive')
      return {
        words: task.words[Math.min(version, task.words.length) - 1] as readonly [number, number],
        fits: (text) => tokenizer.count(text) <= room,
      }
    // A session's summary was made of those of its hours.
    const share = task.summarise === 'session' ? task.share ** 2 : task.share
    const most = Math.max(16, Math.min(room / 3, share * left.reduce((sum, { tokens }) => sum + tokens, 0)))
    return { fits: (text) => tokenizer.count(text) <= most }
  }
  return { words: [100, 150] }
}

/** The same thing said in another message. */
function refound(fact: Fact, left: readonly Message[]): Fact | undefined {
  const same = extractFacts(left).findLast(
    ({ field, key, value }) =>
      field === fact.field && key === fact.key && JSON.stringify(value) === JSON.stringify(fact.value),
  )
  return same && { ...fact, sources: [same.source] }
}
