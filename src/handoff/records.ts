import { isObject } from '../domain/checks.ts'
import type { Json, Tokens } from '../domain/entry.ts'
import type { Entity } from '../graph/graph.ts'
import { type Category, type ContextItem, categories, type Factors } from './item.ts'
import type { Preservation } from './preserve.ts'
import type { FileReference } from './references.ts'

// Clients write to the graph too, and folders are taken in from anywhere: what a row says is believed only as far as it can be.

export type WorkspaceState = {
  readonly activeProject?: string
  readonly enabledMcps?: readonly string[]
  readonly settings?: Json
}

/** What another server said: data, whatever it says. */
export type Provided = { readonly from: string; readonly text: string }

/** How much of a session came through when it was last restored, in all and by category. */
export type Measured = Preservation & {
  readonly budget: Tokens
  readonly at: string
  readonly categories: Readonly<Partial<Record<Category, Preservation>>>
}

/** What a session was restored with: which items of the one before it were shown, and which were left out. */
export type Restoration = {
  readonly from: string
  readonly budget: Tokens
  readonly tokens: Tokens
  readonly items: readonly string[]
  readonly left: readonly string[]
  readonly preservation: Measured
  /** What its text is known by when it comes back. */
  readonly record?: string
}

/** A saved session in a list: enough to choose it by. */
export type SessionMetadata = {
  readonly sessionId: string
  readonly workspaceId: string
  readonly title: string
  readonly createdAt: string
  readonly savedAt: string
  readonly tokenCount: Tokens
  readonly messageCount: number
  readonly summary: string
  readonly continuedFrom?: string
  /** It was added to, and not summed up yet. */
  readonly unsaved?: true
  /** Kept in memory only, until the store is back. */
  readonly degraded?: 'not durable'
}

type Row = Pick<Entity, 'id' | 'properties'>

export const textIn = ({ properties }: Row, name: string): string =>
  typeof properties[name] === 'string' ? properties[name] : ''
const countIn = ({ properties }: Row, name: string): number => (isCount(properties[name]) ? properties[name] : 0)
const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0
const isShare = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value)
const textsIn = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.filter((one) => typeof one === 'string') : []

/** A session in a list, as its row tells it. */
export function metadataOf(row: Entity): SessionMetadata {
  const continuedFrom = textIn(row, 'continued_from')
  return {
    sessionId: row.id,
    workspaceId: textIn(row, 'workspace_id'),
    title: textIn(row, 'title'),
    createdAt: textIn(row, 'created_at'),
    savedAt: textIn(row, 'saved_at'),
    tokenCount: countIn(row, 'token_count'),
    messageCount: countIn(row, 'message_count'),
    summary: textIn(row, 'summary'),
    ...(continuedFrom === '' ? {} : { continuedFrom }),
  }
}

/** The summaries of a conversation, the shortest first. */
export const levelsOf = (conversation: Row | undefined): readonly string[] => textsIn(conversation?.properties.context)

/** A context item as its row tells it; undefined if it tells of none. */
export function itemOf(row: Row): ContextItem | undefined {
  const { category, importance, factors, sources, marked } = row.properties
  if (!isCategory(category) || typeof importance !== 'number' || !(importance >= 1 && importance <= 10))
    return undefined
  return {
    id: row.id,
    category,
    content: textIn(row, 'content'),
    importance,
    tokens: countIn(row, 'token_count'),
    marked: marked === true,
    factors: factorsOf(factors),
    sources: textsIn(sources),
  }
}

const isCategory = (value: unknown): value is Category => (categories as readonly unknown[]).includes(value)

function factorsOf(value: unknown): Factors {
  const of = (name: keyof Factors): number => (isObject(value) && isShare(value[name]) ? value[name] : 0)
  const known = {
    recency: of('recency'),
    frequency: of('frequency'),
    specificity: of('specificity'),
    type: of('type'),
    marking: of('marking'),
  }
  return isObject(value) && isShare(value.similarity) ? { ...known, similarity: value.similarity } : known
}

/** A file as its row tells of it; without a path there is none. */
export function fileOf(row: Row): FileReference | undefined {
  const path = textIn(row, 'path')
  if (path === '') return undefined
  return {
    path,
    hash: textIn(row, 'hash'),
    last_modified: textIn(row, 'last_modified'),
    size: countIn(row, 'size'),
    lines: textIn(row, 'lines'),
  }
}

export function stateOf(row: Row): WorkspaceState {
  const { active_project: activeProject, enabled_mcps: enabledMcps, settings } = row.properties
  return {
    ...(typeof activeProject === 'string' ? { activeProject } : {}),
    ...(Array.isArray(enabledMcps) ? { enabledMcps: textsIn(enabledMcps) } : {}),
    ...(settings === undefined ? {} : { settings }),
  }
}

/** What a session was restored with, if it began like that. */
export function restorationOf({ properties: { restored } }: Row): Restoration | undefined {
  if (!isObject(restored)) return undefined
  const { from, budget, tokens, items, left, record } = restored
  const preservation = measuredOf(restored.preservation)
  if (typeof from !== 'string' || !isCount(budget) || !isCount(tokens) || preservation === undefined) return undefined
  return {
    from,
    budget,
    tokens,
    items: textsIn(items),
    left: textsIn(left),
    preservation,
    ...(typeof record === 'string' ? { record } : {}),
  }
}

function measuredOf(value: unknown): Measured | undefined {
  const whole = preservationOf(value)
  if (whole === undefined || !isObject(value) || !isCount(value.budget) || typeof value.at !== 'string')
    return undefined
  const { budget, at, categories: by } = value
  const each = categories.flatMap((category) => {
    const found = isObject(by) ? preservationOf(by[category]) : undefined
    return found === undefined ? [] : [[category, found]]
  })
  return { ...whole, budget, at, categories: Object.fromEntries(each) }
}

const preservationOf = (value: unknown): Preservation | undefined =>
  isObject(value) && isShare(value.similarity) && isShare(value.facts)
    ? { similarity: value.similarity, facts: value.facts }
    : undefined
