import { type Foreign, type ForeignKnowledge, parseLines, Sieve, textIn } from './foreign.ts'

/**
 * Reads the JSON Lines file of the MCP reference server `server-memory`: each entity becomes one piece of knowledge
 * under its name, with its type, its observations and the relations that start from it. Relations that start from a
 * name no entity has make a piece of knowledge of their own.
 */
export function parseServerMemory(text: string): Foreign {
  const sieve = new Sieve()
  const nodes = new Map<string, Node>()
  const nodeOf = (name: string): Node => {
    const node = nodes.get(name) ?? { entityType: undefined, observations: new Set(), relations: new Map() }
    nodes.set(name, node)
    return node
  }
  for (const { line, value } of parseLines(text, sieve)) {
    const [name, entityType, observations] = [textIn(value.name), textIn(value.entityType), value.observations]
    const [from, to, relationType] = [textIn(value.from), textIn(value.to), textIn(value.relationType)]
    if (value.type === 'entity' && name !== undefined && entityType !== undefined && Array.isArray(observations)) {
      const node = nodeOf(name)
      node.entityType ??= entityType
      for (const observation of observations) if (typeof observation === 'string') node.observations.add(observation)
    } else if (value.type === 'relation' && from !== undefined && to !== undefined && relationType !== undefined) {
      nodeOf(from).relations.set(JSON.stringify([relationType, to]), { relationType, to })
    } else sieve.skip(`line ${line}`, 'is neither an entity nor a relation')
  }
  return sieve.result([...nodes].map(knowledgeOf))
}

type Node = {
  entityType: string | undefined
  readonly observations: Set<string>
  readonly relations: Map<string, { relationType: string; to: string }>
}

function knowledgeOf([key, { entityType, observations, relations }]: [string, Node]): ForeignKnowledge {
  return {
    key,
    value: {
      ...(entityType === undefined ? {} : { entityType, observations: [...observations] }),
      ...(relations.size === 0 ? {} : { relations: [...relations.values()] }),
    },
  }
}
