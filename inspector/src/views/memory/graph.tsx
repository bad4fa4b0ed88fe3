import { useMemo, useState } from 'preact/hooks'
import { apiPath, request } from '../../api/client.ts'
import type { Graph, GraphLink, GraphNode } from '../../api/types.ts'
import { TextField } from '../../components/fields.tsx'
import { EmptyState, ResourceView } from '../../components/states.tsx'
import { formatCount, formatValue, seriesIndex } from '../../format.ts'
import { formatRoute, type Route, replaceSettings } from '../../router.ts'
import { useResource } from '../../useResource.ts'
import { GraphPicture } from './graphPicture.tsx'

/** Neighbours that opening a node shows; the list has all of them. */
const maxNeighbours = 24
const maxPictureNodes = 150
const maxListed = 200

/** The graph of a tenant: a picture that begins with one entity and grows with each one that is opened. */
export function GraphTab({ scope, settings }: { scope: string; settings: Route['settings'] }) {
  const graph = useResource(
    (signal) => request<Graph>(apiPath(['api', 'scopes', scope, 'graph']), { signal }),
    [scope],
    (event) => event.key === scope,
  )
  return (
    <ResourceView resource={graph}>
      {(data) =>
        data.nodes.length === 0 ? (
          <EmptyState title="The graph of this tenant is empty.">
            Clients write it with the MCP tools for entities.
          </EmptyState>
        ) : (
          <GraphExplorer scope={scope} graph={data} settings={settings} />
        )
      }
    </ResourceView>
  )
}

type ExplorerProps = { scope: string; graph: Graph; settings: Route['settings'] }

function GraphExplorer({ scope, graph, settings }: ExplorerProps) {
  const index = useMemo(() => indexGraph(graph), [graph])
  const focus = index.nodes.get(settings.node ?? '') ?? index.busiest
  const opened = readOpened(settings.open, focus.id).filter((id) => index.nodes.has(id))
  const shown = useMemo(() => collectShown(index, opened), [index, opened.join('\n')])
  const show = (id: string): void => replaceSettings({ node: id, open: writeOpened([...opened, id]) })
  const types = [...new Set(shown.nodes.map(({ type }) => type))]
  return (
    <div class="graph">
      <EntityList graph={graph} focus={focus} onShow={show} />
      <div class="stack">
        <GraphPicture
          nodes={shown.nodes}
          links={shown.links}
          focus={focus.id}
          countHidden={(id) => index.neighboursOf(id).filter(({ other }) => !shown.ids.has(other)).length}
          typeIndex={(type) => seriesIndex(index.types.indexOf(type))}
          onShow={show}
        />
        <div class="row graph-legend">
          {types.map((type) => (
            <span key={type} class="muted">
              <span class={`swatch series-${seriesIndex(index.types.indexOf(type))}`} />
              {type}
            </span>
          ))}
          <span class="muted push">
            {formatCount(shown.nodes.length, 'entity', 'entities')} of {graph.total}
          </span>
          <button
            type="button"
            class="button small"
            disabled={opened.length <= 1}
            onClick={() => replaceSettings({ node: focus.id, open: writeOpened([focus.id]) })}
          >
            Start again from {focus.id}
          </button>
        </div>
      </div>
      <NodeDetails scope={scope} node={focus} neighbours={index.neighboursOf(focus.id)} onShow={show} />
    </div>
  )
}

type Neighbour = { readonly link: GraphLink; readonly other: string }

type GraphIndex = {
  readonly nodes: ReadonlyMap<string, GraphNode>
  readonly links: readonly GraphLink[]
  readonly types: readonly string[]
  /** The node with the most links. */
  readonly busiest: GraphNode
  neighboursOf(id: string): readonly Neighbour[]
}

function indexGraph({ nodes, links }: Graph): GraphIndex {
  const neighbours = new Map<string, Neighbour[]>(nodes.map(({ id }) => [id, []]))
  for (const link of links) {
    neighbours.get(link.from)?.push({ link, other: link.to })
    if (link.to !== link.from) neighbours.get(link.to)?.push({ link, other: link.from })
  }
  const degree = ({ id }: GraphNode): number => neighbours.get(id)?.length ?? 0
  return {
    nodes: new Map(nodes.map((node) => [node.id, node])),
    links,
    types: [...new Set(nodes.map(({ type }) => type))],
    busiest: nodes.reduce((best, node) => (degree(node) > degree(best) ? node : best)),
    neighboursOf: (id) => neighbours.get(id) ?? [],
  }
}

/** The opened nodes with their neighbours, and the links between all of them. */
function collectShown({ nodes, links, neighboursOf }: GraphIndex, opened: readonly string[]) {
  const ids = new Set(opened)
  for (const id of opened)
    for (const { other } of neighboursOf(id).slice(0, maxNeighbours))
      if (ids.size < maxPictureNodes && nodes.has(other)) ids.add(other)
  return {
    ids,
    nodes: [...ids].flatMap((id) => nodes.get(id) ?? []),
    links: links.filter(({ from, to }) => ids.has(from) && ids.has(to)),
  }
}

/** Opened nodes are part of the address, so that a picture can be shared. */
const readOpened = (text: string | undefined, focus: string): readonly string[] => [
  ...new Set([...(text ?? '').split(',').filter(Boolean).map(decodeURIComponent), focus]),
]
const writeOpened = (ids: readonly string[]): string => [...new Set(ids)].map(encodeURIComponent).join(',')

type ListProps = { graph: Graph; focus: GraphNode; onShow: (id: string) => void }

/** All entities by name: the way into the graph, and its alternative for screen readers. */
function EntityList({ graph: { nodes, total }, focus, onShow }: ListProps) {
  const [text, setText] = useState('')
  const matching = nodes.filter(({ id, type }) => `${id} ${type}`.toLowerCase().includes(text.toLowerCase()))
  return (
    <div class="stack">
      <TextField
        label="Find an entity"
        type="search"
        value={text}
        placeholder={formatCount(total, 'entity', 'entities')}
        onInput={setText}
      />
      <ul class="results node-list" aria-label="Entities">
        {matching.slice(0, maxListed).map(({ id, type }) => (
          <li key={id}>
            <button type="button" class="list-button" aria-pressed={id === focus.id} onClick={() => onShow(id)}>
              <span class="clip">{id}</span> <span class="muted push">{type}</span>
            </button>
          </li>
        ))}
        {matching.length === 0 && <li class="hint list-note">No entity has this name or type.</li>}
        {matching.length > maxListed && (
          <li class="hint list-note">… and {formatCount(matching.length - maxListed, 'other')}</li>
        )}
      </ul>
    </div>
  )
}

type DetailsProps = {
  scope: string
  node: GraphNode
  neighbours: readonly Neighbour[]
  onShow: (id: string) => void
}

function NodeDetails({ scope, node, neighbours, onShow }: DetailsProps) {
  const properties = Object.entries((node.properties ?? {}) as Record<string, unknown>)
  return (
    <section class="stack graph-details" aria-label="Entity">
      <div>
        <h2>{node.id}</h2>
        <p class="muted">{node.type}</p>
      </div>
      {properties.length > 0 && (
        <dl class="properties">
          {properties.map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              {(Array.isArray(value) ? value : [value]).map((item, index) => (
                <dd key={index} class="message-text">
                  {formatValue(item)}
                </dd>
              ))}
            </div>
          ))}
        </dl>
      )}
      {node.sources.length > 0 && (
        <div>
          <h3>Sources</h3>
          {node.sources.map(({ session, message }) => (
            <a
              key={`${session} ${message}`}
              class="mono"
              href={formatRoute('conversation', `${scope}:${session}`, { message })}
            >
              {session} {message}
            </a>
          ))}
        </div>
      )}
      <div>
        <h3>{formatCount(neighbours.length, 'relationship')}</h3>
        <ul class="neighbours">
          {neighbours.map(({ link, other }, index) => (
            <li key={index}>
              <button type="button" class="list-button" onClick={() => onShow(other)}>
                <span class="muted">
                  {link.from === node.id ? '→' : '←'} {link.type.replaceAll('_', ' ')}
                </span>
                <span>{other}</span>
              </button>
            </li>
          ))}
        </ul>
      </div>
    </section>
  )
}
