export type Point = readonly [x: number, y: number]

/** The least-squares line through points, from the first to the last of them. */
export type Trend = {
  readonly first: number
  readonly last: number
  /** Change per unit of x. */
  readonly slope: number
  /** Change from the first to the last value, as a share of the first. */
  readonly rise: number
}

/** Fits a line to at least two points in the order of x. It uses all of them, so that a steady rise is not understated. */
export function fitTrend(points: readonly Point[]): Trend {
  const mean = (index: 0 | 1): number => points.reduce((sum, point) => sum + point[index], 0) / points.length
  const [meanX, meanY] = [mean(0), mean(1)]
  const covariance = points.reduce((sum, [x, y]) => sum + (x - meanX) * (y - meanY), 0)
  const slope = covariance / points.reduce((sum, [x]) => sum + (x - meanX) ** 2, 0)
  const [first, last] = [points[0], points.at(-1)].map((point) => meanY + slope * ((point?.[0] ?? 0) - meanX)) as [
    number,
    number,
  ]
  return { first, last, slope, rise: last / first - 1 }
}
