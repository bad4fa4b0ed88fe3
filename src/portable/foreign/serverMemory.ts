import {
  asString,
  ConversationCollector,
  type ForeignData,
  type ForeignKnowledge,
  parseJsonLines,
} from './conversations.ts'

type Entity = {
  entityType: string | undefined
  readonly observations: Set<string>
  readonly relations: Map<string, { relationType: string; to: string }>
}

/**
 * Parses the JSON Lines file of the MCP reference server `server-memory`. Each entity becomes one piece of knowledge
 * with its type, its observations and the relations that start from it. Relations from an unknown entity become a piece
 * of their own.
 */
export function parseServerMemory(text: string): ForeignData {
  const collector = new ConversationCollector()
  const entities = new Map<string, Entity>()
  const getEntity = (name: string): Entity => {
    const entity = entities.get(name) ?? { entityType: undefined, observations: new Set(), relations: new Map() }
    entities.set(name, entity)
    return entity
  }
  for (const { line, value } of parseJsonLines(text, collector)) {
    const [name, entityType, observations] = [asString(value.name), asString(value.entityType), value.observations]
    const [from, to, relationType] = [asString(value.from), asString(value.to), asString(value.relationType)]
    if (value.type === 'entity' && name !== undefined && entityType !== undefined && Array.isArray(observations)) {
      const entity = getEntity(name)
      entity.entityType ??= entityType
      for (const observation of observations) if (typeof observation === 'string') entity.observations.add(observation)
    } else if (value.type === 'relation' && from !== undefined && to !== undefined && relationType !== undefined) {
      getEntity(from).relations.set(JSON.stringify([relationType, to]), { relationType, to })
    } else collector.skip(`line ${line}`, 'is neither an entity nor a relation')
  }
  return collector.result([...entities].map(toKnowledge))
}

function toKnowledge([key, { entityType, observations, relations }]: [string, Entity]): ForeignKnowledge {
  return {
    key,
    value: {
      ...(entityType === undefined ? {} : { entityType, observations: [...observations] }),
      ...(relations.size === 0 ? {} : { relations: [...relations.values()] }),
    },
  }
}
