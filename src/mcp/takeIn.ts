import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import { MemoryError } from '../domain/error.ts'
import type { Link, Node, Nodes } from '../graph/graph.ts'

const entity = z.object({
  type: z.literal('entity'),
  name: z.string(),
  entityType: z.string(),
  observations: z.array(z.string()),
})
const relation = z.object({ type: z.literal('relation'), from: z.string(), to: z.string(), relationType: z.string() })
const record = z.discriminatedUnion('type', [entity, relation])

/** How much was taken in. */
export type Taken = { readonly entities: number; readonly relations: number }

/**
 * Takes the JSON Lines file of the reference memory server into a workspace whose graph is still empty: what was changed
 * since then counts more. Nothing happens if there is no such file, as with the reference.
 *
 * @example
 * await takeIn(nodes, 'default', 'memory.jsonl') // { entities: 12, relations: 7 }
 */
export async function takeIn(nodes: Nodes, workspace: string, file: string): Promise<Taken | undefined> {
  const text = await textOf(file)
  if (text === undefined) return undefined
  const { entities, relations } = recordsIn(text, file)
  const present = await nodes.readGraph(workspace)
  if (present.entities.length + present.relations.length > 0) return undefined
  // Created and not appended: another process may be taking in the same file.
  const created = await nodes.createEntities(workspace, entities)
  const linked = await nodes.createRelations(workspace, relations)
  return { entities: created.length, relations: linked.length }
}

async function textOf(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8')
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw new MemoryError('bad-option', `${file} cannot be read. Name the file of the reference memory server.`, {
      param: 'import',
      cause,
    })
  }
}

function recordsIn(
  text: string,
  file: string,
): { readonly entities: readonly Node[]; readonly relations: readonly Link[] } {
  const records = text
    .split('\n')
    .flatMap((line, at) => (line.trim() === '' ? [] : [recordIn(line, `${file}, line ${at + 1}`)]))
  const entities = records.flatMap((one) =>
    one.type === 'entity' ? [{ name: one.name, entityType: one.entityType, observations: one.observations }] : [],
  )
  const relations = records.flatMap((one) =>
    one.type === 'relation' ? [{ from: one.from, to: one.to, relationType: one.relationType }] : [],
  )
  return { entities, relations }
}

function recordIn(line: string, where: string): z.output<typeof record> {
  try {
    return record.parse(JSON.parse(line))
  } catch (cause) {
    throw new MemoryError(
      'bad-bundle',
      `${where} is neither an entity nor a relation of the reference memory server. Nothing was taken in.`,
      { cause },
    )
  }
}
