import { readFile } from 'node:fs/promises'
import { isObject } from '../domain/checks.ts'
import { isBlank } from '../domain/entry.ts'
import { MemoryError } from '../domain/error.ts'
import type { Link, Node, NodeGraph, Nodes } from './graph.ts'

/** What came of a file: how much of it there is now, and what of it could not be read. */
export type TakenIn = { readonly entities: number; readonly relations: number; readonly warnings: readonly string[] }

/**
 * Adds what the reference memory server has written, JSON Lines, to the nodes of a workspace: unchanged and in order, with
 * everything the reference would read twice. Lines it could not read are left out with a warning each.
 *
 * @example
 * const { entities, warnings } = await importNodes(graph.nodes, 'my-project', await readFile('memory.jsonl', 'utf8'))
 */
export async function importNodes(nodes: Nodes, workspace: string, text: string): Promise<TakenIn> {
  const { graph, warnings } = parseReference(text)
  await nodes.take(workspace, graph)
  return countsOf(graph, warnings)
}

/**
 * The nodes of a workspace as the reference memory server writes its file, to the byte: a user can go back to it.
 *
 * @example
 * await writeFile('memory.jsonl', exportNodes(await graph.nodes.readGraph('my-project')))
 */
export const exportNodes = ({ entities, relations }: NodeGraph): string =>
  [
    ...entities.map(({ name, entityType, observations }) => ({ type: 'entity', name, entityType, observations })),
    ...relations.map(({ from, to, relationType }) => ({ type: 'relation', from, to, relationType })),
  ]
    .map((line) => JSON.stringify(line))
    .join('\n')

/**
 * Begins a workspace that has no nodes with the file of the reference memory server: once, so that what is deleted later
 * does not come back at the next start. Undefined if there is no such file, or if it is not wanted any more.
 */
export async function takeInReference(nodes: Nodes, workspace: string, path: string): Promise<TakenIn | undefined> {
  const text = await textOf(path)
  if (text === undefined) return undefined
  const { graph, warnings } = parseReference(text)
  return (await nodes.adopt(workspace, graph)) ? countsOf(graph, warnings) : undefined
}

/** Reads the file of the reference memory server. */
function parseReference(text: string): { readonly graph: NodeGraph; readonly warnings: readonly string[] } {
  const [entities, relations, warnings]: [Node[], Link[], string[]] = [[], [], []]
  for (const [place, line] of text.split('\n').entries()) {
    if (isBlank(line)) continue
    const item = itemOf(line)
    if (item === undefined) warnings.push(`Line ${place + 1} is neither an entity nor a relation and was left out.`)
    else if ('name' in item) entities.push(item)
    else relations.push(item)
  }
  return { graph: { entities, relations }, warnings }
}

function itemOf(line: string): Node | Link | undefined {
  const value = jsonOf(line)
  if (!isObject(value)) return undefined
  const { type, name, entityType, observations, from, to, relationType } = value
  if (
    type === 'entity' &&
    isText(name) &&
    isText(entityType) &&
    Array.isArray(observations) &&
    observations.every(isText)
  )
    return { name, entityType, observations }
  return type === 'relation' && isText(from) && isText(to) && isText(relationType)
    ? { from, to, relationType }
    : undefined
}

function jsonOf(line: string): unknown {
  try {
    return JSON.parse(line.replace(/^\ufeff/, ''))
  } catch {
    return undefined
  }
}

async function textOf(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw new MemoryError(
      'bad-option',
      `${path} cannot be read (${(error as NodeJS.ErrnoException).code}). Look at MEMORY_FILE_PATH, or leave it out.`,
      {
        param: 'MEMORY_FILE_PATH',
        cause: error,
      },
    )
  }
}

const isText = (value: unknown): value is string => typeof value === 'string'
const countsOf = ({ entities, relations }: NodeGraph, warnings: readonly string[]): TakenIn => ({
  entities: entities.length,
  relations: relations.length,
  warnings,
})
