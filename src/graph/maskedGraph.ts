import type { Json } from '../domain/entry.ts'
import { parseKey } from '../domain/key.ts'
import type { SecretMasker } from '../memory/secretMasker.ts'
import { yieldToEventLoop } from '../stores/yieldToEventLoop.ts'
import type { EntityDraft, GraphChange, GraphNode, NodeGraph, RelationshipDraft } from './types.ts'

/** Nodes, entities or relationships masked in a row: 10 ms of short ones. */
const valuesBetweenPauses = 200

/** Masks what is written to a graph and refuses workspaces that are named after a secret. */
export type GraphMasker = Pick<SecretMasker, 'maskJson' | 'checkKey'>

/** Masks the arguments of a graph's methods under the key of the workspace: a graph has no sessions of its own. */
export class GraphMasking {
  private readonly masker: GraphMasker
  private running = 0

  constructor(masker: GraphMasker) {
    this.masker = masker
  }

  /** Throws `bad-key` for a workspace that is named after a secret. Call it before a workspace is created. */
  checkWorkspace(workspace: string): void {
    this.masker.checkKey(parseKey(workspace))
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
