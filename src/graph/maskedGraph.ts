import type { Json } from '../domain/entry.ts'
import { parseKey } from '../domain/key.ts'
import { KeyedMutex } from '../domain/keyed.ts'
import type { Store } from '../domain/ports.ts'
import type { ForgetOptions } from '../memory/forget.ts'
import type { SecretMasker } from '../memory/secretMasker.ts'
import { yieldToEventLoop } from '../stores/yieldToEventLoop.ts'
import type {
  Entity,
  EntityDraft,
  EntityQuery,
  Graph,
  GraphArchive,
  GraphChange,
  GraphLink,
  GraphNode,
  NodeGraph,
  NodeReadOptions,
  NodeStore,
  RelationshipDraft,
  RelationshipQuery,
  StoreGraph,
} from './types.ts'

/** Nodes, entities or relationships masked in a row: 10 ms of short ones. */
const valuesBetweenPauses = 200

/** Masks what is written to a graph and refuses workspaces that are named after a secret. */
export type GraphMasker = Pick<SecretMasker, 'maskJson' | 'checkKey'>

/** Masks the arguments of a graph's methods under the key of the workspace: a graph has no sessions of its own. */
export class GraphMasking {
  private readonly masker: GraphMasker
  private readonly order = new KeyedMutex()
  private running = 0

  constructor(masker: GraphMasker) {
    this.masker = masker
  }

  /** Throws `bad-key` for a workspace that is named after a secret. Call it before a workspace is created. */
  checkWorkspace(workspace: string): void {
    this.masker.checkKey(parseKey(workspace))
  }

  /** Masks a change and passes it on. Throws `bad-key` as `checkWorkspace`. */
  async write<T, R>(workspace: string, mask: () => Promise<T>, write: (masked: T) => Promise<R>): Promise<R> {
    this.checkWorkspace(workspace)
    return this.passOn(workspace, mask, write)
  }

  /**
   * Passes changes and erasures of a workspace on in the order of the calls, although masking takes a different number
   * of turns: a client may call several tools without waiting for the results.
   */
  async passOn<T, R>(workspace: string, mask: () => Promise<T>, write: (masked: T) => Promise<R>): Promise<R> {
    this.running++
    const release = await this.order.acquire(workspace)
    let result: Promise<R>
    try {
      result = write(await mask())
    } finally {
      release()
      this.running--
    }
    return result
  }

  /** Masks any value; names and ids are masked the same way when they are written and when they are looked up. */
  async mask<T>(workspace: string, value: T): Promise<T> {
    this.running++
    try {
      return (await this.masker.maskJson(parseKey(workspace), value as Json)) as T
    } finally {
      this.running--
    }
  }

  /** Masks values one after another, with a pause after some of them. */
  async maskEach<T, R>(values: readonly T[], mask: (value: T) => Promise<R>): Promise<R[]> {
    this.running++
    try {
      const masked: R[] = []
      for (const [index, value] of values.entries()) {
        if (index > 0 && index % valuesBetweenPauses === 0) await yieldToEventLoop()
        masked.push(await mask(value))
      }
      return masked
    } finally {
      this.running--
    }
  }

  /** Waits until all that was called before has reached the database. */
  async settled(): Promise<void> {
    // A call continues in the same turn of the event loop in which its masking ends.
    do await new Promise((resume) => setImmediate(resume))
    while (this.running > 0)
  }

  async maskChange(workspace: string, change: GraphChange): Promise<GraphChange> {
    const { entities, relationships, ...others } = change
    return {
      ...(await this.mask(workspace, others)),
      ...(entities && { entities: await this.maskEach(entities, (draft) => this.maskEntity(workspace, draft)) }),
      ...(relationships && {
        relationships: await this.maskEach(relationships, (draft) => this.maskRelationship(workspace, draft)),
      }),
    }
  }

  async maskNodes({ entities, relations }: NodeGraph, workspace: string): Promise<NodeGraph> {
    return {
      entities: await this.maskEach(entities, (node) => this.maskNode(workspace, node)),
      relations: await this.mask(workspace, relations),
    }
  }

  private async maskNode(workspace: string, { name, entityType, observations }: GraphNode): Promise<GraphNode> {
    return {
      ...(await this.mask(workspace, { name, entityType })),
      observations: await this.maskNamed(workspace, name, observations),
    }
  }

  private async maskEntity(workspace: string, { properties, ...draft }: EntityDraft): Promise<EntityDraft> {
    const named = await this.maskNamed(workspace, draft.type, await this.maskNamed(workspace, draft.id, properties))
    return { ...(await this.mask(workspace, draft)), properties: named }
  }

  private async maskRelationship(
    workspace: string,
    { properties, ...draft }: RelationshipDraft,
  ): Promise<RelationshipDraft> {
    const masked = await this.mask(workspace, draft)
    return properties === undefined
      ? masked
      : { ...masked, properties: await this.maskNamed(workspace, draft.type, properties) }
  }

  /** Masks a value with a name as label, which may be all that marks it as a secret: an entity "wifi password". */
  async maskNamed<T>(workspace: string, name: string, value: T): Promise<T> {
    const [masked] = Object.values(await this.mask(workspace, { [name]: value }))
    return masked as T
  }
}

/** An erasure is passed on as it is. */
const maskNothing = async (): Promise<void> => undefined

/** Masks what is written to a graph, and what is looked up in it. */
export class MaskedGraph implements StoreGraph {
  readonly nodes: NodeStore
  readonly archive: GraphArchive
  private readonly graph: StoreGraph
  private readonly masking: GraphMasking
  private readonly store: Pick<Store, 'close'> | undefined

  /** `store` is closed with the graph. */
  constructor(graph: StoreGraph, masking: GraphMasking, store?: Pick<Store, 'close'>) {
    this.graph = graph
    this.masking = masking
    this.store = store
    this.nodes = new MaskedNodeStore(graph.nodes, masking)
    // Bundles are masked record by record on import.
    this.archive = graph.archive
  }

  async write(workspace: string, change: GraphChange): ReturnType<Graph['write']> {
    return this.masking.write(
      workspace,
      () => this.masking.maskChange(workspace, change),
      (masked) => this.graph.write(workspace, masked),
    )
  }

  async getEntity(workspace: string, id: string): Promise<Entity | undefined> {
    return this.graph.getEntity(workspace, await this.masking.mask(workspace, id))
  }

  async queryEntities(workspace: string, query: EntityQuery = {}): ReturnType<Graph['queryEntities']> {
    return this.graph.queryEntities(workspace, await this.masking.mask(workspace, query))
  }

  async queryRelationships(workspace: string, query: RelationshipQuery = {}): ReturnType<Graph['queryRelationships']> {
    return this.graph.queryRelationships(workspace, await this.masking.mask(workspace, query))
  }

  erase(workspace: string, session?: string, options?: ForgetOptions): Promise<number> {
    return this.masking.passOn(workspace, maskNothing, () => this.graph.erase(workspace, session, options))
  }

  forget(workspace: string, texts: readonly string[], options?: ForgetOptions): Promise<readonly string[]> {
    return this.masking.passOn(workspace, maskNothing, () => this.graph.forget(workspace, texts, options))
  }

  async close(): Promise<void> {
    await this.masking.settled()
    await this.graph.close()
    await this.store?.close()
  }
}

class MaskedNodeStore implements NodeStore {
  private readonly nodes: NodeStore
  private readonly masking: GraphMasking

  constructor(nodes: NodeStore, masking: GraphMasking) {
    this.nodes = nodes
    this.masking = masking
  }

  async createEntities(workspace: string, nodes: readonly GraphNode[]): Promise<readonly GraphNode[]> {
    return this.masking.write(
      workspace,
      () => this.masking.maskNodes({ entities: nodes, relations: [] }, workspace),
      ({ entities }) => this.nodes.createEntities(workspace, entities),
    )
  }

  async createRelations(workspace: string, links: readonly GraphLink[]): Promise<readonly GraphLink[]> {
    return this.masking.write(
      workspace,
      () => this.masking.mask(workspace, links),
      (masked) => this.nodes.createRelations(workspace, masked),
    )
  }

  async addObservations(
    workspace: string,
    additions: Parameters<NodeStore['addObservations']>[1],
  ): ReturnType<NodeStore['addObservations']> {
    const maskAddition = async ({ entityName, contents }: (typeof additions)[number]) => ({
      entityName: await this.masking.mask(workspace, entityName),
      contents: await this.masking.maskNamed(workspace, entityName, contents),
    })
    return this.masking.write(
      workspace,
      () => this.masking.maskEach(additions, maskAddition),
      (masked) => this.nodes.addObservations(workspace, masked),
    )
  }

  async deleteEntities(workspace: string, names: readonly string[]): Promise<void> {
    return this.masking.write(
      workspace,
      () => this.masking.mask(workspace, names),
      (masked) => this.nodes.deleteEntities(workspace, masked),
    )
  }

  async deleteObservations(workspace: string, unmasked: Parameters<NodeStore['deleteObservations']>[1]): Promise<void> {
    const maskDeletion = async ({ entityName, observations }: (typeof unmasked)[number]) => ({
      entityName: await this.masking.mask(workspace, entityName),
      observations: await this.masking.maskNamed(workspace, entityName, observations),
    })
    return this.masking.write(
      workspace,
      () => this.masking.maskEach(unmasked, maskDeletion),
      (masked) => this.nodes.deleteObservations(workspace, masked),
    )
  }

  async deleteRelations(workspace: string, links: readonly GraphLink[]): Promise<void> {
    return this.masking.write(
      workspace,
      () => this.masking.mask(workspace, links),
      (masked) => this.nodes.deleteRelations(workspace, masked),
    )
  }

  readGraph(workspace: string, options?: NodeReadOptions): Promise<NodeGraph> {
    return this.nodes.readGraph(workspace, options)
  }

  async searchNodes(workspace: string, query: string, options?: NodeReadOptions): Promise<NodeGraph> {
    return this.nodes.searchNodes(workspace, await this.masking.mask(workspace, query), options)
  }

  async openNodes(workspace: string, names: readonly string[], options?: NodeReadOptions): Promise<NodeGraph> {
    return this.nodes.openNodes(workspace, await this.masking.mask(workspace, names), options)
  }

  async importOnce(workspace: string, graph: NodeGraph): Promise<boolean> {
    return this.masking.write(
      workspace,
      () => this.masking.maskNodes(graph, workspace),
      (masked) => this.nodes.importOnce(workspace, masked),
    )
  }
}
