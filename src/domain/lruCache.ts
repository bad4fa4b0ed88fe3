/** An entry, linked to its neighbours in the order of use. */
type Node<K, V> = {
  readonly key: K
  value: V
  size: number
  older: Node<K, V> | undefined
  newer: Node<K, V> | undefined
}

export type LruCacheOptions = {
  /** Maximum number of entries. Default: unlimited. */
  readonly maxEntries?: number
  /** Maximum sum of the sizes passed to `set`. Default: unlimited. */
  readonly maxTotalSize?: number
}

/**
 * Map in order of use. Above a limit it drops the least recently used entries, but never the newest. A linked list
 * keeps the order: deleting from and re-inserting into a `Map` on every use leaves holes that each look at its first
 * key has to skip.
 *
 * @example
 * const totals = new LruCache<string, Totals>({ maxEntries: 10_000 })
 * getOrCompute(totals, 'acme', createTotals).turns++
 */
export class LruCache<K, V> {
  private readonly maxEntries: number
  private readonly maxTotalSize: number
  private readonly nodes = new Map<K, Node<K, V>>()
  private oldestNode: Node<K, V> | undefined
  private newestNode: Node<K, V> | undefined
  private sumOfSizes = 0

  constructor({ maxEntries = Infinity, maxTotalSize = Infinity }: LruCacheOptions = {}) {
    this.maxEntries = maxEntries
    this.maxTotalSize = maxTotalSize
  }

  /** Number of entries. */
  get size(): number {
    return this.nodes.size
  }

  get totalSize(): number {
    return this.sumOfSizes
  }

  /** The least recently used entry. */
  get oldest(): readonly [key: K, value: V] | undefined {
    return this.oldestNode && [this.oldestNode.key, this.oldestNode.value]
  }

  has(key: K): boolean {
    return this.nodes.has(key)
  }

  /** Returns a value without marking it as used. */
  peek(key: K): V | undefined {
    return this.nodes.get(key)?.value
  }

  /** Returns a value and marks it as used. */
  get(key: K): V | undefined {
    const node = this.nodes.get(key)
    if (node !== undefined) this.moveToNewest(node)
    return node?.value
  }

  /** Adds or replaces an entry and marks it as used. */
  set(key: K, value: V, size = 0): void {
    let node = this.nodes.get(key)
    if (node === undefined) {
      node = { key, value, size: 0, older: undefined, newer: undefined }
      this.nodes.set(key, node)
      this.linkNewest(node)
    } else this.moveToNewest(node)
    node.value = value
    this.sumOfSizes += size - node.size
    node.size = size
    this.evict()
  }

  delete(key: K): void {
    const node = this.nodes.get(key)
    if (node !== undefined) this.remove(node)
  }

  /** Deletes all entries whose key matches. */
  deleteWhere(matches: (key: K) => boolean): void {
    for (const node of this.nodes.values()) if (matches(node.key)) this.remove(node)
  }

  clear(): void {
    this.nodes.clear()
    this.oldestNode = undefined
    this.newestNode = undefined
    this.sumOfSizes = 0
  }

  /** Iterates from the least recently used entry; the current one may be deleted. */
  *[Symbol.iterator](): Generator<readonly [key: K, value: V]> {
    for (let node = this.oldestNode; node !== undefined; ) {
      const next: Node<K, V> | undefined = node.newer
      yield [node.key, node.value]
      node = next
    }
  }

  private evict(): void {
    while (
      this.oldestNode !== undefined &&
      this.oldestNode !== this.newestNode &&
      (this.nodes.size > this.maxEntries || this.sumOfSizes > this.maxTotalSize)
    )
      this.remove(this.oldestNode)
  }

  private remove(node: Node<K, V>): void {
    this.nodes.delete(node.key)
    this.sumOfSizes -= node.size
    this.unlink(node)
  }

  private moveToNewest(node: Node<K, V>): void {
    if (node === this.newestNode) return
    this.unlink(node)
    this.linkNewest(node)
  }

  private linkNewest(node: Node<K, V>): void {
    node.older = this.newestNode
    node.newer = undefined
    if (this.newestNode === undefined) this.oldestNode = node
    else this.newestNode.newer = node
    this.newestNode = node
  }

  private unlink({ older, newer }: Node<K, V>): void {
    if (older === undefined) this.oldestNode = newer
    else older.newer = newer
    if (newer === undefined) this.newestNode = older
    else newer.older = older
  }
}
