import type { Message } from '../../domain/entry.ts'
import { stopIf } from '../../portable/stop.ts'
import { summarising } from '../../upkeep/summarise/summarise.ts'
import { paced } from '../../upkeep/work.ts'

/** How many words a level of detail has, the shortest first. */
const levels: readonly (readonly [least: number, most: number])[] = [
  [8, 40],
  [40, 160],
  [160, 600],
]

/** A summary, and the messages it quotes. */
export type Level = { readonly text: string; readonly sources: readonly string[] }

/** Summaries of a conversation at several levels of detail, the shortest first; levels that would say the same are one. */
export async function levelsOf(
  messages: readonly Message[],
  signal: AbortSignal | undefined,
): Promise<readonly Level[]> {
  const found: Level[] = []
  for (const words of levels) {
    const { text, sources } = await paced(summarising(messages, undefined, { words }), () => pause(signal))
    if (text !== '' && text !== found.at(-1)?.text)
      found.push({ text, sources: [...new Set(sources.map(({ message }) => message))] })
  }
  return found
}

async function pause(signal: AbortSignal | undefined): Promise<void> {
  await new Promise((resume) => setImmediate(resume))
  stopIf(signal, stopped)
}

const stopped = 'Saving was stopped by the caller. What was said is stored; save the session again to finish.'
