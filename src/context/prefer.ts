import type { Hit } from '../domain/ports.ts'

/** What says less on a question than this part of the best is not preferred, whenever it was said. */
const least = 0.25

/** What was found, with what was said at the time that is asked about first. The others follow: the time may be another than was meant. */
export function preferred(then: readonly Hit[], hits: readonly Hit[]): readonly Hit[] {
  const worth = least * (hits[0]?.score ?? 0)
  const first = then.filter(({ score }) => score >= worth)
  const ids = new Set(first.map(({ entry }) => entry.id))
  return [...first, ...hits.filter(({ entry }) => !ids.has(entry.id))]
}
