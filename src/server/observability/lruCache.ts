/** A node of the list of entries in order of use. */
type Node<T> = { readonly key: string; readonly value: T; older: Node<T> | undefined; newer: Node<T> | undefined }

/**
 * A cache that drops the least recently used entry when it is full. A linked list keeps the order: deleting from and
 * re-inserting into the `Map` on every use leaves holes in it, which takes longer.
 *
 * @example
 * const counts = new LruCache(10_000, () => ({ turns: 0 }))
 * counts.getOrCreate('acme').turns++
 */
export class LruCache<T> {
  private readonly maxEntries: number
  private readonly create: () => T
  private readonly nodes = new Map<string, Node<T>>()
  private oldest: Node<T> | undefined
  private newest: Node<T> | undefined

  constructor(maxEntries: number, create: () => T) {
    this.maxEntries = maxEntries
    this.create = create
  }

  /** Returns the value of a key without marking it as used. */
  get(key: string): T | undefined {
    return this.nodes.get(key)?.value
  }

  /** Returns the value of a key, creating it if missing, and marks it as used. */
  getOrCreate(key: string): T {
    const node = this.nodes.get(key) ?? this.add(key)
    if (node !== this.newest) {
      this.unlink(node)
      this.linkNewest(node)
    }
    return node.value
  }

  /** Deletes all entries whose key matches. */
  deleteWhere(matches: (key: string) => boolean): void {
    for (const node of this.nodes.values()) if (matches(node.key)) this.remove(node)
  }

  private add(key: string): Node<T> {
    const node: Node<T> = { key, value: this.create(), older: undefined, newer: undefined }
    this.nodes.set(key, node)
    this.linkNewest(node)
    if (this.nodes.size > this.maxEntries && this.oldest !== undefined) this.remove(this.oldest)
    return node
  }

  private remove(node: Node<T>): void {
    this.nodes.delete(node.key)
    this.unlink(node)
  }

  private linkNewest(node: Node<T>): void {
    node.older = this.newest
    node.newer = undefined
    if (this.newest === undefined) this.oldest = node
    else this.newest.newer = node
    this.newest = node
  }

  private unlink({ older, newer }: Node<T>): void {
    if (older === undefined) this.oldest = newer
    else older.newer = newer
    if (newer === undefined) this.newest = older
    else newer.older = older
  }
}
