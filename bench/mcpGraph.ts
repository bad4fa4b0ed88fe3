import type { GraphNode, NodeGraph } from '../src/graph/types.ts'
import { createRandom, createSentences, vocabulary } from './corpus.ts'

const types = ['person', 'project', 'decision', 'place', 'tool']

/**
 * Creates a graph of a size that daily use may reach: entities with `observations` sentences each, and one relation per
 * entity.
 */
export function createLargeGraph(entities: number, observations: number): NodeGraph {
  const random = createRandom(7)
  const texts = createSentences(entities * observations)
  const randomWord = (): string => vocabulary[Math.floor(random() * vocabulary.length)] as string
  const nodes = Array.from({ length: entities }, (_, index): GraphNode => {
    const name = `${randomWord()} ${randomWord()} ${index}`
    return {
      name,
      entityType: types[index % types.length] as string,
      observations: texts.slice(index * observations, (index + 1) * observations),
    }
  })
  const randomName = (): string => (nodes[Math.floor(random() * entities)] as GraphNode).name
  return {
    entities: nodes,
    relations: nodes.map(({ name }) => ({ from: name, to: randomName(), relationType: randomWord() })),
  }
}

/** Words that few entities contain, in upper case. */
export const rareWords: readonly string[] = vocabulary
  .slice(10_000)
  .flatMap((word) => (word.length >= 7 ? [word.toUpperCase()] : []))
