import type { GraphLink } from '../../api/types.ts'

export type Point = { x: number; y: number }
/** Positions of nodes by id. */
export type Layout = ReadonlyMap<string, Point>

/** Length that links tend to, in pixels. */
const linkLength = 120
const iterations = 160
/** Nodes are wider than high, so the picture is stretched. */
const stretch = 1.4
const maxStep = 24
/** Distance that nodes keep from the links of others. */
const clearance = 42

/**
 * Places nodes so that linked ones are close and others apart, the same for the same input. Nodes that were placed
 * before begin where they were; a new one begins beside a node that it is linked with.
 */
export function layoutGraph(ids: readonly string[], links: readonly GraphLink[], before: Layout): Layout {
  const points = new Map<string, Point>()
  for (const [index, id] of ids.entries()) points.set(id, startOf(id, index, links, before, points))
  const edges = links.flatMap(({ from, to }) => {
    const [a, b] = [points.get(from), points.get(to)]
    return a === undefined || b === undefined || a === b ? [] : [[a, b] as const]
  })
  const all = [...points.values()]
  for (let step = 0; step < iterations; step++) {
    const forces = new Map(all.map((point) => [point, { x: -point.x * 0.01, y: -point.y * 0.01 }]))
    repel(all, forces)
    attract(edges, forces)
    if (step > iterations / 4) avoidLinks(all, edges, forces)
    const limit = maxStep * (1 - step / iterations)
    for (const [point, { x, y }] of forces) {
      const length = Math.hypot(x, y)
      const scale = length > limit ? limit / length : 1
      point.x += x * scale
      point.y += y * scale
    }
  }
  return new Map([...points].map(([id, { x, y }]) => [id, { x: x * stretch, y }]))
}

/** Golden angle: neighbouring indexes are far from each other on the circle. */
const goldenAngle = Math.PI * (3 - Math.sqrt(5))

function startOf(id: string, index: number, links: readonly GraphLink[], before: Layout, placed: Layout): Point {
  const old = before.get(id)
  if (old !== undefined) return { x: old.x / stretch, y: old.y }
  const neighbour = links.find(({ from, to }) => (from === id && placed.has(to)) || (to === id && placed.has(from)))
  const at = neighbour && placed.get(neighbour.from === id ? neighbour.to : neighbour.from)
  // Neighbours of a node at the edge begin outside of the others, where no link crosses them.
  const isCentral = at === undefined || Math.hypot(at.x, at.y) < linkLength / 2
  const angle = isCentral ? index * goldenAngle : Math.atan2(at.y, at.x) + ((index * goldenAngle) % 2) - 1
  return { x: (at?.x ?? 0) + 60 * Math.cos(angle), y: (at?.y ?? 0) + 60 * Math.sin(angle) }
}

type Forces = ReadonlyMap<Point, Point>

function repel(points: readonly Point[], forces: Forces): void {
  for (const [index, a] of points.entries())
    for (const b of points.slice(index + 1)) {
      const [x, y] = [a.x - b.x || 0.1, a.y - b.y || 0.1]
      const squared = Math.max(400, x * x + y * y)
      push(forces.get(a), forces.get(b), x, y, (linkLength * linkLength * 0.9) / squared / Math.sqrt(squared))
    }
}

function attract(edges: readonly (readonly [Point, Point])[], forces: Forces): void {
  for (const [a, b] of edges) {
    const [x, y] = [b.x - a.x, b.y - a.y]
    const length = Math.max(1, Math.hypot(x, y))
    push(forces.get(a), forces.get(b), x, y, (0.12 * (length - linkLength)) / length)
  }
}

/** Moves nodes away from links that would cross them. */
function avoidLinks(points: readonly Point[], edges: readonly (readonly [Point, Point])[], forces: Forces): void {
  for (const [a, b] of edges) {
    const [x, y] = [b.x - a.x, b.y - a.y]
    const squared = Math.max(1, x * x + y * y)
    for (const point of points) {
      if (point === a || point === b) continue
      const share = Math.min(1, Math.max(0, ((point.x - a.x) * x + (point.y - a.y) * y) / squared))
      const [dx, dy] = [point.x - a.x - share * x, point.y - a.y - share * y]
      const distance = Math.max(1, Math.hypot(dx, dy))
      if (distance < clearance) push(forces.get(point), undefined, dx, dy, (0.8 * (clearance - distance)) / distance)
    }
  }
}

function push(a: Point | undefined, b: Point | undefined, x: number, y: number, strength: number): void {
  if (a !== undefined) {
    a.x += x * strength
    a.y += y * strength
  }
  if (b !== undefined) {
    b.x -= x * strength
    b.y -= y * strength
  }
}

/** The nearest other node in the direction of an arrow key. */
export function nodeInDirection(layout: Layout, id: string, key: string): string | undefined {
  const from = layout.get(id)
  const direction = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[key]
  if (from === undefined || direction === undefined) return undefined
  const [dx, dy] = direction as [number, number]
  let best: string | undefined
  let bestDistance = Number.POSITIVE_INFINITY
  for (const [other, { x, y }] of layout) {
    const [along, aside] = [(x - from.x) * dx + (y - from.y) * dy, (x - from.x) * dy + (y - from.y) * dx]
    const distance = along + 2 * Math.abs(aside)
    if (other === id || along <= 0 || distance >= bestDistance) continue
    best = other
    bestDistance = distance
  }
  return best
}
