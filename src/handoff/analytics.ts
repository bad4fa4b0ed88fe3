import { allRows } from '../graph/query.ts'
import { findAnchors, isCompoundWord } from '../text/anchors.ts'
import { readChainRows } from './chain.ts'
import type { Category, ContextItem } from './item.ts'
import { indexOfWholeWord } from './mark.ts'
import { itemFromRow, type PreservationReport, type Restoration, restorationFromRow } from './rows.ts'
import { sessionKey } from './sessions.ts'
import type { HandoffDeps } from './settings.ts'

/** Item that a session mentions; `identifiers` are the names of it that occur. */
export type ItemMention = {
  readonly id: string
  readonly category: Category
  readonly importance: number
  readonly identifiers: readonly string[]
}

/** Use that one session of a chain made of the items restored from its predecessor. */
export type ChainStep = {
  readonly sessionId: string
  readonly continues: string
  readonly budget: number
  readonly tokens: number
  /** Number of items shown by the restore. */
  readonly kept: number
  /** Number of items omitted by the restore. */
  readonly left: number
  /** Shown items that the session mentions. */
  readonly used: readonly ItemMention[]
  /** Omitted items that the user asked for. */
  readonly missed: readonly ItemMention[]
  readonly preservation: PreservationReport
}

export type Analytics = {
  readonly sessions: readonly string[]
  readonly steps: readonly ChainStep[]
  readonly kept: number
  readonly used: number
  readonly missed: number
}

const maxIdentifiersPerItem = 50

/** Measures over the chain of a session which items were kept, used and missed. */
export async function analyseChain(deps: HandoffDeps, workspace: string, session: string): Promise<Analytics> {
  const rows = await readChainRows(deps, workspace, session)
  const steps: ChainStep[] = []
  for (const row of rows) {
    const restoration = restorationFromRow(row)
    if (restoration !== undefined) steps.push(await analyseStep(deps, workspace, row.id, restoration))
  }
  const sum = (count: (step: ChainStep) => number): number => steps.reduce((total, step) => total + count(step), 0)
  return {
    sessions: rows.map(({ id }) => id),
    steps,
    kept: sum((step) => step.kept),
    used: sum((step) => step.used.length),
    missed: sum((step) => step.missed.length),
  }
}

async function analyseStep(
  deps: HandoffDeps,
  workspace: string,
  session: string,
  { from, budget, tokens, items, left, preservation }: Restoration,
): Promise<ChainStep> {
  const messages = await deps.memory.transcript(sessionKey(workspace, session))
  const text = messages
    .map(({ content, toolCalls = [] }) => [content, ...toolCalls.map((call) => call.arguments)].join('\n'))
    .join('\n')
  const userText = messages.flatMap(({ role, content }) => (role === 'user' ? [content] : [])).join('\n')
  const [shown, omitted] = await Promise.all([
    readItems(deps, workspace, from, items),
    readItems(deps, workspace, from, left),
  ])
  const shownIdentifiers = new Set(shown.flatMap(identifiersIn))
  return {
    sessionId: session,
    continues: from,
    budget,
    tokens,
    kept: items.length,
    left: left.length,
    used: findMentions(shown, identifiersIn, text),
    // An identifier of a shown item does not prove that an omitted one was missed.
    missed: findMentions(
      omitted,
      (item) => identifiersIn(item).filter((name) => !shownIdentifiers.has(name)),
      userText,
    ),
    preservation,
  }
}

async function readItems(
  { graph }: HandoffDeps,
  workspace: string,
  session: string,
  ids: readonly string[],
): Promise<readonly ContextItem[]> {
  const query = { types: ['context_item'], session, sort: [{ by: 'id' }], limit: allRows }
  const { entities } = await graph.queryEntities(workspace, query)
  const wantedIds = new Set(ids)
  return entities.filter(({ id }) => wantedIds.has(id)).flatMap((row) => itemFromRow(row) ?? [])
}

/** Returns the items of which at least one identifier occurs in the text. */
const findMentions = (
  items: readonly ContextItem[],
  identifiersOf: (item: ContextItem) => readonly string[],
  text: string,
): readonly ItemMention[] =>
  items
    .map((item) => ({
      id: item.id,
      category: item.category,
      importance: item.importance,
      identifiers: identifiersOf(item).filter((name) => isMentioned(name, text)),
    }))
    .filter(({ identifiers }) => identifiers.length > 0)

/**
 * Returns names in an item's content and numbered terms such as "decision 97". Constraints and ordinary compounds are
 * excluded.
 */
function identifiersIn({ content }: ContextItem): readonly string[] {
  const names = findAnchors(content).filter((anchor) => anchor.kind !== 'constraint' && !isCompoundWord(anchor))
  const numberedTerms = [...content.matchAll(/(?<![\p{L}\p{N}_])\p{L}{3,}[ \t]+#?\d+(?![\p{L}\p{N}_])/gu)].map(
    ([text]) => text,
  )
  return [...new Set([...names.map(({ text }) => text), ...numberedTerms])]
    .filter((text) => text.length >= 3)
    .slice(0, maxIdentifiersPerItem)
}

/** Names match exactly; numbered terms match case-insensitively. */
const isMentioned = (name: string, text: string): boolean =>
  indexOfWholeWord(name, text) >= 0 ||
  (/^\p{L}+[ \t]+#?\d+$/u.test(name) && indexOfWholeWord(name.toLowerCase(), text.toLowerCase()) >= 0)
