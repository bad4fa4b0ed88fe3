import { runInSlices, type Work } from '../../domain/work.ts'
import { yieldToEventLoop } from '../../stores/yieldToEventLoop.ts'
import type { GraphCipher } from '../cipher.ts'
import { ResultLimit, serializeLink, serializeNode, serializeObservation } from '../nodeRows.ts'
import type { GraphLink, GraphNode, StoredRow } from '../types.ts'
import type { RowValues, StoredCells, WorkspaceRows } from './workspaceRows.ts'

/** Cost of encrypting a row, in characters. */
const rowWork = 40

/** Observations to add to the node at a place. */
export type NewObservations = { readonly place: number; readonly name: string; readonly texts: readonly string[] }

/** Inserts nodes with their observations, without a check for duplicates. */
export async function insertNodes(rows: WorkspaceRows, nodes: readonly GraphNode[]): Promise<void> {
  const places = await rows.reservePlaces(nodes.length)
  const values: RowValues[] = []
  const serializeAll = function* (): Work<void> {
    for (const [index, node] of nodes.entries()) {
      values.push({ place: places[index] as number, kind: 'node', ...serializeNode(rows.cipher, node) })
      yield rowWork + node.name.length
    }
  }
  await runInSlices(serializeAll(), yieldToEventLoop)
  await rows.insert(values)
  await insertObservations(
    rows,
    nodes.map(({ name, observations }, index) => ({ place: places[index] as number, name, texts: observations })),
  )
}

/** Inserts observations, without a check for duplicates. */
export async function insertObservations(rows: WorkspaceRows, added: readonly NewObservations[]): Promise<void> {
  const places = await rows.reservePlaces(added.reduce((sum, { texts }) => sum + texts.length, 0))
  const values: RowValues[] = []
  const serializeAll = function* (): Work<void> {
    for (const { place: node, name, texts } of added)
      for (const text of texts) {
        const place = places[values.length] as number
        values.push({ place, kind: 'observation', node, ...serializeObservation(rows.cipher, name, text) })
        yield rowWork + text.length
      }
  }
  await runInSlices(serializeAll(), yieldToEventLoop)
  await rows.insert(values)
}

/** Inserts links, without a check for duplicates. */
export async function insertLinks(rows: WorkspaceRows, links: readonly GraphLink[]): Promise<void> {
  const places = await rows.reservePlaces(links.length)
  const values: RowValues[] = []
  const serializeAll = function* (): Work<void> {
    for (const [index, link] of links.entries()) {
      values.push({ place: places[index] as number, kind: 'link', ...serializeLink(rows.cipher, link) })
      yield rowWork
    }
  }
  await runInSlices(serializeAll(), yieldToEventLoop)
  await rows.insert(values)
}

type CollectedNode = { readonly ref: string; readonly node: GraphNode; readonly observations: string[] }

/** Collects the nodes and links of rows that are read in insertion order: a node comes before its observations. */
export class NodeCollector {
  readonly links: StoredRow<GraphLink>[] = []
  private readonly cipher: GraphCipher
  private readonly limit: ResultLimit
  private readonly collected = new Map<number, CollectedNode>()

  constructor(cipher: GraphCipher, limit = new ResultLimit({})) {
    this.cipher = cipher
    this.limit = limit
  }

  /** Adds rows; those of other kinds are left out. */
  add(page: readonly StoredCells[]): void {
    for (const cells of page) this.addRow(cells)
  }

  listNodes(): readonly StoredRow<GraphNode>[] {
    return [...this.collected].map(([rowId, { node }]) => ({ rowId, row: node }))
  }

  private addRow([rowId, ref, body, , , , nodePlace, kind]: StoredCells): void {
    if (kind === 'node') {
      const { name, entityType } = this.parse(body, ref) as GraphNode
      const observations: string[] = []
      this.limit.addNode({ name, entityType })
      this.collected.set(rowId, { ref, node: { name, entityType, observations }, observations })
    } else if (kind === 'link') {
      const link = this.parse(body, ref) as GraphLink
      this.limit.addLink(link)
      this.links.push({ rowId, row: link })
    } else if (kind === 'observation') {
      const node = this.collected.get(nodePlace ?? 0)
      if (node === undefined) return
      const text = this.parse(body, node.ref) as string
      this.limit.add([text])
      node.observations.push(text)
    }
  }

  private parse(body: string, ref: string): unknown {
    return JSON.parse(this.cipher.decrypt(body, ref))
  }
}
