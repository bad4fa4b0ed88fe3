import { anchorsIn, isCompound } from '../text/anchors.ts'
import { existingChain } from './chain.ts'
import { every } from './every.ts'
import type { Category, ContextItem } from './item.ts'
import { itemOf, type Measured, type Restoration, restorationOf } from './records.ts'
import { keyOf } from './sessions.ts'
import type { HandoffParts } from './settings.ts'
import { stands } from './stands.ts'

/** An item as analytics name it. */
export type Told = {
  readonly id: string
  readonly category: Category
  readonly importance: number
  readonly identifiers: readonly string[]
}

/** How one session of a chain fared with what it was given of the one before. */
export type Step = {
  readonly sessionId: string
  readonly continues: string
  readonly budget: number
  readonly tokens: number
  /** How many items it was shown, and how many were left out. */
  readonly kept: number
  readonly left: number
  /** Of those shown, the ones whose names came back in it. */
  readonly used: readonly Told[]
  /** Of those left out, the ones its user asked for again. */
  readonly missed: readonly Told[]
  readonly preservation: Measured
}

export type Analytics = {
  readonly sessions: readonly string[]
  readonly steps: readonly Step[]
  readonly kept: number
  readonly used: number
  readonly missed: number
}

/** So many names tell an item. */
const mostNames = 50

/** What was kept, used and missed over the chain of a session. */
export async function analysed(parts: HandoffParts, workspace: string, session: string): Promise<Analytics> {
  const rows = await existingChain(parts, workspace, session)
  const steps: Step[] = []
  for (const row of rows) {
    const restored = restorationOf(row)
    if (restored !== undefined) steps.push(await stepOf(parts, workspace, row.id, restored))
  }
  const sum = (count: (step: Step) => number): number => steps.reduce((total, step) => total + count(step), 0)
  return {
    sessions: rows.map(({ id }) => id),
    steps,
    kept: sum((step) => step.kept),
    used: sum((step) => step.used.length),
    missed: sum((step) => step.missed.length),
  }
}

async function stepOf(
  parts: HandoffParts,
  workspace: string,
  session: string,
  { from, budget, tokens, items, left, preservation }: Restoration,
): Promise<Step> {
  const messages = await parts.memory.transcript(keyOf(workspace, session))
  const said = messages
    .map(({ content, calls = [] }) => [content, ...calls.map((call) => call.arguments)].join('\n'))
    .join('\n')
  const asked = messages.flatMap(({ role, content }) => (role === 'user' ? [content] : [])).join('\n')
  const [shown, hidden] = await Promise.all([
    itemsBy(parts, workspace, from, items),
    itemsBy(parts, workspace, from, left),
  ])
  const known = new Set(shown.flatMap(namesOf))
  return {
    sessionId: session,
    continues: from,
    budget,
    tokens,
    kept: items.length,
    left: left.length,
    used: comingBack(shown, namesOf, said),
    // A name that some item did show is no proof that another one was missed.
    missed: comingBack(hidden, (item) => namesOf(item).filter((name) => !known.has(name)), asked),
    preservation,
  }
}

async function itemsBy(
  { graph }: HandoffParts,
  workspace: string,
  session: string,
  ids: readonly string[],
): Promise<readonly ContextItem[]> {
  const entities = await every(
    async (page) =>
      (await graph.entities(workspace, { types: ['context_item'], session, sort: [{ by: 'id' }], ...page })).entities,
  )
  const wanted = new Set(ids)
  return entities.filter(({ id }) => wanted.has(id)).flatMap((row) => itemOf(row) ?? [])
}

/** Items of which some name stands in a text, each with those that do. */
const comingBack = (
  items: readonly ContextItem[],
  names: (item: ContextItem) => readonly string[],
  text: string,
): readonly Told[] =>
  items
    .map((item) => ({
      id: item.id,
      category: item.category,
      importance: item.importance,
      identifiers: names(item).filter((name) => isNamed(name, text)),
    }))
    .filter(({ identifiers }) => identifiers.length > 0)

/** What an item is known by: names of things, and those that are counted, such as "decision 97". A clause or an ordinary compound is none. */
function namesOf({ content }: ContextItem): readonly string[] {
  const names = anchorsIn(content).filter((anchor) => anchor.kind !== 'constraint' && !isCompound(anchor))
  const numbered = [...content.matchAll(/(?<![\p{L}\p{N}_])\p{L}{3,}[ \t]+#?\d+(?![\p{L}\p{N}_])/gu)].map(
    ([text]) => text,
  )
  return [...new Set([...names.map(({ text }) => text), ...numbered])]
    .filter((text) => text.length >= 3)
    .slice(0, mostNames)
}

/** Whether a text speaks of a name: to the letter, but for things that are counted, which people write as they like. */
const isNamed = (name: string, text: string): boolean =>
  stands(name, text) >= 0 || (/^\p{L}+[ \t]+#?\d+$/u.test(name) && stands(name.toLowerCase(), text.toLowerCase()) >= 0)
