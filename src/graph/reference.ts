import { readFile } from 'node:fs/promises'
import { isBlank } from '../domain/entry.ts'
import { isObject, MemoryError } from '../domain/error.ts'
import type { GraphLink, GraphNode, NodeGraph, NodeStore } from './types.ts'

/** Number of imported entities and relations. */
export type ImportCounts = { readonly entities: number; readonly relations: number }

/**
 * Imports the JSON Lines file of the reference memory server into a workspace without nodes. Returns undefined if the
 * file does not exist or the workspace has nodes already.
 *
 * @throws MemoryError `bad-option` if the file cannot be read, `bad-bundle` if a line is invalid; then nothing is
 * imported.
 * @example
 * await importReferenceFile(graph.nodes, 'default', 'memory.jsonl') // { entities: 12, relations: 7 }
 */
export async function importReferenceFile(
  nodes: NodeStore,
  workspace: string,
  file: string,
): Promise<ImportCounts | undefined> {
  const text = await readIfExists(file)
  if (text === undefined) return undefined
  const { entities, relations } = parseFile(text, file)
  const existing = await nodes.readGraph(workspace)
  if (existing.entities.length + existing.relations.length > 0) return undefined
  // `create…` skips existing rows: another process may import the same file at the same time.
  const createdEntities = await nodes.createEntities(workspace, entities)
  const createdRelations = await nodes.createRelations(workspace, relations)
  return { entities: createdEntities.length, relations: createdRelations.length }
}

/**
 * Serializes nodes to the file format of the reference memory server, byte for byte, so that users can switch back to
 * it.
 *
 * @example
 * await writeFile('memory.jsonl', serializeReferenceFile(await graph.nodes.readGraph('my-project')))
 */
export const serializeReferenceFile = ({ entities, relations }: NodeGraph): string =>
  [
    ...entities.map(({ name, entityType, observations }) => ({ type: 'entity', name, entityType, observations })),
    ...relations.map(({ from, to, relationType }) => ({ type: 'relation', from, to, relationType })),
  ]
    .map((line) => JSON.stringify(line))
    .join('\n')

async function readIfExists(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8')
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw new MemoryError('bad-option', `Cannot read ${file}. Give the path of the reference memory server's file.`, {
      param: 'import',
      cause,
    })
  }
}

function parseFile(text: string, file: string): NodeGraph {
  const [entities, relations]: [GraphNode[], GraphLink[]] = [[], []]
  for (const [index, line] of text.split('\n').entries()) {
    if (isBlank(line)) continue
    const record = parseLine(line)
    if (record === undefined)
      throw new MemoryError(
        'bad-bundle',
        `${file}, line ${index + 1} is neither an entity nor a relation of the reference memory server. Nothing was imported.`,
      )
    if ('name' in record) entities.push(record)
    else relations.push(record)
  }
  return { entities, relations }
}

function parseLine(line: string): GraphNode | GraphLink | undefined {
  const value = parseJson(line)
  if (!isObject(value)) return undefined
  const { type, name, entityType, observations, from, to, relationType } = value
  if (
    type === 'entity' &&
    isString(name) &&
    isString(entityType) &&
    Array.isArray(observations) &&
    observations.every(isString)
  )
    return { name, entityType, observations }
  return type === 'relation' && isString(from) && isString(to) && isString(relationType)
    ? { from, to, relationType }
    : undefined
}

function parseJson(line: string): unknown {
  try {
    return JSON.parse(line.replace(/^\ufeff/, ''))
  } catch {
    return undefined
  }
}

const isString = (value: unknown): value is string => typeof value === 'string'
