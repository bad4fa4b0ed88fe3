/**
 * How many values were at most so large, by labels, in the form Prometheus reads. Labels are looked up once, not with each
 * value: several of these hear of every turn.
 *
 * @example
 * const seconds = new Histogram('request_seconds', 'From a request to the end of its reply', [0.1, 1])
 * seconds.of({ protocol: 'chat' }).observe(0.25)
 */
export class Histogram {
  private readonly name: string
  private readonly help: string
  private readonly bounds: readonly number[]
  private readonly series = new Map<string, Series>()

  constructor(name: string, help: string, bounds: readonly number[]) {
    this.name = name
    this.help = help
    this.bounds = [...bounds, Number.POSITIVE_INFINITY]
  }

  /** The values with these labels. */
  of(labels: Readonly<Record<string, string>>): Series {
    const text = Object.entries(labels)
      .map(([name, value]) => `${name}="${escaped(value)}"`)
      .join(',')
    const series = this.series.get(text) ?? new Series(this.bounds)
    this.series.set(text, series)
    return series
  }

  text(): string {
    const lines = [...this.series].flatMap(([labels, series]) => series.lines(this.name, labels))
    return `${[`# HELP ${this.name} ${this.help}`, `# TYPE ${this.name} histogram`, ...lines].join('\n')}\n`
  }
}

/** Values with the same labels. */
export class Series {
  private readonly bounds: readonly number[]
  /** How many values are within each bound and not within the one before. */
  private readonly counts: number[]
  private sum = 0

  constructor(bounds: readonly number[]) {
    this.bounds = bounds
    this.counts = bounds.map(() => 0)
  }

  observe(value: number): void {
    let place = 0
    // No value is beyond the last of them.
    while (value > (this.bounds[place] as number)) place++
    this.counts[place] = (this.counts[place] ?? 0) + 1
    this.sum += value
  }

  lines(name: string, labels: string): readonly string[] {
    let count = 0
    const buckets = this.bounds.map((bound, place) => {
      count += this.counts[place] ?? 0
      return `${name}_bucket{le="${bound === Number.POSITIVE_INFINITY ? '+Inf' : bound}",${labels}} ${count}`
    })
    return [...buckets, `${name}_sum{${labels}} ${this.sum}`, `${name}_count{${labels}} ${count}`]
  }
}

const escaped = (value: string): string => value.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('"', '\\"')
