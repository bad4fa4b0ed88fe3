import { describe, expect, it } from 'vitest'
import { Histogram } from '../../../src/server/observability/histogram.ts'

describe('a histogram', () => {
  it('tells by labels how many values were at most so large, how many there were and their sum', () => {
    const histogram = new Histogram('wait_seconds', 'How long it took', [0.5, 1])
    for (const value of [0.25, 0.5, 0.75, 8]) histogram.of({ protocol: 'chat', upstream: 'a"b\\c\nd' }).observe(value)
    expect(histogram.text()).toBe(
      [
        '# HELP wait_seconds How long it took',
        '# TYPE wait_seconds histogram',
        String.raw`wait_seconds_bucket{le="0.5",protocol="chat",upstream="a\"b\\c\nd"} 2`,
        String.raw`wait_seconds_bucket{le="1",protocol="chat",upstream="a\"b\\c\nd"} 3`,
        String.raw`wait_seconds_bucket{le="+Inf",protocol="chat",upstream="a\"b\\c\nd"} 4`,
        String.raw`wait_seconds_sum{protocol="chat",upstream="a\"b\\c\nd"} 9.5`,
        String.raw`wait_seconds_count{protocol="chat",upstream="a\"b\\c\nd"} 4`,
        '',
      ].join('\n'),
    )
  })

  it('tells its name also while it has no values', () => {
    expect(new Histogram('wait_seconds', 'How long it took', [1]).text()).toBe(
      '# HELP wait_seconds How long it took\n# TYPE wait_seconds histogram\n',
    )
  })
})
