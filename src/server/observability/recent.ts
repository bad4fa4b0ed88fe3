/** A thing under its name, and those that were used before and after it. */
type Place<T> = { readonly name: string; readonly thing: T; older: Place<T> | undefined; newer: Place<T> | undefined }

/**
 * Things by name; beyond so many, the one that was not used for the longest time goes. They are linked in the order of their
 * use: to be last in a `Map`, each would have to leave it and come again, and the holes that are left take longer than the rest.
 *
 * @example
 * const counts = new Recent(10_000, () => ({ turns: 0 }))
 * counts.used('acme').turns++
 */
export class Recent<T> {
  private readonly most: number
  private readonly make: () => T
  private readonly places = new Map<string, Place<T>>()
  private oldest: Place<T> | undefined
  private newest: Place<T> | undefined

  constructor(most: number, make: () => T) {
    this.most = most
    this.make = make
  }

  /** The thing under a name, if there is one; that is no use of it. */
  get(name: string): T | undefined {
    return this.places.get(name)?.thing
  }

  /** The thing under a name, which is made if there is none. */
  used(name: string): T {
    const place = this.places.get(name) ?? this.begin(name)
    if (place !== this.newest) {
      this.unlink(place)
      this.linkLast(place)
    }
    return place.thing
  }

  /** Lets go of all whose names are told to be gone. */
  drop(isGone: (name: string) => boolean): void {
    for (const place of this.places.values()) if (isGone(place.name)) this.remove(place)
  }

  private begin(name: string): Place<T> {
    const place: Place<T> = { name, thing: this.make(), older: undefined, newer: undefined }
    this.places.set(name, place)
    this.linkLast(place)
    if (this.places.size > this.most && this.oldest !== undefined) this.remove(this.oldest)
    return place
  }

  private remove(place: Place<T>): void {
    this.places.delete(place.name)
    this.unlink(place)
  }

  private linkLast(place: Place<T>): void {
    place.older = this.newest
    place.newer = undefined
    if (this.newest === undefined) this.oldest = place
    else this.newest.newer = place
    this.newest = place
  }

  private unlink({ older, newer }: Place<T>): void {
    if (older === undefined) this.oldest = newer
    else older.newer = newer
    if (newer === undefined) this.newest = older
    else newer.older = older
  }
}
