import type { Millis } from '../domain/entry.ts'
import type { Clock } from '../domain/ports.ts'
import { deleteIndexed, deleteNodes } from '../stores/sqlite/graph.ts'
import type { GraphFile } from './file.ts'
import type { Link, Node } from './graph.ts'
import type { Home, Homes } from './home.ts'
import { addLink, addNode, type Held, heldLinks, heldNodes, heldObservations, observe, retype } from './nodeRows.ts'
import {
  columns,
  type EntityRow,
  entityOf,
  type Origin,
  type RelationshipRow,
  type Row,
  relationshipOf,
} from './rows.ts'
import { isSaid, saying } from './saying.ts'
import { putEntity, putRelationship } from './write.ts'

/** One piece of a graph as it is carried elsewhere; `adopted` is when the file of the reference memory server was taken in. */
export type GraphRow =
  | { readonly entity: EntityRow }
  | { readonly relationship: RelationshipRow }
  | { readonly node: Node }
  | { readonly link: Link }
  | { readonly adopted: Millis }

export type HeldRow = Held<GraphRow>

/** A row that is added, or that takes the place of another: of a node then the type, and its observations are added to those it has. */
export type GraphWrite = { readonly row: GraphRow; readonly place?: number }

/** The whole graph of a workspace, entities and nodes, for whoever carries it elsewhere. */
export class Archive {
  private readonly file: GraphFile
  private readonly homes: Homes
  private readonly clock: Clock

  constructor(file: GraphFile, homes: Homes, clock: Clock) {
    this.file = file
    this.homes = homes
    this.clock = clock
  }

  /** Everything there is at one moment, each kind in the order in which it was first written. */
  rows(workspace: string): Promise<readonly HeldRow[]> {
    return this.file.read(() => {
      const home = this.homes.find(workspace)
      return home === undefined ? [] : this.held(home)
    })
  }

  /** Shows everything there is to whoever decides what is written, which happens at once, all or nothing; how many rows. */
  change(workspace: string, decide: (held: readonly HeldRow[]) => readonly GraphWrite[]): Promise<number> {
    return this.file.write(() => {
      const home = this.homes.make(workspace, this.clock())
      const writes = decide(this.held(home))
      for (const write of writes) this.put(home, write)
      return writes.length
    })
  }

  /** Forgets the rows in which one of these texts stands, in whichever case, inside a transaction; which ones, by their numbers. */
  forget(home: Home, texts: readonly string[]): readonly string[] {
    const { entity, relationship, node, link, observed } = saying(this.held(home), texts)
    const observation = observed.flatMap((place) =>
      heldObservations(this.file, home, place).filter(({ row }) => isSaid(row, texts)),
    )
    const { database } = this.file
    for (const place of node) this.file.run(`DELETE FROM graph_link WHERE ${ofNode}`, place)
    deleteIndexed(database, 'graph_observation', among, JSON.stringify(observation.map(({ place }) => place)))
    deleteNodes(database, among, JSON.stringify(node))
    for (const [table, places] of Object.entries({ entity, relationship, link }))
      this.file.run(`DELETE FROM graph_${table} WHERE ${among}`, JSON.stringify(places))
    const gone = { entity, relationship, node, link, observation: observation.map(({ place }) => place) }
    return Object.entries(gone).flatMap(([kind, places]) => places.map((place) => `${kind} ${place}`))
  }

  private held(home: Home): readonly HeldRow[] {
    const { file } = this
    const origins = this.originsOf(home)
    const entities = file.all<Row>(`SELECT ${columns} FROM graph_entity WHERE home = ? ORDER BY place`, home.id)
    const relationships = file.all<Drawn>(
      `SELECT ${columns}, session FROM graph_relationship WHERE home = ? ORDER BY place`,
      home.id,
    )
    const adopted = file.all<[number, Millis]>('SELECT home, at FROM graph_adopted WHERE home = ?', home.id)
    return [
      ...entities.map((row) => ({
        place: row[0],
        row: { entity: { ...entityOf(row, home.seal), origins: origins.get(row[0]) ?? [] } },
      })),
      ...relationships.map((row) => ({ place: row[0], row: { relationship: relationshipIn(row, home) } })),
      ...heldNodes(file, home, 'home = ?', home.id).map(({ place, row }) => ({ place, row: { node: row } })),
      ...heldLinks(file, home, 'home = ?', home.id).map(({ place, row }) => ({ place, row: { link: row } })),
      ...adopted.map(([place, at]) => ({ place, row: { adopted: at } })),
    ]
  }

  private originsOf({ id }: Home): ReadonlyMap<number, readonly Origin[]> {
    const found = this.file.all<[number, string, string]>(
      'SELECT entity, session, message FROM graph_origin WHERE entity IN (SELECT place FROM graph_entity WHERE home = ?) ORDER BY entity, session, message',
      id,
    )
    const origins = new Map<number, Origin[]>()
    for (const [entity, session, message] of found) {
      const known = origins.get(entity)
      if (known === undefined) origins.set(entity, [[session, message]])
      else known.push([session, message])
    }
    return origins
  }

  private put(home: Home, { row, place }: GraphWrite): void {
    const { file } = this
    if ('entity' in row) putEntity(file, home, row.entity, place)
    else if ('relationship' in row) putRelationship(file, home, row.relationship, place)
    else if ('link' in row) addLink(file, home, row.link)
    else if ('adopted' in row)
      file.run('INSERT OR REPLACE INTO graph_adopted (home, at) VALUES (?, ?)', home.id, row.adopted)
    else if (place === undefined) addNode(file, home, row.node)
    else {
      retype(file, home, { place, row: row.node })
      for (const text of row.node.observations) observe(file, home, { place, row: row.node }, text)
    }
  }
}

/** Rows with one of these numbers. */
const among = 'place IN (SELECT value FROM json_each(?))'
/** Links with this node at an end. */
const ofNode = `home = (SELECT home FROM graph_node WHERE place = ?1)
  AND place IN (SELECT l.place FROM graph_link l JOIN graph_node n ON n.home = l.home AND n.ref IN (l.source, l.target) WHERE n.place = ?1)`

/** A relationship, and the session it was drawn from. */
type Drawn = readonly [...Row, session: string | null]

function relationshipIn([place, ref, body, created, updated, session]: Drawn, { seal }: Home): RelationshipRow {
  const { id: _, ...relationship } = relationshipOf([place, ref, body, created, updated], seal)
  return session === null ? relationship : { ...relationship, session }
}
