import { useLayoutEffect, useRef } from 'preact/hooks'
import type { GraphLink, GraphNode } from '../../api/types.ts'
import { formatCount } from '../../format.ts'
import { type Layout, layoutGraph, nodeInDirection, type Point } from './graphLayout.ts'

const nodeHeight = 28
const padding = 28
const minWidth = 480
const minHeight = 440
/** A larger picture is made smaller until it fits, but not below this scale; then it scrolls. */
const minScale = 0.85
const maxLabel = 22
const maxLinkLabel = 20

type PictureProps = {
  nodes: readonly GraphNode[]
  links: readonly GraphLink[]
  focus: string
  /** Number of neighbours that are not in the picture. */
  countHidden: (id: string) => number
  typeIndex: (type: string) => number
  onShow: (id: string) => void
}

/** The opened part of a graph. Nodes keep their place while others are opened. */
export function GraphPicture({ nodes, links, focus, countHidden, typeIndex, onShow }: PictureProps) {
  const layout = useLayout(nodes, links)
  const frame = useRef<HTMLElement>(null)
  const { width, height, shift } = measure(layout)
  const placeOf = (id: string): Point => {
    const { x, y } = layout.get(id) ?? { x: 0, y: 0 }
    return { x: x + shift.x, y: y + shift.y }
  }
  useLayoutEffect(() => {
    const element = frame.current
    if (element === null) return
    const { x, y } = placeOf(focus)
    const scale = (element.firstElementChild?.clientWidth ?? width) / width
    element.scrollTo({ left: x * scale - element.clientWidth / 2, top: y * scale - element.clientHeight / 2 })
  }, [focus, nodes.length])
  const move = (event: KeyboardEvent, id: string): void => {
    const next = nodeInDirection(layout, id, event.key)
    if (next === undefined) return
    event.preventDefault()
    frame.current?.querySelector<SVGGElement>(`[data-node="${CSS.escape(next)}"]`)?.focus()
  }
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
    <section ref={frame} class="graph-frame" aria-label="Picture of the graph" tabIndex={0}>
      {/* biome-ignore lint/a11y/useSemanticElements: a picture with buttons in it */}
      <svg
        viewBox={`0 0 ${width} ${height}`}
        style={{ width: `clamp(${minScale * width}px, 100%, ${width}px)` }}
        role="group"
        aria-label="Entities and their relationships"
      >
        <defs>
          <marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">
            <path d="M0 0 8 4 0 8z" class="graph-arrow" />
          </marker>
        </defs>
        {links.map((link, index) => (
          <LinkLine key={index} link={link} from={placeOf(link.from)} to={placeOf(link.to)} focus={focus} />
        ))}
        {nodes.map((node) => (
          <NodeShape
            key={node.id}
            node={node}
            place={placeOf(node.id)}
            isFocus={node.id === focus}
            hidden={countHidden(node.id)}
            color={typeIndex(node.type)}
            onShow={onShow}
            onMove={move}
          />
        ))}
      </svg>
    </section>
  )
}

/** Places the nodes; those that were placed before stay near their place. */
function useLayout(nodes: readonly GraphNode[], links: readonly GraphLink[]): Layout {
  const last = useRef<{ readonly name: string; readonly layout: Layout }>({ name: '', layout: new Map() })
  const name = nodes.map(({ id }) => id).join('\n')
  if (last.current.name !== name) {
    const ids = nodes.map(({ id }) => id)
    last.current = { name, layout: layoutGraph(ids, links, last.current.layout) }
  }
  return last.current.layout
}

/** Size of the picture, and the shift that makes all positions positive and centres a small picture. */
function measure(layout: Layout) {
  const points = [...layout.values()]
  const [xs, ys] = [points.map(({ x }) => x), points.map(({ y }) => y)]
  const edge = Math.max(...[...layout.keys()].map(labelWidth)) / 2 + 8
  const span = (values: readonly number[], margin: number, least: number) => {
    const [low, high] = [Math.min(...values) - margin, Math.max(...values) + margin]
    const size = Math.max(least, high - low)
    return { size, shift: (size - (high - low)) / 2 - low }
  }
  const [horizontal, vertical] = [span(xs, edge, minWidth), span(ys, nodeHeight / 2 + padding, minHeight)]
  return { width: horizontal.size, height: vertical.size, shift: { x: horizontal.shift, y: vertical.shift } }
}

type LinkProps = { link: GraphLink; from: Point; to: Point; focus: string }

function LinkLine({ link, from, to, focus }: LinkProps) {
  const end = toBorder(from, to, labelWidth(link.to) / 2)
  const isNear = link.from === focus || link.to === focus
  return (
    <g class={isNear ? 'graph-link near' : 'graph-link'}>
      <line x1={from.x} y1={from.y} x2={end.x} y2={end.y} marker-end="url(#arrow)" />
      <text x={(from.x + to.x) / 2} y={(from.y + to.y) / 2 - 3}>
        {clip(link.type.replaceAll('_', ' '), maxLinkLabel)}
      </text>
    </g>
  )
}

/** Point where a line enters the box of a node. */
function toBorder(from: Point, to: Point, halfWidth: number): Point {
  const [dx, dy] = [to.x - from.x, to.y - from.y]
  const share = Math.min(halfWidth / Math.max(1e-6, Math.abs(dx)), nodeHeight / 2 / Math.max(1e-6, Math.abs(dy)), 1)
  return { x: to.x - dx * share, y: to.y - dy * share }
}

type NodeShapeProps = {
  node: GraphNode
  place: Point
  isFocus: boolean
  hidden: number
  color: number
  onShow: (id: string) => void
  onMove: (event: KeyboardEvent, id: string) => void
}

function NodeShape({ node: { id, type }, place, isFocus, hidden, color, onShow, onMove }: NodeShapeProps) {
  const width = labelWidth(id)
  const more = hidden === 0 ? '' : `, ${formatCount(hidden, 'more neighbour')}`
  return (
    // biome-ignore lint/a11y/useSemanticElements: SVG has no button
    <g
      class={`graph-node ${isFocus ? 'focus' : ''}`}
      role="button"
      // SVG attributes are case-sensitive.
      tabindex={0}
      data-node={id}
      aria-label={`${id}, ${type}${more}`}
      aria-pressed={isFocus}
      transform={`translate(${place.x} ${place.y})`}
      onClick={() => onShow(id)}
      onKeyDown={(event) => {
        if (event.key !== 'Enter' && event.key !== ' ') return onMove(event, id)
        event.preventDefault()
        onShow(id)
      }}
    >
      <rect x={-width / 2} y={-nodeHeight / 2} width={width} height={nodeHeight} rx={nodeHeight / 2} />
      <circle class={`series-${color}`} cx={-width / 2 + 14} r={4} />
      <text x={6} y={4}>
        {clip(id, maxLabel)}
      </text>
      {hidden > 0 && (
        <g class="graph-more" transform={`translate(${width / 2 - 4} ${-nodeHeight / 2})`}>
          <rect x={-11} y={-8} width={22} height={16} rx={8} />
          <text y={4}>+{hidden}</text>
        </g>
      )}
    </g>
  )
}

const labelWidth = (text: string): number => 44 + 7 * Math.min(text.length, maxLabel)

const clip = (text: string, length: number): string => (text.length > length ? `${text.slice(0, length - 1)}…` : text)
