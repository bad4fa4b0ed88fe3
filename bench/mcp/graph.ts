import type { Node, NodeGraph } from '../../src/graph/graph.ts'
import { seeded, sentences, vocabulary } from '../corpus.ts'

const types = ['person', 'project', 'decision', 'place', 'tool']

/** A graph as a memory that is used every day may grow to: entities with so many sentences each, every one related to another. */
export function largeGraph(entities: number, observations: number): NodeGraph {
  const random = seeded(7)
  const said = sentences(entities * observations)
  const word = (): string => vocabulary[Math.floor(random() * vocabulary.length)] as string
  const nodes = Array.from({ length: entities }, (_, at): Node => {
    const name = `${word()} ${word()} ${at}`
    return {
      name,
      entityType: types[at % types.length] as string,
      observations: said.slice(at * observations, (at + 1) * observations),
    }
  })
  const nameOf = (): string => (nodes[Math.floor(random() * entities)] as Node).name
  return { entities: nodes, relations: nodes.map(({ name }) => ({ from: name, to: nameOf(), relationType: word() })) }
}

/** Words that stand in a few of the entities, in another case. */
export const rareWords: readonly string[] = vocabulary
  .slice(10_000)
  .flatMap((word) => (word.length >= 7 ? [word.toUpperCase()] : []))
