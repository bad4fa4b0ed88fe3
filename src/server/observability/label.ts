/**
 * Values of a label that come from outside: the first so many are told apart, all later ones are `other`, so that nobody
 * can make a metric grow without end.
 *
 * @example
 * const scope = new Label(1)
 * scope.of('acme') // 'acme'
 * scope.of('globex') // 'other'
 */
export class Label {
  private readonly most: number
  private readonly known = new Set<string>()

  constructor(most: number) {
    this.most = most
  }

  of(value: string): string {
    if (this.known.has(value)) return value
    if (this.known.size >= this.most) return 'other'
    this.known.add(value)
    return value
  }
}
